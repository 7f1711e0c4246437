/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_ends: see verbs_ends.h.
 */
#include "test/sim/verbs_ends.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define MINUTE_NS 60000000000ull
#define SECOND_NS 1000000000ull

static const end_wish plain;

static bool make_objects(end *end, const end_wish *wish)
{
    uint32_t depth = wish->depth ? wish->depth : END_DEPTH;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = depth, .max_sge = 1}};
    struct ibv_device_attr device;
    bool has_srq = ibv_query_device(end->context, &device) == 0 && device.max_srq && !wish->no_srq;
    end->pd = ibv_alloc_pd(end->context);
    end->channel = ibv_create_comp_channel(end->context);
    end->cq = ibv_create_cq(end->context, wish->cqe ? (int)wish->cqe : 256, end, end->channel, 0);
    end->srq = has_srq ? ibv_create_srq(end->pd, &srq) : NULL;
    end->memory = aligned_alloc(4096, END_BYTES);
    memset(end->memory, 0, END_BYTES);
    end->mr = ibv_reg_mr(end->pd, end->memory, END_BYTES, ALL_ACCESS);
    if (!end->pd || !end->channel || !end->cq || (!end->srq && has_srq) || !end->mr)
        return false;
    struct ibv_qp_init_attr attr = {.send_cq = end->cq, .recv_cq = end->cq, .srq = end->srq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = depth, .max_recv_wr = has_srq ? 0 : depth, .max_send_sge = 2,
                                            .max_recv_sge = 1, .max_inline_data = wish->inlined}};
    end->qp = ibv_create_qp(end->pd, &attr);
    return end->qp != NULL;
}

bool end_open(end *end, uint32_t process, const end_wish *wish)
{
    int count = 0;
    struct ibv_port_attr port;
    memset(end, 0, sizeof *end);
    wish = wish ? wish : &plain;
    simhca_process(process);
    struct ibv_device **list = ibv_get_device_list(&count);
    end->context = count > 0 ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    if (!end->context || ibv_query_port(end->context, 1, &port))
        return false;
    end->lid = port.lid;
    end->needs_grh = !port.lid || (port.flags & IBV_QPF_GRH_REQUIRED);
    end->pkey_index = (uint16_t)(port.pkey_tbl_len - 1); /* the last is valid */
    end->gid_index = port.link_layer == IBV_LINK_LAYER_ETHERNET ? 3 : 0;
    for (struct ibv_gid_entry entry; ibv_query_gid_ex(end->context, 1, (uint32_t)end->gid_index + 2, &entry, 0) == 0;)
        end->gid_index += 2; /* the last of its type is this namespace's */
    end->psn = 1000 + process;
    return ibv_query_gid(end->context, 1, end->gid_index, &end->gid) == 0 && make_objects(end, wish);
}

int end_to_init(end *end, const end_wish *wish)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = end->pkey_index,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
    if (wish->access)
        attr.qp_access_flags = (unsigned)wish->access;
    return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int end_to_rtr(end *end, const struct end *remote, const end_wish *wish)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = remote->qp->qp_num,
                               .rq_psn = remote->psn + (uint32_t)wish->wrong_psn, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
                               .ah_attr = {.port_num = 1, .dlid = remote->lid, .is_global = end->needs_grh,
                                           .grh = {.dgid = remote->gid, .sgid_index = (uint8_t)end->gid_index, .hop_limit = 64}}};
    return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int end_to_rts(end *end, const end_wish *wish)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = wish->timeout ? wish->timeout : 10, .sq_psn = end->psn,
                               .retry_cnt = wish->retries ? wish->retries : 3, .max_rd_atomic = 1,
                               .rnr_retry = wish->rnr_retries ? wish->rnr_retries : 7};
    return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                         IBV_QP_MAX_QP_RD_ATOMIC);
}

bool ends_open(end *ends, const simhca_profile *profile, uint64_t seed, const end_wish *wish)
{
    wish = wish ? wish : &plain;
    if (!simhca_open(profile, seed, 0))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!end_open(&ends[i], i, wish) || end_to_init(&ends[i], wish))
            return false;
    for (uint32_t i = 0; i < 2; i++)
        if (end_to_rtr(&ends[i], &ends[1 - i], wish) || end_to_rts(&ends[i], wish))
            return false;
    return true;
}

/* Acknowledges remaining events of the channel and the device, so that both can be destroyed. */
static void take_events(end *end)
{
    struct ibv_async_event event;
    struct ibv_cq *cq;
    void *context;
    fcntl(end->channel->fd, F_SETFL, O_NONBLOCK);
    fcntl(end->context->async_fd, F_SETFL, O_NONBLOCK);
    while (ibv_get_cq_event(end->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    while (ibv_get_async_event(end->context, &event) == 0)
        ibv_ack_async_event(&event);
}

uint32_t ends_close(end *ends)
{
    uint32_t bad = 0;
    for (int i = 0; i < 2; i++) {
        end *end = &ends[i];
        if (!end->context)
            continue;
        take_events(end);
        bad += end->qp && ibv_destroy_qp(end->qp) != 0;
        bad += end->srq && ibv_destroy_srq(end->srq) != 0;
        bad += end->mr && ibv_dereg_mr(end->mr) != 0;
        bad += end->cq && ibv_destroy_cq(end->cq) != 0;
        bad += end->channel && ibv_destroy_comp_channel(end->channel) != 0;
        bad += end->pd && ibv_dealloc_pd(end->pd) != 0;
        bad += ibv_close_device(end->context) != 0;
        free(end->memory);
    }
    return bad + simhca_close(stderr);
}

int end_recv(end *end, uint64_t wr_id, uint32_t at, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)end->memory + at, .length = bytes, .lkey = end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return end->srq ? ibv_post_srq_recv(end->srq, &wr, &bad) : ibv_post_recv(end->qp, &wr, &bad);
}

int end_post(end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t at, uint32_t bytes, unsigned flags,
             const struct end *remote, uint32_t remote_at)
{
    struct ibv_sge sge = {.addr = (uintptr_t)end->memory + at, .length = bytes, .lkey = end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags,
                             .imm_data = 0x01020304}, *bad;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)remote->memory + remote_at;
        wr.wr.atomic.rkey = remote->mr->rkey;
        wr.wr.atomic.compare_add = 5;
        wr.wr.atomic.swap = 7;
    } else if (remote) {
        wr.wr.rdma.remote_addr = (uintptr_t)remote->memory + remote_at;
        wr.wr.rdma.rkey = remote->mr->rkey;
    }
    return ibv_post_send(end->qp, &wr, &bad);
}

bool end_wait(end *end, struct ibv_wc *wc)
{
    for (uint64_t until = simhca_now_ns() + MINUTE_NS; simhca_now_ns() < until;)
        if (ibv_poll_cq(end->cq, 1, wc) == 1)
            return true;
    return false;
}

bool end_is_silent(end *end)
{
    struct ibv_wc wc;
    for (uint64_t until = simhca_now_ns() + SECOND_NS; simhca_now_ns() < until;)
        if (ibv_poll_cq(end->cq, 1, &wc) == 1)
            return false;
    return true;
}
