/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evict: closes an idle connection, else the one evicted longest ago, if a new peer finds no receive slots, or the device has no memory
 * for its queue pairs. Both sides close in peace and reconnect when either sends, so a rank serves any number of peers with the slots of
 * a few. Called by conn.c (slots or queue pairs are needed), flow.c (EVICT_REQ, EVICT_ACK). Not on iWARP, where an unnumbered frame
 * completes before it has arrived.
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
 * Queue pairs of a connecting ep that has no answer are given to one that precedes it in an order of the job's connections; to any one
 * whose peer has created its own, only after several times as long. Their numbers belong to the epoch, so that epoch ends. Freed
 * queue pairs are reserved for the ep that asked, for some time: else the first ep that tries gets them, and gives them away again.
 *
 * By rdma_cm they do not: a connecting ep's queue pairs are just destroyed, and the attempt with them. A request, whose sender has its
 * queue pair, takes those of an ep without an attempt under way, or of one that it precedes: so of requests that run in a circle one
 * succeeds. Any ep takes those whose attempt has had no answer for CM_KEEP_NS. A side that lacks queue pairs refuses requests as busy
 * (rdmacm.c).
 *
 * Slots of a connecting ep are given to one whose peer has granted its own; else two ranks could hold slots for others for ever.
 * Invariant: an ep that is UP has carried a frame, or was up for NEW_NS, before it is evicted.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#define SCAN_NS 250000ull         /* interval of checks whether all is quiet */
#define PROVE_NS 20000000ull
#define NEW_NS 20000000ull        /* minimum time up, unless it was used */
#define SHOW_NS 100000000ull      /* a wait for QPs that is longer is shown to the owner, ... */
#define REPORT_NS 2000000000ull   /* ... and logged */
#define TRIES_TO_KEEP 2u          /* attempts to connect that an ep may make before it gives its QPs to one that precedes it, ... */
#define TRIES_AGAINST_OFFER 6u    /* ... or to one that does not, but whose peer has created its own: 30 times as long, 63 ms, ... */
#define CM_KEEP_NS 40000000ull    /* ... and the time that an attempt has by rdma_cm, where it takes several messages */
#define RESERVED_NS 30000000ull       /* duration of a reservation */
#define TRIES_FOR_BUSY 4u         /* attempts before an ep that is not idle is evicted */

static uint32_t uses(const verbs_ep *ep) { return ep->tx_seq + ep->rx_seq; }

static bool can_evict(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *hs = ep->hs;
    if (ep->state != VERBS_UP || ep->evict || hs->is_closing || hs->remote_is_gone || ep->home->rail->is_iwarp)
        return false;
    return uses(ep) != hs->up_uses || now - hs->up_ns > NEW_NS;
}

/* Has the other ep a QP on a port where this one lacks one? */
static bool has_useful_qp(const verbs_ep *ep, const verbs_ep *other)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        for (uint8_t k = 0; k < other->qp_count; k++)
            if (!ep->qps[i].ibv_qp && !(ep->hs->absent_qps >> i & 1) && other->qps[k].ibv_qp && other->qps[k].rail == ep->qps[i].rail)
                return true;
    return false;
}

/* The first ep that was unused since the last scan (even_busy: any), in order of the list: longest since eviction first. Marks the use of
 * the others. */
static verbs_ep *choose(const verbs_ep *needy, bool even_busy, uint64_t now)
{
    verbs_iface *iface = needy->iface;
    verbs_ep *chosen = NULL;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
        bool is_idle = ep->evict_uses == uses(ep);
        if (ep->evict == VERBS_EVICT_QUIESCE || ep->evict == VERBS_EVICT_REQUESTED)
            return NULL; /* one eviction at a time */
        ep->evict_uses = uses(ep);
        if (!chosen && can_evict(ep, now) && (is_idle || even_busy) && (!needy->hs->lacks_qps || has_useful_qp(needy, ep)))
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

/* Whether ep's connection precedes the other's where both lack QPs. Both sides of each come to the same, so the first one always gets
 * what it needs on both. */
static bool precedes(const verbs_ep *ep, const verbs_ep *other)
{
    uint32_t own = ep->iface->self.rank, a = ep->proc_id.rank, b = other->proc_id.rank;
    uint32_t low_a = a < own ? a : own, low_b = b < own ? b : own;
    return low_a != low_b ? low_a < low_b : (a < own ? own : a) < (b < own ? own : b);
}

static bool has_evictable(const verbs_ep *ep)
{
    const verbs_iface *iface = ep->iface;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        const verbs_ep *other = weft_container(link, verbs_ep, by_iface);
        if (other != ep && verbs_conn_has_qps(other) && !other->qps[0].rail->is_iwarp)
            return true;
    }
    return false;
}

/* rdma_cm: destroys the QPs of an ep that only connects. True: one was found. */
static bool take_attempt(const verbs_ep *ep, bool is_requested)
{
    verbs_iface *iface = ep->iface;
    uint64_t now = iface->now_ns();
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *other = weft_container(link, verbs_ep, by_iface);
        verbs_handshake *hs = other->hs;
        bool is_under_way = false;
        for (uint8_t i = 0; i < other->qp_count; i++)
            is_under_way |= other->qps[i].cm_id != NULL;
        if (other == ep || other->state != VERBS_CONNECTING || !hs->by_cm || hs->is_connected || !has_useful_qp(ep, other) ||
            (is_under_way && now - hs->attempt_ns < CM_KEEP_NS && !(is_requested && precedes(ep, other))))
            continue;
        weft_log_debug("connection %u: rank %u gets the queue pairs of the attempt to reach rank %u", other->epoch, ep->proc_id.rank,
                       other->proc_id.rank);
        verbs_conn_close_qps(other);
        hs->lacks_qps = true; /* what follows is no silence of its peer */
        hs->lack_ns = hs->trouble_ns = now;
        return true;
    }
    return false;
}

