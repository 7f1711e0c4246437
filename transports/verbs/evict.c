/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evict: who gives way when a new peer cannot be lent receive slots because others hold them all. A connection that has been idle, or
 * the one that had its turn longest ago, is closed by both sides in peace, and is made anew when either side has something to say:
 * so a rank serves any number of peers with the slots of a few. Called by conn.c (somebody wants slots), by flow.c (what the peer says).
 *
 * Both stop first: no frame is taken (TIRED) until all that was sent has arrived and all moves have ended; then one side sends REST and
 * starts nothing more (ASKS; credits still go, or the other might have none to answer with); the other, when it has nothing under way
 * either, answers RESTED and closes when that has arrived; who hears it closes at once, whatever of his credits is lost with it. When both
 * have asked, the higher rank's question is the one that is answered. The two words stand in order with the frames, and neither is sent
 * while anything can still break: an atomic's fate is never made doubtful by this.
 *
 * An error meanwhile ends the epoch as any does: RESTED may be lost with it, so both must hear of a new one. Who waits for the answer sends
 * something empty now and then: were the other's end gone, nothing else would tell.
 *
 * Slots that a connection being made holds go to one whose peer has already lent its own: else two ranks could hold slots for
 * others for ever. Invariant: what is UP has carried something, or stood for a while, before it is asked to rest.
 *
 * Not on iWARP, where a word without a number is told as over before it has arrived.
 */
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#include "base/macros.h"

#define LOOK_NS 250000ull         /* is everything over that was under way? */
#define PROVE_NS 20000000ull
#define NEW_NS 20000000ull        /* up for so long, or used */
#define TRIES_FOR_BUSY 4u         /* before one that is not idle must give way */

static uint32_t uses(const verbs_ep *ep) { return ep->tx_seq + ep->rx_seq; }

static bool may_rest(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *meet = ep->meet;
    if (ep->state != VERBS_UP || ep->rest || meet->is_leaving || meet->far_is_gone || ep->ring || ep->home->rail->is_iwarp)
        return false;
    return uses(ep) != meet->up_uses || now - meet->up_ns > NEW_NS;
}

/* One that was not used since somebody last looked; those that were are marked. The list's order is that of their turns. */
static verbs_ep *choose(verbs_iface *iface, bool even_busy, uint64_t now)
{
    verbs_ep *chosen = NULL;
    for (weft_list_link *link = iface->paths.next; link != &iface->paths; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_port);
        bool is_idle = ep->rest_seen == uses(ep);
        if (ep->rest == VERBS_EVICT_QUIESCE || ep->rest == VERBS_EVICT_REQUESTED)
            return NULL; /* one at a time */
        ep->rest_seen = uses(ep);
        if (!chosen && may_rest(ep, now) && (is_idle || even_busy))
            chosen = ep;
    }
    return chosen;
}

/* Slots held for a peer that has not answered yet. True: some came free. */
static bool take_from_hopeful(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    for (weft_list_link *link = iface->paths.next; link != &iface->paths; link = link->next) {
        verbs_ep *other = weft_container(link, verbs_ep, by_port);
        verbs_handshake *meet = other->meet;
        if (other == ep || other->state != VERBS_CONNECTING || !meet->my_credits || meet->by_cm || meet->is_linked ||
            verbs_conn_has_offer(other))
            continue;
        meet->my_credits = 0;
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
    if (verbs_conn_has_offer(ep) && take_from_hopeful(ep))
        return;
    chosen = choose(iface, ep->tries >= TRIES_FOR_BUSY, now);
    if (!chosen)
        return;
    weft_list_remove(&chosen->by_port);
    weft_list_append(&iface->paths, &chosen->by_port);
    chosen->rest = VERBS_EVICT_QUIESCE;
    verbs_conn_due(chosen, now);
}

void verbs_evict_handle(verbs_ep *ep, enum verbs_kind kind)
{
    bool is_ours_to_be_answered = ep->rest == VERBS_EVICT_REQUESTED && ep->iface->self.rank > ep->proc_id.rank;
    if (kind == VERBS_KIND_EVICT_ACK) {
        ep->rest = VERBS_EVICT_ACKED;
    } else if (!is_ours_to_be_answered) {
        ep->rest = VERBS_EVICT_QUIESCE;
        ep->is_asked_to_rest = true;
    }
    verbs_conn_due(ep, ep->iface->now_ns());
}

int verbs_evict_progress(verbs_ep *ep, uint64_t now)
{
    if (ep->rest == VERBS_EVICT_NONE || ep->state != VERBS_UP)
        return 0;
    if (ep->rest == VERBS_EVICT_QUIESCE && verbs_conn_is_settled(ep) &&
        verbs_flow_control(ep, ep->is_asked_to_rest ? VERBS_KIND_EVICT_ACK : VERBS_KIND_EVICT_REQ, NULL) == 0)
        ep->rest = ep->is_asked_to_rest ? VERBS_EVICT_ACKED : VERBS_EVICT_REQUESTED;
    else if (ep->rest == VERBS_EVICT_ACKED && (!ep->is_asked_to_rest || verbs_flow_is_quiet(ep))) {
        ep->iface->counts[VERBS_COUNT_EVICTIONS]++;
        verbs_conn_end(ep);
        return 1;
    }
    if (ep->rest == VERBS_EVICT_REQUESTED) /* who is silent himself must look whether anybody is there */
        verbs_rc_qp_prove(ep->home);
    verbs_conn_due(ep, now + (ep->rest == VERBS_EVICT_REQUESTED ? PROVE_NS : LOOK_NS));
    return 0;
}
