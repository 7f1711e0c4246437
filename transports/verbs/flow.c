/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: frames of an ep (docs/verbs.md, "A frame"). A frame takes a credit, a receive slot at the peer; credits return with any frame.
 *
 * Token: a side with nothing to send returns credits in a frame of its own, which needs a receive slot too. Were that an ordinary one,
 * both sides could use their last credits at the same time and neither could return any. So each peer has one more slot, the token's, for
 * a frame that returns at least one credit. The token returns with the next frame of the other side. A side without token has returned a
 * credit, so the other can send, and its next frame brings the token. The token is never used for anything else.
 *
 * Number of credits: a peer that uses all its credits had too few: its target doubles while receives can be had; else idle peers are
 * asked to give up all but one.
 *
 * Invariants: every rail has as many receives posted as credits are granted over all peers, so no frame finds an empty SRQ. A numbered
 * frame's slot is kept until it is known to have arrived: its work request has completed (iWARP: the peer's ack, or a read fence behind
 * it).
 */
#include "transports/verbs/flow.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"

#define TARGET_MAX 64u
#define UNSIGNALLED_MAX 32u
#define HOLD_BYTES 1024u /* a longer frame takes longer to pack than a doorbell: nothing waits for it */
#define PATIENT_POLLS 32u /* polls that credits wait for a frame of the caller to carry them */

typedef struct verbs_held { /* a copy of a frame received ahead of order */
    weft_list_link link;
    uint32_t seq, bytes;
    _Alignas(8) uint8_t wire[];
} verbs_held;

/* The full number with low half `low` that is nearest to `near`. */
static uint32_t expand(uint32_t near, uint16_t low)
{
    return near + (uint32_t)(int32_t)(int16_t)(uint16_t)(low - (uint16_t)near);
}

/* -- returning credits -- */

/* True if credits need a frame of their own now: the peer has few left, or they have been due for PATIENT_POLLS. */
static bool is_urgent(const verbs_ep *ep)
{
    return ep->granted <= ep->target / 4 || ep->iface->polls - ep->due_since > PATIENT_POLLS;
}

void verbs_flow_queue_due(verbs_ep *ep)
{
    if (ep->by_due.next == &ep->by_due) {
        weft_list_append(&ep->iface->due, &ep->by_due);
        ep->due_since = ep->iface->polls;
    }
}

/* -- sending -- */

void verbs_flow_begin(verbs_ep *ep)
{
    weft_list_init(&ep->sent);
    weft_list_init(&ep->held);
    weft_list_init(&ep->control);
    weft_list_init(&ep->by_due);
    weft_list_init(&ep->ops);
    weft_list_init(&ep->by_rma);
}

void verbs_flow_stamp(verbs_ep *ep, verbs_slot *slot, enum verbs_kind kind, uint8_t flags)
{
    if (ep->token_due)
        flags |= VERBS_FLAG_TOKEN;
    ep->token_due = false;
    slot->wire->prefix = (verbs_prefix){.seq = (uint16_t)slot->seq, .ack = (uint16_t)(ep->rx_seq - ep->in_ring),
                                        .credits = (uint16_t)verbs_credit_grant(ep), .kind = (uint8_t)kind, .flags = flags};
}

/* Slots or queue entries are used up, maybe by unsignalled requests: requests their completion. */
static void request_completions(verbs_iface *iface)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
        if (ep->state == VERBS_UP && ep->home)
            verbs_rc_qp_sync(ep->home);
    }
}

/* The last frame (BYE, docs/wire.md) must be signalled: a later sync might address a peer that has gone. */
static bool wants_signal(const verbs_rc_qp *qp, const verbs_slot *slot)
{
    uint32_t max = qp->sq_capacity / 4 < UNSIGNALLED_MAX ? qp->sq_capacity / 4 : UNSIGNALLED_MAX;
    bool is_last = slot->wire->prefix.kind == VERBS_KIND_PLAIN && slot->wire->hdr.kind == WEFT_FRAME_BYE;
    return is_last || qp->unsignalled + 1 >= max || verbs_slots_are_scarce(qp->ep->iface);
}

