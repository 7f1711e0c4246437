/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_limits: limits of a simulated HCA and when they apply; completion events, asynchronous events, datagrams.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/sim/verbs_hca.h"

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

/* A queue entry is free when a completion of it or a later one was polled: not when it is sent or completes. */
static void polling_frees_entries(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_wc wc;
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.depth = 4}));
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT(end_post(a, i, IBV_WR_RDMA_WRITE, 0, 8, i == 2 ? IBV_SEND_SIGNALED : 0, b, 0) == 0);
    simhca_pass(1000000);
    CU_ASSERT(end_post(a, 4, IBV_WR_RDMA_WRITE, 0, 8, 0, b, 0) == ENOMEM);
    CU_ASSERT(end_wait(a, &wc) && wc.wr_id == 2);
    for (uint32_t i = 4; i < 7; i++)
        CU_ASSERT(end_post(a, i, IBV_WR_RDMA_WRITE, 0, 8, 0, b, 0) == 0);
    CU_ASSERT(end_post(a, 7, IBV_WR_RDMA_WRITE, 0, 8, 0, b, 0) == ENOMEM); /* all unsignalled: the queue stays full */
    CU_ASSERT(end_is_silent(a));
    CU_ASSERT(ends_close(ends) == 0);
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.depth = 4}));
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT(end_recv(b, i, 0, 8) == 0);
    CU_ASSERT(end_recv(b, 4, 0, 8) == ENOMEM);
    CU_ASSERT(end_post(a, 0, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == 0 && end_wait(a, &wc));
    CU_ASSERT(end_recv(b, 4, 0, 8) == ENOMEM);
    CU_ASSERT(end_wait(b, &wc) && end_recv(b, 4, 0, 8) == 0);
    CU_ASSERT(ends_close(ends) == 0);
}

static void queue_overruns(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_async_event event;
    struct ibv_wc wc[8];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.cqe = 4, .depth = 8}));
    for (uint32_t i = 0; i < 6; i++)
        CU_ASSERT(end_post(a, i, IBV_WR_RDMA_WRITE, 0, 8, IBV_SEND_SIGNALED, b, 0) == 0);
    simhca_pass(10000000);
    CU_ASSERT(simhca_counter(SIMHCA_OVERRUNS) == 1 && ibv_poll_cq(a->cq, 8, wc) == 4);
    CU_ASSERT(ibv_get_async_event(a->context, &event) == 0 && event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == a->cq);
    ibv_ack_async_event(&event);
    CU_ASSERT(ibv_get_async_event(a->context, &event) == 0 && event.event_type == IBV_EVENT_QP_FATAL);
    CU_ASSERT(event.element.qp == a->qp);
    ibv_ack_async_event(&event);
    CU_ASSERT(end_is_silent(a));
    CU_ASSERT(ends_close(ends) == 0);
}

static void state_transitions(void)
{
    end ends[2], *a = &ends[0];
    end_wish wish = {.timeout = 10};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    CU_ASSERT_FATAL(simhca_open(hca_calm(), 1, 0));
    CU_ASSERT_FATAL(end_open(&ends[0], 0, &wish) && end_open(&ends[1], 1, &wish));
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == EINVAL);
    CU_ASSERT(end_to_rtr(a, &ends[1], &wish) == EINVAL && end_to_rts(a, &wish) == EINVAL); /* not from RESET */
    CU_ASSERT(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE) == EINVAL);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
    CU_ASSERT(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) == EINVAL); /* no access flags */
    attr.port_num = 2;
    CU_ASSERT(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == EINVAL);
    CU_ASSERT(end_to_init(a, &wish) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == EINVAL);
    wish.timeout = 32;
    CU_ASSERT(end_to_rtr(a, &ends[1], &wish) == 0 && end_to_rts(a, &wish) == EINVAL);
    wish.timeout = 10;
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == EINVAL);
    CU_ASSERT(end_to_rts(a, &wish) == 0 && end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET};
    CU_ASSERT(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE) == 0 && end_is_silent(a)); /* RESET flushes nothing */
    CU_ASSERT(end_to_init(a, &wish) == 0);
    CU_ASSERT(ends_close(ends) == 0);
}

