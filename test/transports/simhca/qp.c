/* SPDX-License-Identifier: BSD-3-Clause
 *
 * qp: creates and destroys queue pairs, completes their work, flushes those in error. State changes: modify.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

hca_qp *hca_qp_find(hca_device *device, uint32_t qpn)
{
    uint32_t at = qpn - HCA_QPN_FIRST;
    return at < device->qp_capacity ? device->qps[at] : NULL;
}

hca_qp *hca_qp_by_id(hca_device *device, uint32_t qpn, uint64_t id)
{
    hca_qp *qp = hca_qp_find(device, qpn);
    return qp && qp->id == id ? qp : NULL;
}

/* Numbers are reused at once: messages for an earlier queue pair are recognized by packet number, as on a wire. */
static int number_for(hca_device *device, hca_qp *qp)
{
    if (device->qp_count >= hca_limit(hca.profile.max_qp, 4096))
        return ENOMEM;
    if (device->qp_count == device->qp_capacity) {
        uint32_t room = device->qp_capacity ? 2 * device->qp_capacity : 32;
        device->qps = realloc(device->qps, room * sizeof *device->qps);
        memset(device->qps + device->qp_capacity, 0, (room - device->qp_capacity) * sizeof *device->qps);
        device->qp_capacity = room;
    }
    uint32_t at = 0;
    while (device->qps[at])
        at++;
    device->qps[at] = qp;
    device->qp_count++;
    qp->base.qp_num = HCA_QPN_FIRST + at;
    return 0;
}

/* 0 or an errno value, for requests that the kernel would refuse. */
static int is_refused(const hca_context *context, const struct ibv_qp_init_attr *attr)
{
    const simhca_profile *profile = &hca.profile;
    uint32_t wr = hca_limit(profile->max_qp_wr, 1024), sge = hca_limit(profile->max_sge, 16);
    const struct ibv_qp_cap *cap = &attr->cap;
    if (context->device->is_dead)
        return EIO;
    if ((attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD) || !attr->send_cq || !attr->recv_cq)
        return EINVAL;
    if (attr->qp_type == IBV_QPT_RC && profile->no_rc)
        return EOPNOTSUPP;
    if (cap->max_send_wr > wr || (!attr->srq && cap->max_recv_wr > wr) || cap->max_send_sge > sge || cap->max_recv_sge > sge)
        return EINVAL;
    return !profile->drops_inline && cap->max_inline_data > hca_limit(profile->max_inline, 256) ? EINVAL : 0;
}

static void set_up(hca_qp *qp, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    qp->base.context = pd->context;
    qp->base.qp_context = attr->qp_context;
    qp->base.pd = pd;
    qp->base.send_cq = attr->send_cq;
    qp->base.recv_cq = attr->recv_cq;
    qp->base.srq = attr->srq;
    qp->base.qp_type = attr->qp_type;
    qp->sig_all = attr->sq_sig_all;
    qp->cap = attr->cap;
    qp->cap.max_inline_data = hca.profile.drops_inline ? 0 : qp->cap.max_inline_data;
    qp->id = ++hca.next_id;
    qp->rq = attr->srq ? &((hca_srq *)attr->srq)->rq : &qp->own_rq;
    weft_list_init(&qp->answers);
    weft_list_init(&qp->requests);
    weft_list_init(&qp->acked);
}

static void count_users(hca_qp *qp, int by)
{
    ((hca_pd *)qp->base.pd)->users += (uint32_t)by;
    ((hca_cq *)qp->base.send_cq)->users += (uint32_t)by;
    ((hca_cq *)qp->base.recv_cq)->users += (uint32_t)by;
    if (qp->base.srq)
        ((hca_srq *)qp->base.srq)->users += (uint32_t)by;
    qp->context->objects[HCA_QP] += (uint32_t)by;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    hca_context *context = hca_context_of(pd->context);
    int rc = is_refused(context, attr);
    hca_qp *qp = rc ? NULL : calloc(1, sizeof *qp);
    if (qp) {
        hca_lock();
        qp->context = context;
        qp->device = context->device;
        set_up(qp, pd, attr);
        qp->cap.max_send_wr = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
        qp->sq_ring = qp->cap.max_send_wr * (hca.profile.early ? 16 : 1); /* a request completed early is kept until its response */
        qp->sq = calloc(qp->sq_ring, sizeof *qp->sq);
        bool has_room = qp->sq && (attr->srq || hca_rq_open(&qp->own_rq, attr->cap.max_recv_wr, attr->cap.max_recv_sge));
        rc = has_room ? number_for(context->device, qp) : ENOMEM;
        if (rc) {
            hca_rq_close(&qp->own_rq);
            free(qp->sq);
            free(qp);
            qp = NULL;
        } else {
            hca.counts[SIMHCA_QPS]++;
            count_users(qp, 1);
            weft_list_append(&context->qps, &qp->link);
            attr->cap = qp->cap;
        }
        hca_unlock();
    }
    if (!qp)
        errno = rc ? rc : ENOMEM;
    return qp ? &qp->base : NULL;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    (void)qp;
    errno = EOPNOTSUPP;
    return NULL;
}