/* A refused post ends the epoch; the frame stays in its list, to be resent or dropped. */
void verbs_flow_post(verbs_ep *ep, verbs_slot *slot, bool must_signal)
{
    verbs_rc_qp *qp = ep->home;
    verbs_rail *rail = qp->rail;
    struct ibv_sge sge = {(uintptr_t)slot->wire, slot->bytes, slot->slab->lkey[rail->index]};
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&slot->work, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    if (slot->bytes <= rail->max_inline)
        request.send_flags |= IBV_SEND_INLINE;
    if (must_signal || wants_signal(qp, slot))
        request.send_flags |= IBV_SEND_SIGNALED;
    slot->work = (verbs_work){.kind = VERBS_WORK_SEND, .rail = rail->index, .qp = qp};
    slot->is_posted = true;
    if (verbs_kind_is_numbered(slot->wire->prefix.kind))
        ep->is_put_behind = false;
    verbs_post(qp, &request, 1);
}

/* Returns AGAIN; the ep's wakeup fires when it may succeed. Credits, connecting and errors wake by what is received; slots and queue
 * entries by completions, which are requested here. */
static int block(verbs_ep *ep, bool needs_completions)
{
    ep->is_blocked = true;
    if (needs_completions)
        request_completions(ep->iface);
    return WEFT_AGAIN;
}

/* A slot with the next frame number, or NULL: try later. A ring's frame needs a cell, no credit, and a trailing word. */
static verbs_slot *alloc_slot(verbs_ep *ep, uint32_t bytes, bool is_open, bool by_ring)
{
    verbs_slot *slot = NULL;
    bool has_room;
    if (!is_open || !(ep->credits || by_ring)) {
        block(ep, false);
        return NULL;
    }
    has_room = verbs_rc_qp_has_room(ep->home, 1) && verbs_flow_has_number(ep);
    slot = has_room ? verbs_slot_alloc(ep->iface, by_ring ? weft_round_up(bytes, 8) + 8 : bytes) : NULL;
    if (!slot) {
        block(ep, true);
        return NULL;
    }
    slot->bytes = bytes;
    slot->seq = ++ep->tx_seq;
    return slot;
}

static void launch(verbs_ep *ep, verbs_slot *slot, enum verbs_kind kind, bool by_ring)
{
    ep->credits -= !by_ring;
    ep->is_blocked = false;
    verbs_flow_stamp(ep, slot, kind, 0);
    weft_list_append(&ep->sent, &slot->link);
    if (by_ring)
        verbs_eager_ring_send(ep, slot, wants_signal(ep->home, slot));
    else
        verbs_flow_post(ep, slot, false);
}

/* Not UP: fails for a lost peer; else begins to connect and returns AGAIN. */
static int not_open(verbs_ep *ep)
{
    if (ep->state == VERBS_FAILED)
        return weft_fail(WEFT_E_PEER, "rank %u is lost: %s", ep->proc_id.rank, ep->last_error[0] ? ep->last_error : "it does not answer");
    if (ep->state == VERBS_NEW)
        verbs_conn_begin(ep);
    return block(ep, false);
}

/* Requests held back for this frame (frame.more) must not wait for it. */
static int try_later(verbs_ep *ep)
{
    verbs_post_flush(ep->iface);
    return WEFT_AGAIN;
}