/* EBUSY as from the kernel; open objects are counted. */
static void order_of_freeing(void)
{
    end ends[2], *a = &ends[0];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(ibv_destroy_cq(a->cq) == EBUSY && ibv_dealloc_pd(a->pd) == EBUSY && ibv_destroy_srq(a->srq) == EBUSY);
    CU_ASSERT(ibv_destroy_comp_channel(a->channel) == EBUSY);
    CU_ASSERT(ends_close(ends) == 0);
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(simhca_close(NULL) > 10);
    free(ends[0].memory);
    free(ends[1].memory);
}

static void memory_limits(void)
{
    simhca_profile profile = {.name = "pin", .mr_bytes_max = 40 * 4096, .max_mr = 5, .pin_ns = 1000, .pin_page_ns = 10};
    end ends[2], *a = &ends[0];
    struct ibv_mr *more[8];
    CU_ASSERT_FATAL(ends_open(ends, &profile, 1, NULL)); /* 16 pages each */
    uint64_t since = simhca_now_ns();
    CU_ASSERT((more[0] = ibv_reg_mr(a->pd, a->memory + 4096, 8 * 4096, 0)) != NULL);
    CU_ASSERT(simhca_now_ns() - since == 1000 + 8 * 10);
    CU_ASSERT((more[1] = ibv_reg_mr(a->pd, a->memory, 16 * 4096, 0)) != NULL); /* 40 of 40 pages */
    CU_ASSERT(ibv_reg_mr(a->pd, a->memory, 1, 0) == NULL && errno == ENOMEM);
    CU_ASSERT(ibv_dereg_mr(more[1]) == 0);
    for (int i = 1; i < 4; i++)
        CU_ASSERT((more[i] = ibv_reg_mr(a->pd, a->memory, 1, 0)) != NULL);
    CU_ASSERT(ibv_reg_mr(a->pd, a->memory, 1, 0) == NULL && errno == ENOMEM); /* five regions */
    for (int i = 0; i < 4; i++)
        CU_ASSERT(ibv_dereg_mr(more[i]) == 0);
    CU_ASSERT(ibv_reg_mr(a->pd, a->memory, 8, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
    void *fixed = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT(ibv_reg_mr(a->pd, fixed, 8192, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
    CU_ASSERT((more[0] = ibv_reg_mr(a->pd, fixed, 8192, IBV_ACCESS_REMOTE_READ)) != NULL && ibv_dereg_mr(more[0]) == 0);
    munmap(fixed, 8192);
    CU_ASSERT(ibv_reg_mr(a->pd, fixed, 8192, 0) == NULL && errno == EFAULT);
    CU_ASSERT(ends_close(ends) == 0);
}

/* One event per arming; after solicited-only arming for solicited messages only; otherwise the descriptor is not readable. */
static void completion_events(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT(end_recv(b, i, 0, 64) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0 && end_wait(b, &wc));
    CU_ASSERT(!is_readable(b->channel->fd)); /* not armed */
    CU_ASSERT(ibv_req_notify_cq(b->cq, 1) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0 && end_wait(b, &wc));
    CU_ASSERT(!is_readable(b->channel->fd)); /* not solicited */
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, IBV_SEND_SOLICITED, NULL, 0) == 0 && end_wait(b, &wc));
    CU_ASSERT(is_readable(b->channel->fd));
    CU_ASSERT(ibv_get_cq_event(b->channel, &cq, &context) == 0 && cq == b->cq && context == b);
    ibv_ack_cq_events(cq, 1);
    CU_ASSERT(!is_readable(b->channel->fd));
    CU_ASSERT(ibv_req_notify_cq(b->cq, 0) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0 && end_wait(b, &wc) && is_readable(b->channel->fd));
    CU_ASSERT(ends_close(ends) == 0); /* a pending event is freed with its queue */
}

/* -- datagrams -- */

typedef struct ud {
    end *end;
    struct ibv_qp *qp;
    struct ibv_ah *to;
} ud;

static bool ud_open(ud *ud, end *end, const struct end *far)
{
    struct ibv_qp_init_attr init = {.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1234};
    struct ibv_ah_attr ah = {.port_num = 1, .dlid = far->lid, .is_global = !far->lid,
                             .grh = {.dgid = far->gid, .sgid_index = (uint8_t)end->gid_index, .hop_limit = 9}};
    ud->end = end;
    ud->qp = ibv_create_qp(end->pd, &init);
    int rc = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    rc |= ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    rc |= ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    ud->to = ibv_create_ah(end->pd, &ah);
    return !rc && ud->to;
}

static int ud_send(ud *ud, uint32_t qpn, uint32_t qkey, uint32_t at, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)ud->end->memory + at, .length = bytes, .lkey = ud->end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.ud.ah = ud->to;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    return ibv_post_send(ud->qp, &wr, &bad);
}

static int ud_recv(ud *ud, uint64_t wr_id, uint32_t at, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)ud->end->memory + at, .length = bytes, .lkey = ud->end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(ud->qp, &wr, &bad);
}