/* The order alone decides, where it can: were an offer enough, ranks in a circle, each of which has the QP that the next one needs, would
 * pass them on for ever. An offer does where the peer of the other ep does not answer for long. */
static bool may_take(const verbs_ep *ep, const verbs_ep *other)
{
    if (precedes(ep, other))
        return other->tries >= TRIES_TO_KEEP;
    return other->tries >= TRIES_AGAINST_OFFER && verbs_conn_has_offer(ep);
}

static bool is_giving(const verbs_iface *iface)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        const verbs_ep *other = weft_container(link, verbs_ep, by_iface);
        if (other->hs->gives_way && other->state == VERBS_DRAINING)
            return true;
    }
    return false;
}

/* Ends the epoch of an ep that has QPs, and whose peer has not answered. True: one was found. */
static bool take_unanswered_qps(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *other = weft_container(link, verbs_ep, by_iface);
        verbs_handshake *hs = other->hs;
        if (other == ep || other->state != VERBS_CONNECTING || hs->is_connected || hs->is_closing || verbs_conn_has_offer(other) ||
            !has_useful_qp(ep, other) || !may_take(ep, other))
            continue;
        hs->gives_way = true;
        verbs_conn_renew(&other->qps[0], "its queue pairs are given to another peer, as the device has no more");
        return true;
    }
    return false;
}

/* One ep at a time. */
static void show_wait(const verbs_ep *ep)
{
    const verbs_iface *iface = ep->iface;
    uint32_t count = 0;
    char text[WEFT_IFACE_WAIT_BYTES];
    if (!iface->iface.callbacks->waits || (iface->conn->shown && iface->conn->shown != ep))
        return;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        count += iface->rails[i].qpn_count;
    snprintf(text, sizeof text, "the connection to rank %u waits for a queue pair: %u are open, the device refuses more: %s",
             ep->proc_id.rank, count, strerror(ep->hs->lack_error));
    iface->conn->shown = ep;
    iface->iface.callbacks->waits(iface->iface.owner, text);
}

static void unshow(const verbs_ep *ep)
{
    const verbs_iface *iface = ep->iface;
    if (iface->conn->shown != ep)
        return;
    iface->conn->shown = NULL;
    iface->iface.callbacks->waits(iface->iface.owner, NULL);
}

/* -- reservation of freed queue pairs -- */

static bool has_reservation(const verbs_ep *ep, uint64_t now)
{
    return ep->iface->conn->reserved_for == ep && ep->state == VERBS_CONNECTING && ep->hs->lacks_qps &&
           now - ep->iface->conn->reserved_ns < RESERVED_NS;
}

/* Another ep gives way for this one. */
static void reserve_for(const verbs_ep *ep)
{
    struct verbs_conn *conn = ep->iface->conn;
    uint64_t now = ep->iface->now_ns();
    if (conn->reserved_for && conn->reserved_for != ep && has_reservation(conn->reserved_for, now) && !precedes(ep, conn->reserved_for))
        return;
    conn->reserved_for = ep;
    conn->reserved_ns = now;
}

static bool share_a_rail(const verbs_ep *a, const verbs_ep *b)
{
    for (uint8_t i = 0; i < a->qp_count; i++)
        for (uint8_t k = 0; k < b->qp_count; k++)
            if (a->qps[i].rail == b->qps[k].rail)
                return true;
    return false;
}

const verbs_ep *verbs_evict_reserved_before(const verbs_ep *ep)
{
    const verbs_ep *first = ep->iface->conn->reserved_for;
    return first && first != ep && has_reservation(first, ep->iface->now_ns()) && share_a_rail(ep, first) ? first : NULL;
}

void verbs_evict_has_qps(const verbs_ep *ep)
{
    unshow(ep);
    if (ep->iface->conn->reserved_for == ep)
        ep->iface->conn->reserved_for = NULL;
}

bool verbs_evict_for_qps(verbs_ep *ep, bool is_requested)
{
    verbs_handshake *hs = ep->hs;
    uint64_t now = ep->iface->now_ns();
    if (now - hs->lack_ns >= SHOW_NS)
        show_wait(ep);
    hs->is_alone = !has_evictable(ep);
    if (hs->is_alone)
        return false; /* the timeout runs, and its text says what was refused */
    hs->trouble_ns = now;
    if (hs->by_cm && take_attempt(ep, is_requested))
        return true;
    if (!is_giving(ep->iface) && ((!hs->by_cm && take_unanswered_qps(ep)) || verbs_evict_for(ep)))
        reserve_for(ep);
    if (ep->iface->conn->has_reported_wait || now - hs->lack_ns < REPORT_NS)
        return false;
    ep->iface->conn->has_reported_wait = true;
    weft_log_warn("the connection to rank %u waits for %.0f s until another one can give way: %s", ep->proc_id.rank,
                  (double)(now - hs->lack_ns) / 1e9, ep->last_error);
    return false;
}

bool verbs_evict_for(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    uint64_t now = iface->now_ns();
    verbs_ep *chosen;
    if (!ep->hs->lacks_qps && verbs_conn_has_offer(ep) && free_unanswered_slots(ep))
        return true;
    chosen = choose(ep, ep->tries >= TRIES_FOR_BUSY, now);
    if (!chosen)
        return false;
    weft_list_remove(&chosen->by_iface);
    weft_list_append(&iface->eps, &chosen->by_iface);
    chosen->evict = VERBS_EVICT_QUIESCE;
    verbs_conn_due(chosen, now);
    return true;
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