int verbs_send(weft_iface *iface, weft_ep *to, const weft_frame *frame)
{
    verbs_ep *ep = (verbs_ep *)to;
    uint32_t bytes = frame->hdr.bytes;
    verbs_slot *slot;
    bool by_ring;
    if (weft_unlikely(bytes > iface->caps.frame_max))
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", bytes, iface->caps.frame_max);
    if (weft_unlikely(ep->state != VERBS_UP))
        return not_open(ep);
    by_ring = ep->ring && !ep->is_put_behind && verbs_eager_ring_has_space(ep, (uint32_t)sizeof(verbs_wire) + bytes);
    slot = alloc_slot(ep, (uint32_t)sizeof(verbs_wire) + bytes, verbs_flow_is_open(ep), by_ring);
    if (!slot)
        return try_later(ep);
    slot->wire->hdr = frame->hdr;
    if (frame->pack)
        frame->pack(frame, slot->wire->body);
    else if (bytes)
        memcpy(slot->wire->body, frame->body, bytes);
    if (weft_unlikely(frame->more && bytes <= HOLD_BYTES)) {
        verbs_post_gather(ep->iface);
        launch(ep, slot, VERBS_KIND_PLAIN, by_ring);
        verbs_post_hold(ep->iface);
    } else {
        launch(ep, slot, VERBS_KIND_PLAIN, by_ring);
    }
    return 0;
}

int verbs_flow_notify(verbs_ep *ep, uint32_t value)
{
    verbs_slot *slot = alloc_slot(ep, (uint32_t)sizeof(verbs_wire), verbs_flow_may_notify(ep), false);
    if (!slot)
        return WEFT_AGAIN;
    slot->wire->hdr = (weft_hdr){.tag = (int32_t)value};
    launch(ep, slot, VERBS_KIND_NOTIFY, false);
    return 0;
}

int verbs_flow_control(verbs_ep *ep, enum verbs_kind kind, const weft_hdr *hdr)
{
    bool by_token = kind == VERBS_KIND_CREDITS;
    verbs_rc_qp *qp = ep->home;
    verbs_slot *slot;
    if (ep->state != VERBS_UP || !ep->is_confirmed || !qp || !qp->ibv_qp || qp->is_broken || ep->evict == VERBS_EVICT_ACKED)
        return WEFT_AGAIN;
    if (by_token ? !ep->has_token || ep->granted >= ep->target : !ep->credits || ep->unsent)
        return WEFT_AGAIN;
    if (qp->sq_used + 2 > qp->sq_capacity || qp->rail->cq_used + 2 > qp->rail->cq_capacity)
        return WEFT_AGAIN;
    slot = verbs_slot_alloc(ep->iface, sizeof(verbs_wire));
    if (!slot)
        return WEFT_AGAIN;
    slot->bytes = by_token ? sizeof(verbs_prefix) : sizeof(verbs_wire);
    slot->seq = ep->tx_seq - ep->unsent;
    if (hdr)
        slot->wire->hdr = *hdr;
    else
        slot->wire->hdr = (weft_hdr){0};
    verbs_flow_stamp(ep, slot, kind, by_token ? VERBS_FLAG_BY_TOKEN : 0);
    if (by_token && !slot->wire->prefix.credits) { /* no credit to return now; a token to be returned may wait */
        ep->token_due = slot->wire->prefix.flags & VERBS_FLAG_TOKEN;
        verbs_slot_free(ep->iface, slot);
        return WEFT_AGAIN;
    }
    if (by_token)
        ep->has_token = false;
    else
        ep->credits--;
    ep->iface->counts[VERBS_COUNT_CONTROL]++;
    weft_list_append(&ep->control, &slot->link);
    verbs_flow_post(ep, slot, true);
    return 0;
}

/* -- completed sends -- */

static bool has_arrived(const verbs_ep *ep, const verbs_slot *slot)
{
    if (!slot->is_posted || verbs_seq_diff(slot->seq, ep->tx_done) > 0)
        return false;
    return !ep->home || !ep->home->rail->completes_early || verbs_seq_diff(slot->seq, ep->tx_acked) <= 0;
}