static void ud_close(ud *ud)
{
    CU_ASSERT(ibv_destroy_qp(ud->qp) == 0 && ibv_destroy_ah(ud->to) == 0);
}

static void datagrams_may_be_lost(void)
{
    static const char *const names[] = {"calm", "ib", "datagrams"};
    for (int p = 0; p < 3; p++) {
        end ends[2];
        ud a, b;
        struct ibv_wc wc;
        uint32_t came = 0, sent = 200, back = 0, last = 0;
        CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find(names[p]), 2, NULL));
        CU_ASSERT_FATAL(ud_open(&a, &ends[0], &ends[1]) && ud_open(&b, &ends[1], &ends[0]));
        CU_ASSERT(ud_send(&a, b.qp->qp_num, 0x1234, 0, 100) == 0 && end_wait(&ends[0], &wc) && wc.status == 0);
        CU_ASSERT(end_is_silent(&ends[1])); /* no receive was posted */
        for (uint32_t i = 0; i < 32; i++)
            CU_ASSERT(ud_recv(&b, i, i * 256, 256) == 0);
        CU_ASSERT(ud_send(&a, b.qp->qp_num, 0x4321, 0, 100) == 0 && end_wait(&ends[0], &wc) && wc.status == 0);
        CU_ASSERT(end_is_silent(&ends[1])); /* wrong Q_Key */
        for (uint32_t i = 0; i < sent; i++) {
            *(uint32_t *)ends[0].memory = i;
            CU_ASSERT(ud_send(&a, b.qp->qp_num, 0x1234, 0, 100) == 0 && end_wait(&ends[0], &wc) && wc.wr_id == 77 && !wc.status);
            while (ibv_poll_cq(ends[1].cq, 1, &wc) == 1) {
                uint8_t *at = ends[1].memory + wc.wr_id * 256;
                CU_ASSERT(wc.status == 0 && wc.byte_len == 140 && wc.src_qp == a.qp->qp_num);
                CU_ASSERT(p == 1 ? wc.slid == ends[0].lid && !(wc.wc_flags & IBV_WC_GRH)
                                 : (wc.wc_flags & IBV_WC_GRH) && memcmp(at + 32, ends[0].gid.raw + 12, 4) == 0);
                uint32_t number = *(uint32_t *)(at + 40);
                back += number < last;
                last = number;
                came++;
                CU_ASSERT(ud_recv(&b, wc.wr_id, (uint32_t)wc.wr_id * 256, 256) == 0);
            }
        }
        CU_ASSERT(p == 2 ? came < sent && back > 0 && simhca_counter(SIMHCA_DATAGRAMS_LOST) > 20 &&
                               simhca_counter(SIMHCA_DATAGRAMS_TWICE) > 10
                         : came > sent - 20 && back == 0);
        CU_ASSERT(ud_send(&a, b.qp->qp_num, 0x1234, 0, 5000) == 0 && end_wait(&ends[0], &wc) && wc.status == IBV_WC_LOC_LEN_ERR);
        ud_close(&a);
        ud_close(&b);
        CU_ASSERT(ends_close(ends) == 0);
    }
}

const hca_test hca_limits[] = {
    {"polling-frees-entries", polling_frees_entries}, {"queue-overruns", queue_overruns},
    {"state-transitions", state_transitions}, {"order-of-freeing", order_of_freeing}, {"memory-limits", memory_limits},
    {"completion-events", completion_events}, {"datagrams", datagrams_may_be_lost}, {NULL, NULL},
};
