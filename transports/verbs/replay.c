/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replay: frames at a change of epochs. Down: posted work is flushed; numbered frames stay in ep->sent, others are dropped. Up: frames
 * that the peer has delivered are freed, the rest is resent in order, as credits allow. Called by conn.c, epoch.c, flow.c.
 * Invariant: a number is assigned once. The number of a notification that was lost with its write is resent as an empty frame.
 */
#include "base/log.h"
#include "transports/verbs/rma_op.h"

static void reset_qp(verbs_rc_qp *qp)
{
    if (qp->rail)
        qp->rail->cq_used -= qp->sq_used;
    qp->sq_used = qp->reads_used = qp->unsignalled = 0;
    qp->in_flight_bytes = 0;
    qp->is_syncing = false;
}

void verbs_flow_down(verbs_ep *ep)
{
    verbs_eager_ring_down(ep);
    for (uint8_t i = 0; i < ep->qp_count; i++)
        reset_qp(&ep->qps[i]);
    for (weft_list_link *link; (link = weft_list_take(&ep->control)) != NULL;)
        verbs_slot_free(ep->iface, weft_container(link, verbs_slot, link));
    ep->unsent = 0;
    for (weft_list_link *link = ep->sent.next; link != &ep->sent; link = link->next) {
        weft_container(link, verbs_slot, link)->is_posted = false;
        ep->unsent++;
    }
    verbs_flow_drop_held(ep);
    verbs_credit_end(ep);
    ep->is_garbled = false;
    ep->credits = ep->fences_done = 0;
    ep->has_token = false;
    if (ep->by_due.next != &ep->by_due)
        weft_list_remove(&ep->by_due);
}

/* Undelivered notifications: the puts notify again after their bytes are resent; the old numbers become empty frames. */
static void detach_notifications(verbs_ep *ep)
{
    for (weft_list_link *link = ep->sent.next; link != &ep->sent; link = link->next)
        verbs_notify_detach(weft_container(link, verbs_slot, link));
}

void verbs_flow_up(verbs_ep *ep, uint32_t remote_rx_seq, uint32_t credits)
{
    ep->credits = credits ? credits - 1 : 0;
    ep->has_token = credits > 0;
    for (weft_list_link *link; (link = weft_list_first(&ep->sent)) != NULL;) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (verbs_seq_diff(slot->seq, remote_rx_seq) > 0)
            break;
        weft_list_remove(link);
        verbs_notify_free(ep, slot, true);
        ep->unsent--;
    }
    detach_notifications(ep);
    if (verbs_seq_diff(remote_rx_seq, ep->tx_acked) < 0 || verbs_seq_diff(remote_rx_seq, ep->tx_seq) > 0) {
        weft_log_error("rank %u reports frames received up to %u; it had acknowledged %u, and %u were sent", ep->proc_id.rank,
                       remote_rx_seq, ep->tx_acked, ep->tx_seq);
        verbs_conn_fail(ep, "a frame that was acknowledged did not arrive");
        return;
    }
    ep->tx_acked = ep->tx_done = ep->remote_rx = remote_rx_seq;
    if (ep->unsent)
        verbs_flow_queue_due(ep);
}

void verbs_flow_give_up(verbs_ep *ep)
{
    verbs_flow_down(ep);
    for (weft_list_link *link; (link = weft_list_take(&ep->sent)) != NULL;)
        verbs_notify_free(ep, weft_container(link, verbs_slot, link), false);
    ep->unsent = 0;
}

int verbs_flow_resend(verbs_ep *ep)
{
    int n = 0;
    verbs_post_gather(ep->iface);
    for (weft_list_link *link = ep->sent.next; link != &ep->sent && ep->unsent; link = link->next) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (slot->is_posted)
            continue;
        if (!ep->credits || ep->state != VERBS_UP || !ep->is_confirmed || !ep->home->ibv_qp || ep->home->is_broken ||
            !verbs_rc_qp_has_room(ep->home, 1))
            break;
        ep->credits--;
        verbs_flow_stamp(ep, slot, slot->wire->prefix.kind, 0);
        ep->unsent--;
        ep->iface->counts[VERBS_COUNT_RESENT]++;
        n++;
        verbs_flow_post(ep, slot, false);
    }
    verbs_post_go(ep->iface);
    return n;
}
