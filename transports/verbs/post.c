/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post: posts work requests. A doorbell is a write to the device (or a system call), so requests that are ready together share one:
 * fragments, resent frames, frames with frame.more. A lone request is posted at once. Batches are bounded, so that the first of many is
 * not late. Called by all files that post to RC queue pairs.
 * A request counts as posted from verbs_post on. If the provider refuses one, earlier ones are in flight and later ones are not: the
 * epoch ends, and each is posted again from its owner's list (ep->sent, op->in_flight).
 */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/flow.h"

static void refused(verbs_rc_qp *qp, const struct ibv_send_wr *first, const struct ibv_send_wr *bad, int error)
{
    uint32_t all = 0, left = 0;
    char words[128];
    bool is_left = !bad;
    for (; first; first = first->next) {
        is_left = is_left || first == bad;
        left += is_left;
        all++;
    }
    qp->sq_used -= left;
    qp->rail->cq_used -= left;
    snprintf(words, sizeof words, "%s refused %u of %u work requests: %s", qp->rail->name, left, all, strerror(error));
    verbs_conn_break(qp, NULL, words);
}

static int now(verbs_rc_qp *qp, struct ibv_send_wr *first)
{
    verbs_iface *iface = qp->rail->iface;
    struct ibv_send_wr *bad = NULL;
    int error;
    iface->counts[VERBS_COUNT_POSTS]++;
    error = ibv_post_send(qp->ibv_qp, first, &bad);
    if (weft_likely(!error))
        return 0;
    refused(qp, first, bad, error);
    return WEFT_E_SYSTEM;
}

static int flush(verbs_rail *rail)
{
    verbs_batch *batch = &rail->batch;
    verbs_rc_qp *qp = batch->qp;
    uint32_t count = batch->count;
    batch->count = 0;
    batch->qp = NULL;
    if (!count || qp->is_broken || !qp->ibv_qp)
        return count ? WEFT_AGAIN : 0;
    batch->requests[count - 1].next = NULL;
    return now(qp, batch->requests);
}

static void keep(verbs_batch *batch, const struct ibv_send_wr *request)
{
    uint32_t at = batch->count++;
    batch->requests[at] = *request;
    if (request->num_sge) {
        batch->sges[at] = request->sg_list[0];
        batch->requests[at].sg_list = &batch->sges[at];
    }
    if (at)
        batch->requests[at - 1].next = &batch->requests[at];
}

static void count_in(verbs_rc_qp *qp, const struct ibv_send_wr *request)
{
    uint64_t *counts = qp->rail->iface->counts;
    qp->unsignalled++;
    if (request->send_flags & IBV_SEND_SIGNALED) {
        ((verbs_work *)(uintptr_t)request->wr_id)->covers = (uint16_t)qp->unsignalled;
        qp->unsignalled = 0;
        counts[VERBS_COUNT_SIGNALLED]++;
    }
    qp->sq_used++;
    qp->rail->cq_used++;
    counts[VERBS_COUNT_REQUESTS]++;
    counts[VERBS_COUNT_INLINE] += (request->send_flags & IBV_SEND_INLINE) != 0;
    counts[VERBS_COUNT_IMMEDIATES] += request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

int verbs_post(verbs_rc_qp *qp, struct ibv_send_wr *first, uint32_t count)
{
    verbs_rail *rail = qp->rail;
    verbs_iface *iface = rail->iface;
    verbs_batch *batch = &rail->batch;
    bool is_short = count <= VERBS_BATCH && first->num_sge <= 1; /* a batch holds one sge per request */
    int rc = 0;
    if (qp->is_broken || !qp->ibv_qp)
        return WEFT_AGAIN;
    if (batch->count && (batch->qp != qp || !is_short || batch->count + count > VERBS_BATCH) && flush(rail) && qp->is_broken)
        return WEFT_E_SYSTEM;
    for (struct ibv_send_wr *request = first; request; request = request->next)
        count_in(qp, request);
    if (!batch->count && (!iface->gathers || !is_short))
        return now(qp, first);
    batch->qp = qp;
    for (struct ibv_send_wr *request = first; request; request = request->next)
        keep(batch, request);
    iface->has_held = true;
    if (!iface->gathers)
        rc = flush(rail);
    return rc;
}

void verbs_post_flush_all(verbs_iface *iface)
{
    iface->has_held = false;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        flush(&iface->rails[i]);
}

void verbs_post_gather(verbs_iface *iface) { iface->gathers++; }

void verbs_post_go(verbs_iface *iface)
{
    iface->gathers--;
    verbs_post_flush(iface);
}

void verbs_post_hold(verbs_iface *iface) { iface->gathers--; }

void verbs_post_discard(verbs_rc_qp *qp)
{
    verbs_batch *batch = &qp->rail->batch;
    if (batch->qp == qp) {
        batch->count = 0;
        batch->qp = NULL;
    }
}
