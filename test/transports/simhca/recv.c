/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recv: receive queues, a queue pair's own or shared by many.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

bool hca_rq_open(hca_rq *rq, uint32_t room, uint32_t max_sge)
{
    *rq = (hca_rq){.capacity = room, .max_sge = max_sge};
    if (!room)
        return true;
    rq->ring = calloc(room, sizeof *rq->ring);
    struct ibv_sge *sges = calloc((size_t)room * (max_sge ? max_sge : 1), sizeof *sges);
    if (!rq->ring || !sges) {
        free(rq->ring);
        free(sges);
        rq->ring = NULL;
        return false;
    }
    for (uint32_t i = 0; i < room; i++)
        rq->ring[i].sges = sges + (size_t)i * (max_sge ? max_sge : 1);
    return true;
}

void hca_rq_close(hca_rq *rq)
{
    if (rq->ring)
        free(rq->ring[0].sges);
    free(rq->ring);
    rq->ring = NULL;
    rq->count = rq->capacity = 0;
}

int hca_rq_post(hca_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        bool is_wrong = wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge;
        if (is_wrong || rq->used >= rq->capacity) {
            *bad = wr;
            return is_wrong ? EINVAL : ENOMEM;
        }
        hca_rwqe *rwqe = &rq->ring[(rq->head + rq->count++) % rq->capacity];
        rq->used++;
        rwqe->wr_id = wr->wr_id;
        rwqe->count = (uint32_t)wr->num_sge;
        memcpy(rwqe->sges, wr->sg_list, rwqe->count * sizeof *rwqe->sges);
    }
    return 0;
}

bool hca_rq_dequeue(hca_rq *rq, hca_rwqe *rwqe)
{
    if (!rq->count)
        return false;
    *rwqe = rq->ring[rq->head];
    rq->head = (rq->head + 1) % rq->capacity;
    rq->count--;
    return true;
}

int hca_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    hca_qp *qp = (hca_qp *)base;
    hca_lock();
    bool is_wrong = base->srq || qp->attr.qp_state == IBV_QPS_RESET;
    int rc = is_wrong ? EINVAL : hca_rq_post(qp->rq, wr, bad);
    if (is_wrong)
        *bad = wr;
    if (qp->attr.qp_state == IBV_QPS_ERR)
        hca_qp_error(qp, -1); /* also flushes work posted now */
    hca_unlock();
    return rc;
}

/* -- shared -- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    hca_context *context = hca_context_of(pd->context);
    bool is_wrong = hca.profile.no_srq || !attr->attr.max_wr || attr->attr.max_wr > hca_limit(hca.profile.max_srq_wr, 4096) ||
                    attr->attr.max_sge > hca_limit(hca.profile.max_sge, 16);
    hca_srq *srq = is_wrong || context->device->is_dead ? NULL : calloc(1, sizeof *srq);
    if (!srq || !hca_rq_open(&srq->rq, attr->attr.max_wr, attr->attr.max_sge)) {
        free(srq);
        errno = is_wrong ? EINVAL : ENOMEM;
        return NULL;
    }
    srq->base.context = pd->context;
    srq->base.pd = pd;
    srq->base.srq_context = attr->srq_context;
    hca_lock();
    ((hca_pd *)pd)->users++;
    context->objects[HCA_SRQ]++;
    weft_list_append(&context->srqs, &srq->link);
    hca_unlock();
    return &srq->base;
}

void hca_srq_free(hca_srq *srq)
{
    hca_context *context = hca_context_of(srq->base.context);
    hca_cq_forget_rq(context, &srq->rq);
    hca_async_forget(context, srq);
    hca_rq_close(&srq->rq);
    ((hca_pd *)srq->base.pd)->users--;
    context->objects[HCA_SRQ]--;
    weft_list_remove(&srq->link);
    free(srq);
}

int ibv_destroy_srq(struct ibv_srq *base)
{
    hca_srq *srq = (hca_srq *)base;
    hca_lock();
    int rc = srq->users ? EBUSY : 0;
    if (!rc && base->handle != base->events_completed)
        hca_misuse("ibv_destroy_srq would block for ever: an asynchronous event of it is not acknowledged");
    if (!rc)
        hca_srq_free(srq);
    hca_unlock();
    return rc;
}

int ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask)
{
    hca_srq *srq = (hca_srq *)base;
    if (mask & IBV_SRQ_MAX_WR)
        return EOPNOTSUPP;
    hca_lock();
    if (mask & IBV_SRQ_LIMIT)
        srq->limit = attr->srq_limit;
    hca_unlock();
    return 0;
}

int ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr)
{
    const hca_srq *srq = (const hca_srq *)base;
    *attr = (struct ibv_srq_attr){.max_wr = srq->rq.capacity, .max_sge = srq->rq.max_sge, .srq_limit = srq->limit};
    return 0;
}

int hca_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    hca_srq *srq = (hca_srq *)base;
    hca_lock();
    int rc = hca_rq_post(&srq->rq, wr, bad);
    hca_unlock();
    return rc;
}

void hca_srq_on_dequeue(hca_qp *qp)
{
    hca_srq *srq = (hca_srq *)qp->base.srq;
    if (!srq || !srq->limit || srq->rq.count >= srq->limit)
        return;
    srq->limit = 0; /* reported once */
    hca_report_event(hca_context_of(srq->base.context), IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0);
}
