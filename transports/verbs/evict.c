/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evict: closes an idle connection, else the one evicted longest ago, if a new peer finds no receive slots. Both sides close in peace and
 * reconnect when either sends, so a rank serves any number of peers with the slots of a few. Called by conn.c (slots are needed), flow.c
 * (EVICT_REQ, EVICT_ACK). Not on iWARP, where an unnumbered frame completes before it has arrived.
 *
 * QUIESCE: no new frames; waits until all frames have arrived and all ops have ended. Then one side sends EVICT_REQ and starts nothing
 * more (REQUESTED); it still returns credits, else the peer might have none for the answer. The other side, when quiet too, answers
 * EVICT_ACK and closes when that has arrived; the receiver closes at once, credits in flight are lost. If both have requested, the
 * request of the higher rank is answered. Both frames are ordered with the others, and neither is sent while an error could leave an
 * atomic's result unknown.
 *
 * An error meanwhile ends the epoch as usual: EVICT_ACK may be lost with it, so both must learn of a new epoch. In REQUESTED an empty
 * request is posted now and then: nothing else would detect that the peer's QP is gone.
 *
 * Slots of a connecting ep are given to one whose peer has granted its own; else two ranks could hold slots for others for ever.
 * Invariant: an ep that is UP has carried a frame, or was up for NEW_NS, before it is evicted.
 */
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#include "base/macros.h"

#define LOOK_NS 250000ull         /* interval of checks whether all is quiet */
#define PROVE_NS 20000000ull
#define NEW_NS 20000000ull        /* minimum time up, unless it was used */
#define TRIES_FOR_BUSY 4u         /* attempts before an ep that is not idle is evicted */

static uint32_t uses(const verbs_ep *ep) { return ep->tx_seq + ep->rx_seq; }

static bool may_rest(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *meet = ep->meet;
    if (ep->state != VERBS_UP || ep->rest || meet->is_leaving || meet->far_is_gone || ep->ring || ep->home->rail->is_iwarp)
        return false;
    return uses(ep) != meet->up_uses || now - meet->up_ns > NEW_NS;
}

/* The first ep that was unused since the last scan (even_busy: any), in order of the list: longest since eviction first. Marks the use of
 * the others. */
static verbs_ep *choose(verbs_iface *iface, bool even_busy, uint64_t now)
{
    verbs_ep *chosen = NULL;
    for (weft_list_link *link = iface->paths.next; link != &iface->paths; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_port);
        bool is_idle = ep->rest_seen == uses(ep);
        if (ep->rest == VERBS_EVICT_QUIESCE || ep->rest == VERBS_EVICT_REQUESTED)
            return NULL; /* one eviction at a time */
        ep->rest_seen = uses(ep);
        if (!chosen && may_rest(ep, now) && (is_idle || even_busy))
            chosen = ep;
    }
    return chosen;
}

/* Frees the slots of a connecting ep whose peer has not answered. True: one was found. */
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
    if (ep->rest == VERBS_EVICT_REQUESTED) /* detects a dead QP of the peer */
        verbs_rc_qp_prove(ep->home);
    verbs_conn_due(ep, now + (ep->rest == VERBS_EVICT_REQUESTED ? PROVE_NS : LOOK_NS));
    return 0;
}