static void free_arrived(verbs_ep *ep)
{
    for (weft_list_link *link; (link = weft_list_first(&ep->sent)) != NULL;) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (!has_arrived(ep, slot))
            break;
        if (verbs_seq_diff(slot->seq, ep->tx_acked) > 0)
            ep->tx_acked = slot->seq;
        weft_list_remove(link);
        verbs_notify_free(ep, slot, true);
    }
}

void verbs_flow_done(verbs_ep *ep, uint32_t seq)
{
    if (verbs_seq_diff(seq, ep->tx_done) > 0)
        ep->tx_done = seq;
    free_arrived(ep);
}

static void send_completed(const struct ibv_wc *wc)
{
    verbs_slot *slot = (verbs_slot *)(uintptr_t)wc->wr_id;
    verbs_ep *ep = slot->work.qp->ep;
    uint32_t seq = slot->seq;
    if (!verbs_kind_is_numbered(slot->wire->prefix.kind)) {
        weft_list_remove(&slot->link);
        verbs_slot_free(ep->iface, slot);
    }
    verbs_flow_done(ep, seq);
}

/* -- receiving -- */

void verbs_flow_apply_prefix(verbs_ep *ep, const verbs_prefix *prefix)
{
    uint32_t ack = expand(ep->tx_acked, prefix->ack);
    ep->credits += prefix->credits;
    if (prefix->flags & VERBS_FLAG_TOKEN)
        ep->has_token = true;
    if (verbs_seq_diff(ack, ep->tx_acked) > 0 && verbs_seq_diff(ack, ep->tx_seq) <= 0) {
        ep->tx_acked = ack;
        free_arrived(ep);
    }
    ack = expand(ep->remote_rx, prefix->ack);
    if (verbs_seq_diff(ack, ep->remote_rx) > 0)
        ep->remote_rx = ack;
}

static void deliver(verbs_ep *ep, const verbs_wire *wire)
{
    weft_iface *iface = &ep->iface->iface;
    ep->rx_seq++;
    if (wire->prefix.kind == VERBS_KIND_NOTIFY)
        iface->callbacks->notify(iface->owner, ep->ep.peer, (uint32_t)wire->hdr.tag);
    else if (wire->prefix.kind == VERBS_KIND_PLAIN)
        iface->callbacks->recv_frame(iface->owner, ep->ep.peer, &wire->hdr, wire->body);
    if (++ep->recent >= VERBS_RING_BUSY)
        verbs_eager_ring_consider(ep);
}

/* Copies the frame, so that its receive slot is free; sorted by number. Drops one that came before. */
static bool hold(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes, uint32_t seq)
{
    weft_list_link *at = ep->held.prev;
    verbs_held *held;
    while (at != &ep->held && verbs_seq_diff(weft_container(at, verbs_held, link)->seq, seq) > 0)
        at = at->prev;
    if (at != &ep->held && weft_container(at, verbs_held, link)->seq == seq)
        return true;
    held = malloc(sizeof *held + bytes);
    if (!held)
        return false;
    held->seq = seq;
    held->bytes = bytes;
    memcpy(held->wire, wire, bytes);
    held->link.prev = at;
    held->link.next = at->next;
    at->next->prev = &held->link;
    at->next = &held->link;
    return true;
}

void verbs_flow_drop_held(verbs_ep *ep)
{
    for (weft_list_link *link; (link = weft_list_take(&ep->held)) != NULL;)
        free(weft_container(link, verbs_held, link));
}

static void deliver_held(verbs_ep *ep)
{
    for (weft_list_link *link; (link = weft_list_first(&ep->held)) != NULL;) {
        verbs_held *held = weft_container(link, verbs_held, link);
        if (held->seq != ep->rx_seq + 1)
            break;
        weft_list_remove(link);
        deliver(ep, (const verbs_wire *)held->wire);
        free(held);
    }
}

