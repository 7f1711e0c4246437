/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notice: a put's notification that is sent with its last fragment, as immediate data or as a frame right behind it. Called by rma.c
 * (sending), flow.c and replay.c (outcome).
 * Invariant: it has a frame number of the ep, so the peer counts it exactly once. Slot and op point to each other until the fragment has
 * completed, and at the end of an epoch the number shows whether the put has ended.
 */
#include "transports/verbs/op.h"

/* Immediate data has no number on the wire: the peer counts, so the write must be on the QP of numbered frames, in their order. It carries
 * neither token nor credits: if these are due, a frame follows the write instead. (Were the last credit spent on a write while the token is
 * due, neither side could send.) */
verbs_slot *verbs_flow_notice(verbs_ep *ep, verbs_op *op)
{
    bool by_frame = ep->owes_token || verbs_flow_owes_much(ep) || (ep->home && ep->home->rail->is_iwarp);
    verbs_slot *slot = NULL;
    if (verbs_flow_is_open(ep) && ep->credits && verbs_flow_has_number(ep))
        slot = verbs_slot_take(ep->iface, sizeof(verbs_wire));
    if (!slot)
        return NULL;
    slot->bytes = sizeof(verbs_wire);
    slot->seq = ++ep->tx_seq;
    slot->wire->hdr = (weft_hdr){.tag = (int32_t)op->notify};
    slot->wire->prefix.kind = by_frame ? VERBS_KIND_NOTIFY : VERBS_KIND_NOP;
    slot->is_posted = true;
    slot->op = op;
    op->notice = slot;
    ep->credits--;
    weft_list_append(&ep->sent, &slot->link);
    return slot;
}

void verbs_flow_notice_frame(verbs_ep *ep, verbs_slot *notice)
{
    verbs_flow_stamp(ep, notice, VERBS_KIND_NOTIFY, 0);
    verbs_flow_post(ep, notice, false);
}

void verbs_flow_notice_over(verbs_slot *notice)
{
    verbs_ep *ep = notice->op->ep;
    notice->op->notice = NULL;
    notice->op = NULL;
    if (notice->wire->prefix.kind == VERBS_KIND_NOP)
        verbs_flow_done(ep, notice->seq);
}

void verbs_flow_disown(verbs_slot *notice)
{
    if (!notice->op)
        return;
    notice->op->notice = NULL;
    notice->op = NULL;
    notice->wire->prefix.kind = VERBS_KIND_NOP;
}

void verbs_flow_let_go(verbs_ep *ep, verbs_slot *slot, bool is_delivered)
{
    if (slot->op) {
        slot->op->notice = NULL;
        slot->op->is_noticed = is_delivered;
        slot->op = NULL;
    }
    verbs_slot_give(ep->iface, slot);
}
