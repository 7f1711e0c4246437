/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evict: closes an idle connection, else the one evicted longest ago, if a new peer finds no receive slots. Both sides close in peace and
 * reconnect when either sends, so a rank serves any number of peers with the slots of a few. Called by conn.c (slots are needed), flow.c
 * (EVICT_REQ, EVICT_ACK). Not on iWARP, where an unnumbered frame completes before it has arrived.
 *
 * QUIESCE: no new frames but notifications of puts; waits until all frames have arrived and all ops have ended. Then one side sends
 * EVICT_REQ and starts nothing more (REQUESTED); it still returns credits, else the peer might have none for the answer. The other side,
 * when quiet too, answers EVICT_ACK and closes when that has arrived; the receiver closes at once, credits in flight are lost. If both have
 * requested, the request of the higher rank is answered. Both frames are ordered with the others, and neither is sent while an error could
 * leave an atomic's result unknown.
 *
 * An error meanwhile ends the epoch as usual: EVICT_ACK may be lost with it, so both must learn of a new epoch. In REQUESTED an empty
 * request is posted now and then: nothing else would detect that the peer's QP is gone.
 *
 * Eager rings end with the epoch, whether in use or taken back. Frames written into them have completed when the writer is quiet, and stand
 * before its EVICT_REQ or EVICT_ACK on the same QP: they are visible when that comes, and are read then.
 *
 * Slots of a connecting ep are given to one whose peer has granted its own; else two ranks could hold slots for others for ever.
 * Invariant: an ep that is UP has carried a frame, or was up for NEW_NS, before it is evicted.
 */
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#include "base/macros.h"

#define SCAN_NS 250000ull         /* interval of checks whether all is quiet */
#define PROVE_NS 20000000ull
#define NEW_NS 20000000ull        /* minimum time up, unless it was used */
#define TRIES_FOR_BUSY 4u         /* attempts before an ep that is not idle is evicted */

static uint32_t uses(const verbs_ep *ep) { return ep->tx_seq + ep->rx_seq; }

static bool can_evict(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *hs = ep->hs;
    if (ep->state != VERBS_UP || ep->evict || hs->is_closing || hs->remote_is_gone || ep->home->rail->is_iwarp)
        return false;
    return uses(ep) != hs->up_uses || now - hs->up_ns > NEW_NS;
}

/* The first ep that was unused since the last scan (even_busy: any), in order of the list: longest since eviction first. Marks the use of
 * the others. */
static verbs_ep *choose(verbs_iface *iface, bool even_busy, uint64_t now)
{
    verbs_ep *chosen = NULL;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
        bool is_idle = ep->evict_uses == uses(ep);
        if (ep->evict == VERBS_EVICT_QUIESCE || ep->evict == VERBS_EVICT_REQUESTED)
            return NULL; /* one eviction at a time */
        ep->evict_uses = uses(ep);
        if (!chosen && can_evict(ep, now) && (is_idle || even_busy))
            chosen = ep;
    }
    return chosen;
}

/* Frees the slots of a connecting ep whose peer has not answered. True: one was found. */
static bool free_unanswered_slots(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *other = weft_container(link, verbs_ep, by_iface);
        verbs_handshake *hs = other->hs;
        if (other == ep || other->state != VERBS_CONNECTING || !hs->local_credits || hs->by_cm || hs->is_connected ||
            verbs_conn_has_offer(other))
            continue;
        hs->local_credits = 0;
        verbs_credit_end(other);
        return true;
    }
    return false;
}

void verbs_evict_for(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    uint64_t now = iface->now_ns();
    verbs_ep *chosen;
    if (verbs_conn_has_offer(ep) && free_unanswered_slots(ep))
        return;
    chosen = choose(iface, ep->tries >= TRIES_FOR_BUSY, now);
    if (!chosen)
        return;
    weft_list_remove(&chosen->by_iface);
    weft_list_append(&iface->eps, &chosen->by_iface);
    chosen->evict = VERBS_EVICT_QUIESCE;
    verbs_conn_due(chosen, now);
}

void verbs_evict_handle(verbs_ep *ep, enum verbs_kind kind)
{
    bool peer_must_answer;
    verbs_eager_ring_catch_up(ep);
    peer_must_answer = ep->evict == VERBS_EVICT_REQUESTED && ep->iface->self.rank > ep->proc_id.rank;
    if (kind == VERBS_KIND_EVICT_ACK) {
        ep->evict = VERBS_EVICT_ACKED;
    } else if (!peer_must_answer) {
        ep->evict = VERBS_EVICT_QUIESCE;
        ep->is_evict_requested = true;
    }
    verbs_conn_due(ep, ep->iface->now_ns());
}

int verbs_evict_progress(verbs_ep *ep, uint64_t now)
{
    if (ep->evict == VERBS_EVICT_NONE || ep->state != VERBS_UP)
        return 0;
    if (ep->evict == VERBS_EVICT_QUIESCE && verbs_conn_is_settled(ep) &&
        verbs_flow_control(ep, ep->is_evict_requested ? VERBS_KIND_EVICT_ACK : VERBS_KIND_EVICT_REQ, NULL) == 0)
        ep->evict = ep->is_evict_requested ? VERBS_EVICT_ACKED : VERBS_EVICT_REQUESTED;
    else if (ep->evict == VERBS_EVICT_ACKED && (!ep->is_evict_requested || verbs_flow_is_quiet(ep))) {
        ep->iface->counts[VERBS_COUNT_EVICTIONS]++;
        verbs_conn_end(ep);
        return 1;
    }
    if (ep->evict == VERBS_EVICT_REQUESTED) /* detects a dead QP of the peer */
        verbs_rc_qp_fence(ep->home);
    verbs_conn_due(ep, now + (ep->evict == VERBS_EVICT_REQUESTED ? PROVE_NS : SCAN_NS));
    return 0;
}