void hca_wqe_clear(hca_wqe *wqe)
{
    free(wqe->inlined);
    free(wqe->sges);
    *wqe = (hca_wqe){.wr_id = 0};
}

static void drop_queue(weft_list_link *queue)
{
    weft_list_link *link;
    while ((link = weft_list_first(queue)))
        hca_event_free(weft_container(link, hca_event, link));
}

void hca_qp_reset(hca_qp *qp)
{
    for (; qp->done < qp->head; qp->done++)
        hca_wqe_clear(hca_wqe_at(qp, qp->done));
    qp->sent = qp->freed = qp->done = qp->head;
    qp->deadline = 0;
    qp->remote = NULL;
    qp->send_posted = qp->timer_runs = qp->is_waiting_rnr = qp->is_mute = qp->ack_mute = false;
    qp->reads_out = qp->retries = 0;
    qp->pending_break = 0;
    drop_queue(&qp->answers);
    drop_queue(&qp->requests);
    hca_visibility_free(qp->reading);
    hca_visibility_free(qp->writing);
    qp->reading = qp->writing = NULL;
    hca_visibility_drop_acked(qp);
    if (qp->writing_for)
        hca_event_free(qp->writing_for);
    qp->writing_for = NULL;
    hca_responder_drop_fetch(qp);
    qp->own_rq.count = qp->own_rq.used = qp->own_rq.head = 0;
    qp->id = ++hca.next_id; /* events of an earlier state are void */
}

void hca_qp_free(hca_qp *qp)
{
    hca_context *context = qp->context;
    uint64_t id = qp->id;
    if (hca.purges) {
        hca_cq_purge((hca_cq *)qp->base.send_cq, id);
        hca_cq_purge((hca_cq *)qp->base.recv_cq, id);
    }
    hca_qp_reset(qp);
    hca_cq_forget_rq(context, &qp->own_rq);
    hca_async_forget(context, qp);
    qp->device->qps[qp->base.qp_num - HCA_QPN_FIRST] = NULL;
    qp->device->qp_count--;
    count_users(qp, -1);
    weft_list_remove(&qp->link);
    hca_rq_close(&qp->own_rq);
    free(qp->sq);
    free(qp);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
    hca_lock();
    if (base->handle != base->events_completed)
        hca_misuse("ibv_destroy_qp would block for ever: an event of queue pair %u is not acknowledged", base->qp_num);
    if (hca_has_mws((hca_qp *)base))
        hca_misuse("ibv_destroy_qp would hang or leak: a memory window is still bound by queue pair %u", base->qp_num);
    hca_visibility_settle((hca_qp *)base, 0, UINT64_MAX);
    hca_qp_free((hca_qp *)base);
    hca_unlock();
    return 0;
}

/* -- the remote side -- */

hca_device *hca_device_by(const hca_device *from, const struct ibv_ah_attr *av)
{
    for (uint32_t i = 0; i < hca.device_count; i++) {
        hca_device *device = hca.devices[i];
        if (!device)
            continue;
        if (!av->is_global) {
            if (device->port.lid && device->port.lid == av->dlid)
                return device;
            continue;
        }
        for (uint32_t g = 0; g < device->port.gid_count; g++)
            if (device->port.gid_types[g] == from->port.gid_types[av->grh.sgid_index] &&
                memcmp(&device->port.gids[g], &av->grh.dgid, sizeof av->grh.dgid) == 0)
                return device;
    }
    return NULL;
}

hca_device *hca_remote_device(hca_qp *qp)
{
    if (!qp->remote)
        qp->remote = hca_device_by(qp->device, &qp->attr.ah_attr);
    return qp->remote;
}

bool hca_reaches(const hca_device *a, const hca_device *b)
{
    return a->port.is_up && b->port.is_up && !a->is_dead && !b->is_dead && a->port.network == b->port.network;
}