bool verbs_flow_recv(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes)
{
    uint32_t seq = expand(ep->rx_seq, wire->prefix.seq);
    int32_t ahead = verbs_seq_diff(seq, ep->rx_seq);
    if (wire->hdr.bytes != bytes - sizeof *wire || ahead > 2 * VERBS_IN_FLIGHT_MAX)
        return false;
    if (ahead > 1) { /* earlier frames are most likely in the ring */
        verbs_eager_ring_catch_up(ep);
        ahead = verbs_seq_diff(seq, ep->rx_seq);
    }
    if (ahead <= 0) /* a duplicate */
        return true;
    if (ahead > 1) { /* its sender may have freed it already: without a copy it is lost */
        if (!hold(ep, wire, bytes, seq)) {
            ep->is_garbled = true;
            verbs_conn_fail(ep, "no memory for a frame received out of order");
        }
        return true;
    }
    deliver(ep, wire);
    deliver_held(ep);
    return true;
}

/* A write with immediate data came by the QP of the peer's frames. All frames before it on that QP have come, or are in the ring: the
 * completion proves that all earlier writes are visible. So its number is the next. After an unreadable frame the number is uncertain: the
 * write is not counted, and is repeated in the next epoch. */
static void recv_immediate(verbs_ep *ep, uint32_t value)
{
    verbs_wire wire = {.prefix = {.kind = VERBS_KIND_NOTIFY}, .hdr = {.tag = (int32_t)value}};
    verbs_eager_ring_catch_up(ep);
    if (ep->is_garbled)
        return;
    deliver(ep, &wire);
    deliver_held(ep);
}

static void return_unused_credits(verbs_ep *ep)
{
    uint32_t many = ep->credits > 2 ? ep->credits - 2 : 0; /* one is for this frame */
    weft_hdr hdr = {.tag = (int32_t)many};
    if (!many)
        return;
    ep->credits -= many;
    if (verbs_flow_control(ep, VERBS_KIND_RETURN, &hdr))
        ep->credits += many;
}

/* Handles an unnumbered frame, also those of the ring. False: unreadable. */
static bool recv_control(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes)
{
    if (wire->prefix.kind == VERBS_KIND_CREDITS)
        return true;
    if (bytes < sizeof *wire)
        return false;
    switch (wire->prefix.kind) {
    case VERBS_KIND_RECALL:
        return_unused_credits(ep);
        return true;
    case VERBS_KIND_RETURN:
        verbs_credit_return(ep, (uint32_t)wire->hdr.tag);
        return true;
    case VERBS_KIND_RING_OPEN:
    case VERBS_KIND_RING_SHUT:
    case VERBS_KIND_RING_DONE:
        return verbs_eager_ring_handle(ep, wire->prefix.kind, &wire->hdr);
    case VERBS_KIND_EVICT_REQ:
    case VERBS_KIND_EVICT_ACK:
        verbs_evict_handle(ep, wire->prefix.kind);
        return true;
    default:
        return false;
    }
}

/* A peer that has used all its credits had too few. */
static void credit_used(verbs_ep *ep)
{
    uint32_t before = ep->granted;
    verbs_credit_return(ep, 1);
    if (before && !ep->granted && ep->target < (ep->iface->is_small ? 2 : TARGET_MAX))
        ep->target *= 2;
}

static bool handle_frame(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes)
{
    if (bytes < sizeof wire->prefix)
        return false;
    verbs_flow_apply_prefix(ep, &wire->prefix);
    if (wire->prefix.flags & VERBS_FLAG_BY_TOKEN)
        ep->token_due = true;
    else
        credit_used(ep);
    if (!verbs_kind_is_numbered(wire->prefix.kind))
        return recv_control(ep, wire, bytes);
    return bytes >= sizeof *wire && verbs_flow_recv(ep, wire, bytes);
}

