/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq: completion queues and channels. An entry of a send or receive queue is free once the completion that covers it was polled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

/* -- channels -- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *base)
{
    hca_context *context = hca_context_of(base);
    hca_channel *channel = context->device->is_dead ? NULL : calloc(1, sizeof *channel);
    int fd = channel ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;
    if (fd < 0) {
        free(channel);
        return NULL;
    }
    channel->base.context = base;
    channel->base.fd = fd;
    hca_lock();
    context->objects[HCA_CHANNEL]++;
    weft_list_append(&context->channels, &channel->link);
    hca_unlock();
    return &channel->base;
}

void hca_channel_free(hca_channel *channel)
{
    hca_context_of(channel->base.context)->objects[HCA_CHANNEL]--;
    weft_list_remove(&channel->link);
    close(channel->base.fd);
    free(channel->ready);
    free(channel);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
    hca_channel *channel = (hca_channel *)base;
    hca_lock();
    int rc = channel->users ? EBUSY : 0;
    if (!rc)
        hca_channel_free(channel);
    hca_unlock();
    return rc;
}

static void tell(hca_cq *cq)
{
    hca_channel *channel = (hca_channel *)cq->base.channel;
    cq->armed = false;
    if (!channel)
        return;
    if (channel->ready_count == channel->ready_capacity) {
        channel->ready_capacity = channel->ready_capacity ? 2 * channel->ready_capacity : 16;
        channel->ready = realloc(channel->ready, channel->ready_capacity * sizeof *channel->ready);
    }
    channel->ready[channel->ready_count++] = cq;
    hca_ring(channel->base.fd);
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq, void **cq_context)
{
    hca_channel *channel = (hca_channel *)base;
    uint64_t one;
    channel->never_blocks = channel->never_blocks || (fcntl(base->fd, F_GETFL) & O_NONBLOCK);
    while (!channel->ready_count && !channel->never_blocks) {
        if (simhca_next_due() == UINT64_MAX)
            hca_misuse("ibv_get_cq_event would block for ever: the descriptor blocks and nothing is under way");
        simhca_pass(simhca_next_due() - hca.now);
    }
    hca_lock();
    if (!channel->ready_count || read(base->fd, &one, sizeof one) != sizeof one) {
        hca_unlock();
        errno = EAGAIN;
        return -1;
    }
    hca_cq *first = channel->ready[0];
    memmove(channel->ready, channel->ready + 1, --channel->ready_count * sizeof *channel->ready);
    first->events_taken++;
    *cq = &first->base;
    *cq_context = first->base.cq_context;
    hca_unlock();
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *base, unsigned count)
{
    hca_cq *cq = (hca_cq *)base;
    hca_lock();
    cq->events_acked += count;
    if (cq->events_acked > cq->events_taken)
        hca_misuse("%u completion events acknowledged, %u taken", cq->events_acked, cq->events_taken);
    hca_unlock();
}

/* -- queues -- */

struct ibv_cq *ibv_create_cq(struct ibv_context *base, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    hca_context *context = hca_context_of(base);
    bool is_long = cqe < 1 || (uint32_t)cqe > hca_limit(hca.profile.max_cqe, 32767);
    bool is_wrong = is_long || vector < 0 || vector >= base->num_comp_vectors;
    hca_cq *cq = is_wrong || context->device->is_dead ? NULL : calloc(1, sizeof *cq);
    hca_cqe *ring = cq ? calloc((size_t)cqe, sizeof *ring) : NULL;
    if (!ring) {
        free(cq);
        errno = is_wrong ? EINVAL : context->device->is_dead ? EIO : ENOMEM;
        return NULL;
    }
    cq->base.context = base;
    cq->base.channel = channel;
    cq->base.cq_context = cq_context;
    cq->base.cqe = cqe;
    cq->ring = ring;
    cq->capacity = (uint32_t)cqe;
    hca_lock();
    if (channel)
        ((hca_channel *)channel)->users++;
    context->objects[HCA_CQ]++;
    weft_list_append(&context->cqs, &cq->link);
    hca_unlock();
    return &cq->base;
}

/* Drops events of it that were not read. */
static void forget_events(hca_cq *cq)
{
    hca_channel *channel = (hca_channel *)cq->base.channel;
    uint64_t one;
    for (uint32_t i = 0; channel && i < channel->ready_count;)
        if (channel->ready[i] == cq) {
            memmove(channel->ready + i, channel->ready + i + 1, (--channel->ready_count - i) * sizeof *channel->ready);
            if (read(channel->base.fd, &one, sizeof one) != sizeof one)
                hca_misuse("a channel's descriptor was read by somebody else");
        } else {
            i++;
        }
}

