/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recv_queue: receives of a QP with a receive queue of its own, where the device has no shared ones (irdma). Called by rc_qp.c and
 * rdmacm.c (first receives), credit.c (more), flow.c (completions), epoch.c (drain).
 * Invariant: each such QP has as many receives posted as the ep's peer holds credits, and one more: the one being delivered. Any of the QPs
 * may be the one that the peer sends by. A posted slot is in qp->posted until its completion was polled, or the QP is destroyed.
 */
#include <errno.h>

#include "base/macros.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

static int post(verbs_rc_qp *qp, verbs_slot *slot)
{
    verbs_rail *rail = qp->rail;
    struct ibv_sge sge = {(uintptr_t)slot->wire, (uint32_t)sizeof(verbs_wire) + verbs_frame_max(rail->iface),
                          slot->slab->lkey[rail->index]};
    struct ibv_recv_wr request = {.wr_id = (uintptr_t)&slot->work, .sg_list = &sge, .num_sge = 1}, *bad;
    int error;
    slot->work = (verbs_work){.kind = VERBS_WORK_RECV, .rail = rail->index, .qp = qp};
    error = ibv_post_recv(qp->ibv_qp, &request, &bad);
    if (error) {
        verbs_slot_free(rail->iface, slot);
        return error;
    }
    weft_list_append(&qp->posted, &slot->link);
    qp->receives++;
    rail->cq_used++;
    return 0;
}

static int reach(verbs_rc_qp *qp, uint32_t count)
{
    verbs_rail *rail = qp->rail;
    int error = count > rail->rq_capacity ? ENOMEM : 0;
    while (!error && qp->receives < count) {
        verbs_slot *slot = rail->cq_used < rail->cq_capacity ? verbs_receive_slot(rail->iface) : NULL;
        error = slot ? post(qp, slot) : ENOMEM;
    }
    return error;
}

int verbs_recv_queue_open(verbs_rc_qp *qp)
{
    uint32_t credits = verbs_credit_reserved(qp->ep);
    int error;
    if (qp->rail->srq)
        return 0;
    error = reach(qp, (credits > VERBS_CREDITS_FIRST ? credits : VERBS_CREDITS_FIRST) + 1);
    qp->has_recv_queue = !error;
    return error;
}

bool verbs_recv_queues_reach(verbs_ep *ep, uint32_t count)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp && ep->qps[i].has_recv_queue && !ep->qps[i].is_broken && reach(&ep->qps[i], count))
            return false;
    return true;
}

void verbs_recv_queue_completed(verbs_slot *slot)
{
    slot->work.qp->receives--;
    weft_list_remove(&slot->link);
}

void verbs_recv_queue_recycle(verbs_slot *slot, bool is_flushed)
{
    verbs_rc_qp *qp = slot->work.qp;
    if (is_flushed || qp->is_broken || !qp->ibv_qp || qp->receives >= verbs_credit_reserved(qp->ep) + 1)
        verbs_slot_free(qp->rail->iface, slot);
    else if (post(qp, slot))
        verbs_conn_break(qp, NULL, "the device refused a receive");
}

void verbs_recv_queue_close(verbs_rc_qp *qp)
{
    weft_list_link *link;
    while ((link = weft_list_take(&qp->posted)) != NULL) {
        verbs_slot_free(qp->rail->iface, weft_container(link, verbs_slot, link));
        qp->rail->cq_used--;
        qp->receives--;
    }
    qp->has_recv_queue = false;
}
