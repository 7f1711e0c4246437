/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post: ibv_post_send: immediate refusals and their errno. Other requests are queued; a queue entry is free once its completion, or a later
 * one, was polled.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

static bool is_known(enum ibv_wr_opcode opcode, enum ibv_qp_type type)
{
    bool is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
    bool is_window = hca_is_mw_work(opcode) && !hca.profile.no_windows;
    return is_send || (type == IBV_QPT_RC && (is_window || opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
                                              opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                                              opcode == IBV_WR_ATOMIC_FETCH_AND_ADD));
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint64_t length_of(const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes;
}

/* 0 or errno. */
static int is_refused(const hca_qp *qp, const struct ibv_send_wr *wr)
{
    enum ibv_qp_state state = qp->attr.qp_state;
    uint64_t bytes = length_of(wr);
    bool is_inline = wr->send_flags & IBV_SEND_INLINE;
    if (state != IBV_QPS_RTS && state != IBV_QPS_ERR && state != IBV_QPS_SQD)
        return EINVAL;
    if (!is_known(wr->opcode, qp->base.qp_type) || (hca.profile.no_atomics && is_atomic(wr->opcode)))
        return EINVAL;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    if (is_inline && (bytes > qp->cap.max_inline_data || wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr->opcode)))
        return EINVAL;
    if (is_atomic(wr->opcode) && bytes != sizeof(uint64_t))
        return EINVAL;
    if (bytes > hca_limit(hca.profile.max_msg_bytes, 1u << 30) || (qp->base.qp_type == IBV_QPT_UD && !wr->wr.ud.ah))
        return EINVAL;
    if (qp->head - qp->freed >= qp->cap.max_send_wr || qp->head - qp->done >= qp->sq_ring)
        return ENOMEM;
    return hca_chance(hca.profile.refuse_per_100k, 100000) ? ENOMEM : 0;
}

static void copy_in(hca_wqe *wqe, const struct ibv_send_wr *wr)
{
    wqe->inlined = malloc(wqe->length ? wqe->length : 1);
    for (uint32_t at = 0, i = 0; i < wqe->count; at += wr->sg_list[i++].length)
        memcpy(wqe->inlined + at, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
    hca.counts[SIMHCA_INLINE]++;
}

static void take(hca_qp *qp, const struct ibv_send_wr *wr)
{
    hca_wqe *wqe = hca_wqe_at(qp, qp->head);
    *wqe = (hca_wqe){.wr_id = wr->wr_id, .opcode = wr->opcode, .flags = wr->send_flags, .imm = wr->imm_data,
                     .length = (uint32_t)length_of(wr), .count = (uint32_t)wr->num_sge};
    if (qp->base.qp_type == IBV_QPT_UD) {
        wqe->av = ((hca_ah *)wr->wr.ud.ah)->attr;
        wqe->remote_qpn = wr->wr.ud.remote_qpn;
        wqe->remote_qkey = wr->wr.ud.remote_qkey;
    } else if (is_atomic(wr->opcode)) {
        wqe->remote = wr->wr.atomic.remote_addr;
        wqe->compare = wr->wr.atomic.compare_add;
        wqe->swap = wr->wr.atomic.swap;
        wqe->rkey = wr->wr.atomic.rkey;
    } else if (wr->opcode == IBV_WR_BIND_MW) {
        const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
        wqe->bind = (hca_bind){wr->bind_mw.mw->rkey, wr->bind_mw.rkey, info->mr->lkey, info->mw_access_flags, info->addr, info->length};
    } else {
        wqe->remote = wr->wr.rdma.remote_addr;
        wqe->rkey = wr->wr.rdma.rkey;
    }
    if (wr->send_flags & IBV_SEND_INLINE)
        copy_in(wqe, wr);
    else if (wqe->count) {
        wqe->sges = malloc(wqe->count * sizeof *wqe->sges);
        memcpy(wqe->sges, wr->sg_list, wqe->count * sizeof *wqe->sges);
    }
    if (!(wr->send_flags & IBV_SEND_SIGNALED) && !qp->sig_all)
        hca.counts[SIMHCA_UNSIGNALLED]++;
    qp->head++;
}

int hca_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    hca_qp *qp = (hca_qp *)base;
    int rc = 0;
    hca_lock();
    hca.counts[SIMHCA_POSTS]++;
    hca.dull = 0;
    for (; wr && !rc; wr = wr->next) {
        rc = qp->device->is_dead ? EIO : is_refused(qp, wr);
        if (rc) {
            hca.counts[SIMHCA_POST_REFUSED]++;
            *bad = wr;
            break;
        }
        take(qp, wr);
    }
    if (qp->attr.qp_state == IBV_QPS_ERR)
        hca_qp_error(qp, -1); /* also flushes work posted now */
    else
        hca_requester_kick(qp);
    hca_unlock();
    return rc;
}

/* Bytes that the device reads from memory: at the send, not at the post. */
uint8_t *hca_gather(const hca_wqe *wqe)
{
    uint8_t *body = malloc(wqe->length ? wqe->length : 1);
    if (wqe->inlined)
        memcpy(body, wqe->inlined, wqe->length);
    else
        for (uint32_t at = 0, i = 0; i < wqe->count; at += wqe->sges[i++].length)
            memcpy(body + at, (void *)(uintptr_t)wqe->sges[i].addr, wqe->sges[i].length);
    return body;
}