static void receive_completed(verbs_rail *rail, const struct ibv_wc *wc)
{
    verbs_slot *slot = (verbs_slot *)(uintptr_t)wc->wr_id;
    verbs_rc_qp *own = slot->work.qp, *qp = own ? own : verbs_rc_qp_of(rail, wc->qp_num);
    if (own)
        verbs_recv_queue_completed(slot);
    else
        rail->receives--;
    if (qp && wc->status == IBV_WC_SUCCESS) {
        verbs_ep *ep = qp->ep;
        if (!ep->is_confirmed)
            verbs_conn_on_arrival(ep);
        if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
            credit_used(ep);
            recv_immediate(ep, ntohl(wc->imm_data));
        } else if (!handle_frame(ep, slot->wire, wc->byte_len)) {
            ep->is_garbled = true;
            verbs_conn_break(qp, NULL, "an invalid frame was received");
        }
        if (verbs_flow_credits_due(ep))
            verbs_flow_queue_due(ep);
    } else if (qp) {
        verbs_conn_break(qp, wc, NULL);
    }
    if (own)
        verbs_recv_queue_recycle(slot, wc->status != IBV_WC_SUCCESS);
    else
        verbs_receive_recycle(rail, slot);
}

static void sync_completed(verbs_rc_qp *qp)
{
    verbs_ep *ep = qp->ep;
    qp->is_syncing = false;
    ep->fences_done += qp->sync_is_fence;
    if (qp->sync_is_fence && verbs_seq_diff(qp->sync_seq, ep->tx_acked) > 0)
        ep->tx_acked = qp->sync_seq;
    verbs_flow_done(ep, qp->sync_seq);
}

void verbs_flow_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    const verbs_work *work = (const verbs_work *)(uintptr_t)wc->wr_id;
    if (work->kind == VERBS_WORK_RECV) {
        receive_completed(rail, wc);
    } else if (work->kind == VERBS_WORK_SYNC) {
        sync_completed(work->qp);
    } else {
        send_completed(wc);
    }
}

/* -- progress -- */

/* Sends what is due: frames again, replies of the ring, credits. True: something is still due. */
static bool send_due(verbs_ep *ep, bool in_haste, int *n)
{
    bool waits;
    if (ep->unsent)
        *n += verbs_flow_resend(ep);
    waits = verbs_eager_ring_send_due(ep) || ep->unsent;
    if (!verbs_flow_credits_due(ep))
        return waits;
    if (!in_haste && !is_urgent(ep))
        return true;
    return verbs_flow_control(ep, VERBS_KIND_CREDITS, NULL) || waits; /* no token, or no queue entry: retried, or a frame carries them */
}

static int turn(verbs_iface *iface, bool in_haste)
{
    weft_list_link again;
    int n = 0;
    weft_list_init(&again);
    weft_list_splice(&again, &iface->due);
    for (weft_list_link *link; (link = weft_list_take(&again)) != NULL;) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_due);
        uint32_t since = ep->due_since;
        if (send_due(ep, in_haste, &n)) {
            verbs_flow_queue_due(ep);
            ep->due_since = since;
        }
    }
    verbs_receives_post(iface);
    return n;
}

int verbs_flow_progress(verbs_iface *iface) { return turn(iface, false); }
void verbs_flow_defer(verbs_iface *iface) { turn(iface, true); }

/* ep_close calls this repeatedly: it requests the completions that it waits for. */
bool verbs_flow_is_quiet(verbs_ep *ep)
{
    if (ep->state == VERBS_UP && ep->home)
        verbs_rc_qp_sync(ep->home);
    return weft_list_is_empty(&ep->sent) && weft_list_is_empty(&ep->control);
}

/* -- open, close -- */

int verbs_flow_open(verbs_iface *iface)
{
    weft_list_init(&iface->due);
    for (uint8_t i = 0; i < iface->rail_count; i++)
        weft_list_init(&iface->rails[i].emptied);
    return verbs_slots_open(iface);
}

void verbs_flow_close(verbs_iface *iface)
{
    verbs_slots_close(iface);
}