/* -- completions -- */

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE: case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW: return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV: return IBV_WC_LOCAL_INV;
    default: return IBV_WC_SEND;
    }
}

/* Of a completion in error only wr_id, status, qp_num and vendor_err are valid: the other fields get wrong values. */
static void spoil(struct ibv_wc *wc)
{
    wc->opcode = (enum ibv_wc_opcode)(hca_random() & 0xff);
    wc->byte_len = (uint32_t)hca_random();
    wc->wc_flags = (unsigned)hca_random();
    wc->src_qp = (uint32_t)hca_random();
    wc->imm_data = (uint32_t)hca_random();
    wc->vendor_err = 0x50 + (uint32_t)wc->status;
}

void hca_complete_send(hca_qp *qp, enum ibv_wc_status status)
{
    hca_wqe *wqe = hca_wqe_at(qp, qp->done);
    hca_cqe cqe = {.wc = {.wr_id = wqe->wr_id, .status = status, .opcode = opcode_of(wqe->opcode), .byte_len = wqe->length,
                          .qp_num = qp->base.qp_num},
                   .qp_id = qp->id, .place = qp->done};
    bool is_told = !wqe->is_completed_early && (status != IBV_WC_SUCCESS || qp->sig_all || (wqe->flags & IBV_SEND_SIGNALED));
    if (status != IBV_WC_SUCCESS)
        spoil(&cqe.wc);
    hca_wqe_clear(wqe);
    qp->done++;
    if (is_told)
        hca_cq_add((hca_cq *)qp->base.send_cq, &cqe, false);
}

/* It was sent: completes it now (profile.early). */
void hca_complete_early(hca_qp *qp, hca_wqe *wqe)
{
    hca_cqe cqe = {.wc = {.wr_id = wqe->wr_id, .opcode = opcode_of(wqe->opcode), .byte_len = wqe->length, .qp_num = qp->base.qp_num},
                   .qp_id = qp->id, .place = qp->sent};
    if (wqe->is_completed_early || !hca.profile.early || qp->base.qp_type != IBV_QPT_RC)
        return;
    wqe->is_completed_early = true;
    if (qp->sig_all || (wqe->flags & IBV_SEND_SIGNALED))
        hca_cq_add((hca_cq *)qp->base.send_cq, &cqe, false);
}

void hca_complete_recv(hca_qp *qp, const struct ibv_wc *wc, bool is_solicited)
{
    hca_cqe cqe = {.wc = *wc, .qp_id = qp->id, .rq = qp->rq, .is_recv = true};
    cqe.wc.qp_num = qp->base.qp_num;
    if (wc->status != IBV_WC_SUCCESS)
        spoil(&cqe.wc);
    hca_cq_add((hca_cq *)qp->base.recv_cq, &cqe, is_solicited);
}

void hca_qp_error(hca_qp *qp, int event)
{
    if (qp->attr.qp_state == IBV_QPS_RESET)
        return;
    if (qp->attr.qp_state != IBV_QPS_ERR) {
        qp->attr.qp_state = qp->base.state = IBV_QPS_ERR;
        qp->deadline = 0;
        if (event >= 0)
            hca_report_event(qp->context, (enum ibv_event_type)event, qp, 0);
    }
    if (qp->flush_posted)
        return;
    hca_event *flush = hca_event_new(HCA_FLUSH);
    flush->to = (hca_address){qp->device, qp->base.qp_num, 0};
    flush->id = qp->id;
    qp->flush_posted = true;
    hca_event_post(flush, hca.now + hca_delay(hca.profile.delay_ns, 0));
}

/* A write that is partly visible stays so, as on a wire. */
void hca_qp_flush(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    hca_rwqe rwqe;
    if (!qp)
        return;
    qp->flush_posted = false;
    if (qp->device->is_dead || ((hca_cq *)qp->base.send_cq)->is_overrun)
        return;
    drop_queue(&qp->answers);
    drop_queue(&qp->requests);
    while (qp->done < qp->head)
        hca_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
    qp->sent = qp->head;
    while (!qp->base.srq && hca_rq_dequeue(qp->rq, &rwqe))
        hca_complete_recv(qp, &(struct ibv_wc){.wr_id = rwqe.wr_id, .status = IBV_WC_WR_FLUSH_ERR}, false);
    if (qp->base.srq && !qp->was_last_early) {
        qp->was_last_early = true;
        hca_report_event(qp->context, IBV_EVENT_QP_LAST_WQE_REACHED, qp, 0);
    }
}