void hca_cq_free(hca_cq *cq)
{
    hca_context *context = hca_context_of(cq->base.context);
    forget_events(cq);
    hca_async_forget(context, cq);
    if (cq->base.channel)
        ((hca_channel *)cq->base.channel)->users--;
    context->objects[HCA_CQ]--;
    weft_list_remove(&cq->link);
    free(cq->ring);
    free(cq);
}

int ibv_destroy_cq(struct ibv_cq *base)
{
    hca_cq *cq = (hca_cq *)base;
    hca_lock();
    int rc = cq->users ? EBUSY : 0;
    if (!rc && (cq->events_taken != cq->events_acked || base->handle != base->async_events_completed))
        hca_misuse("ibv_destroy_cq would block for ever: %u of %u completion events and %u of %u asynchronous ones acknowledged",
                   cq->events_acked, cq->events_taken, base->async_events_completed, base->handle);
    if (!rc)
        hca_cq_free(cq);
    hca_unlock();
    return rc;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    (void)cq, (void)cqe;
    return EOPNOTSUPP;
}

static void overrun(hca_cq *cq)
{
    hca_context *context = hca_context_of(cq->base.context);
    cq->is_overrun = true;
    hca.counts[SIMHCA_OVERRUNS]++;
    hca_report_event(context, IBV_EVENT_CQ_ERR, cq, 0);
    for (weft_list_link *link = context->qps.next; link != &context->qps; link = link->next) {
        hca_qp *qp = weft_container(link, hca_qp, link);
        if (qp->base.send_cq == &cq->base || qp->base.recv_cq == &cq->base)
            hca_qp_error(qp, IBV_EVENT_QP_FATAL);
    }
}

void hca_cq_add(hca_cq *cq, const hca_cqe *cqe, bool is_solicited)
{
    if (cq->is_overrun)
        return;
    if (cq->count == cq->capacity) {
        overrun(cq);
        return;
    }
    cq->ring[(cq->head + cq->count++) % cq->capacity] = *cqe;
    hca.counts[cqe->wc.status == IBV_WC_SUCCESS ? SIMHCA_COMPLETIONS
               : cqe->wc.status == IBV_WC_WR_FLUSH_ERR ? SIMHCA_FLUSHED : SIMHCA_ERRORS]++;
    if (cq->armed && (!cq->armed_solicited || is_solicited || cqe->wc.status != IBV_WC_SUCCESS))
        tell(cq);
}

/* Its queue entries are free again. */
static void retire(hca_cq *cq, const hca_cqe *cqe)
{
    hca_qp *qp = hca_qp_by_id(hca_context_of(cq->base.context)->device, cqe->wc.qp_num, cqe->qp_id);
    if (!cqe->is_recv && qp) {
        if (cqe->place >= qp->freed)
            qp->freed = cqe->place + 1;
    } else if (cqe->is_recv && cqe->rq) {
        cqe->rq->used--;
    }
}

void hca_cq_purge(hca_cq *cq, uint64_t qp_id)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cq->count; i++) {
        hca_cqe *cqe = &cq->ring[(cq->head + i) % cq->capacity];
        if (cqe->qp_id == qp_id)
            retire(cq, cqe);
        else
            cq->ring[(cq->head + kept++) % cq->capacity] = *cqe;
    }
    cq->count = kept;
}

void hca_cq_forget_rq(hca_context *context, const hca_rq *rq)
{
    for (weft_list_link *link = context->cqs.next; link != &context->cqs; link = link->next) {
        hca_cq *cq = weft_container(link, hca_cq, link);
        for (uint32_t i = 0; i < cq->count; i++)
            if (cq->ring[(cq->head + i) % cq->capacity].rq == rq)
                cq->ring[(cq->head + i) % cq->capacity].rq = NULL;
    }
}

int hca_poll_cq(struct ibv_cq *base, int count, struct ibv_wc *wc)
{
    hca_cq *cq = (hca_cq *)base;
    int n = 0;
    hca_lock();
    uint64_t ns = 20 + hca_random() % 100;
    hca_unlock();
    if (cq->count || base->channel)
        hca_spend(ns, cq->count == 0);
    else
        hca_spin(ns);
    hca_lock();
    while (n < count && cq->count) {
        const hca_cqe *cqe = &cq->ring[cq->head];
        wc[n++] = cqe->wc;
        retire(cq, cqe);
        cq->head = (cq->head + 1) % cq->capacity;
        cq->count--;
    }
    if (n)
        hca.dull = 0;
    hca_unlock();
    return n;
}

int hca_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
    hca_cq *cq = (hca_cq *)base;
    hca_lock();
    cq->armed_solicited = solicited_only && (!cq->armed || cq->armed_solicited);
    cq->armed = true;
    hca_unlock();
    return 0;
}
