/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bye: see bye.h. Where an iface does not deliver what is sent after the sender stops (no outlives_sender), a peer answers REST by SEEN:
 * frames before it have arrived then, and a later loss of the connection is no failure there. A late SEEN may answer an earlier REST, so
 * both have a number.
 *
 * Where connections need polling (ep_rest), they are closed on the way to rest. No frame goes to a peer at rest, which would have to
 * connect; a peer that went to rest while this process rested has not said so. What a process at rest does not say, the launcher does
 * (core/absence). There REST also stands for the SEEN of a peer that sent REST before it came: it waits until its own has arrived.
 */
#include "core/bye.h"

#include "base/knob.h"
#include "base/status.h"
#include "core/absence.h"
#include "core/peer.h"
#include "core/world_type.h"

#define ASK_NS 200000000u /* on the way to rest, before the launcher is asked */

static bool is_ended(const weft_peer *peer) { return peer->state == WEFT_PEER_CLOSED || peer->state == WEFT_PEER_FAILED; }

static bool is_self(const weft_peer *peer) { return peer->ep->iface->ops == &weft_self_ops; }

static bool outlives_sender(const weft_peer *peer) { return peer->ep->iface->caps.outlives_sender; }

/* The connection needs polling, so a side at rest has none. This side's caps.may_rest does not matter: the peer may rest. */
static bool closes_at_rest(const weft_peer *peer) { return peer->ep->iface->ops->ep_rest; }

/* It has sent REST: it is at rest, or soon will be. */
static bool is_at_rest(const weft_peer *peer) { return peer->bye_received && !peer->is_gone; }

/* The peer has sent REST and closes its connection. A BYE would need a new connection; the peer awaits at most a SEEN. */
static bool needs_no_bye(const weft_peer *peer) { return closes_at_rest(peer) && is_at_rest(peer); }

/* number: of the REST that is sent or answered. */
static void send_bye(weft_peer *peer, enum weft_bye what, uint32_t number)
{
    weft_frame bye = {.hdr = {.kind = WEFT_FRAME_BYE, .src = (int32_t)number, .tag = (int32_t)what}};
    weft_peer_send(peer, &bye, NULL, NULL);
}

static void take_leave(weft_peer *peer, enum weft_bye why)
{
    if (peer->bye_sent)
        return;
    peer->is_rest_sent = why == WEFT_BYE_REST;
    peer->is_rest_seen = closes_at_rest(peer) && peer->bye_received;
    if (peer->is_rest_seen && !peer->is_gone)
        return; /* no REST now; REST follows if the peer returns meanwhile */
    send_bye(peer, why, ++peer->rests);
    peer->bye_sent = true;
    weft_absence_forget(peer);
}

/* -- peers that do not answer -- */

/* It is at rest or has ended: nothing is waited for. Frames that wait for it are kept. */
static bool is_absent(weft_peer *peer, uint64_t waited_ns)
{
    enum weft_absence absence;
    if (is_self(peer) || waited_ns < ASK_NS)
        return false;
    absence = weft_absence_of(peer);
    if (absence == WEFT_ABSENCE_MAYBE)
        return waited_ns > (uint64_t)weft_knob.peer_timeout_s * 1000000000u;
    return absence != WEFT_ABSENCE_NONE;
}

/* It may still take what is sent to it. */
static bool is_awaited(weft_peer *peer, uint64_t waited_ns)
{
    return !is_ended(peer) && !needs_no_bye(peer) && !is_absent(peer, waited_ns);
}

/* Fragments wait for a peer that may take them. */
static bool has_fragments(const weft_worker *worker, uint64_t waited_ns)
{
    if (weft_list_is_empty(&worker->fragments))
        return false;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (peer->fragments && is_awaited(peer, waited_ns))
            return true;
    return false;
}

/* Frames wait for a peer that may still take them. */
static bool has_backlog(const weft_worker *worker, uint64_t waited_ns)
{
    for (weft_list_link *link = worker->backlog.next; link != &worker->backlog; link = link->next)
        if (is_awaited(weft_container(link, weft_peer, backlog), waited_ns))
            return true;
    return has_fragments(worker, waited_ns);
}

/* -- for good -- */

static bool set_closed(weft_peer *peer)
{
    peer->state = WEFT_PEER_CLOSED;
    peer->ep = &weft_null_ep;
    return true;
}

static bool close_ep(weft_peer *peer)
{
    return peer->ep->iface->ops->ep_close(peer->ep->iface, peer->ep) != WEFT_AGAIN && set_closed(peer);
}

/* Closes the ep if it is drained. On a network both sides must have sent BYE before either closes its end. A peer that rests does not
 * answer: its ep is closed with the iface. */
static bool close_if_drained(weft_peer *peer)
{
    bool rests = peer->bye_received && !peer->is_gone && !outlives_sender(peer);
    if (!weft_list_is_empty(&peer->waiting) || (!peer->bye_received && !outlives_sender(peer)))
        return false;
    return rests ? set_closed(peer) : close_ep(peer);
}

/* For a peer that needs no BYE: true once all frames have arrived there, or the peer is known to rest. The iface closes its ep. */
static bool close_resting(weft_peer *peer, uint64_t waited_ns)
{
    weft_iface *iface = peer->ep->iface;
    if (weft_list_is_empty(&peer->waiting) && iface->ops->ep_rest(iface, peer->ep, WEFT_EP_REST) != WEFT_AGAIN)
        return set_closed(peer);
    if (!is_absent(peer, waited_ns))
        return false;
    weft_peer_discard(peer);
    return iface->ops->ep_rest(iface, peer->ep, WEFT_EP_LEAVE) != WEFT_AGAIN && set_closed(peer);
}

/* Sends BYE to all peers before waiting for any, else a cycle of ranks would deadlock. A peer with both BYEs exchanged is closed at once,
 * also while BYEs to others are deferred: these may wait for its connection. */
bool weft_bye_close(weft_worker *worker, uint64_t waited_ns)
{
    bool waits, all;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (peer->bye_received && !is_ended(peer) && outlives_sender(peer))
            weft_peer_discard(peer);
    waits = has_backlog(worker, 0); /* includes frames to a peer at rest that has not sent REST: it may return and take them */
    all = !waits;
    for (weft_peer *peer = worker->peers; peer && !waits; peer = peer->next)
        if (!is_ended(peer) && !needs_no_bye(peer))
            take_leave(peer, WEFT_BYE_FINAL);
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (!is_ended(peer))
            all &= needs_no_bye(peer) ? close_resting(peer, waited_ns) : peer->bye_sent && close_if_drained(peer);
    return all;
}

/* -- rest -- */

bool weft_bye_is_final(const weft_worker *worker, uint32_t rank)
{
    uint32_t state = weft_absence_page(worker, rank);
    return state == WEFT_RANK_FINAL || state == WEFT_RANK_DEAD;
}

/* By the page, as the BYE may not have had space in the ring. Such a peer has received all that it needs. */
static bool rests_by_page(const weft_peer *peer)
{
    uint32_t state;
    if (is_self(peer) || !outlives_sender(peer))
        return false;
    state = weft_absence_page(peer->worker, peer->proc_id.rank);
    return state == WEFT_RANK_FINAL || state == WEFT_RANK_REST;
}

static bool knows(const weft_peer *peer)
{
    if (outlives_sender(peer) && !is_self(peer))
        return true;
    return peer->bye_received || peer->is_rest_seen;
}

/* The ep needs no more steps towards rest. */
static bool may_stop(weft_peer *peer, uint64_t waited_ns)
{
    weft_iface *iface = peer->ep->iface;
    if (!closes_at_rest(peer))
        return knows(peer) || is_absent(peer, waited_ns);
    if (peer->is_rest_seen && weft_list_is_empty(&peer->waiting) && iface->ops->ep_rest(iface, peer->ep, WEFT_EP_REST) != WEFT_AGAIN)
        return true;
    if (is_absent(peer, waited_ns))
        return iface->ops->ep_rest(iface, peer->ep, WEFT_EP_LEAVE) != WEFT_AGAIN;
    iface->ops->ep_rest(iface, peer->ep, WEFT_EP_RETURN); /* it may have returned since */
    return false;
}

/* REST follows the frames to all peers. A connection whose peer has acknowledged REST is closed although frames to other peers are
 * deferred: these frames may wait for its queue pair. */
bool weft_bye_rest(weft_worker *worker, uint64_t waited_ns)
{
    bool waits, is_quiet;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (!is_ended(peer) && outlives_sender(peer) && (peer->bye_received || rests_by_page(peer)))
            weft_peer_discard(peer);
    waits = has_backlog(worker, waited_ns);
    is_quiet = !waits;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next) {
        if (is_ended(peer))
            continue;
        if (!waits)
            take_leave(peer, WEFT_BYE_REST);
        is_quiet &= peer->is_rest_sent && may_stop(peer, waited_ns);
    }
    return is_quiet && !has_backlog(worker, waited_ns);
}

void weft_bye_rested(weft_worker *worker)
{
    void **pointers = weft_group_pointers(worker->world->group, worker->serial);
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        peer->is_away = !is_ended(peer);
    for (uint32_t i = 0; pointers && i < worker->world->group->size; i++)
        pointers[i] = NULL; /* the first send to each peer finds it anew, and sends BACK before (weft_peer_find) */
}

void weft_bye_returned(weft_worker *worker)
{
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (closes_at_rest(peer))
            peer->ep->iface->ops->ep_rest(peer->ep->iface, peer->ep, WEFT_EP_RETURN);
}

bool weft_bye_leave(weft_worker *worker)
{
    bool all = true;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next) {
        if (is_ended(peer) || closes_at_rest(peer)) /* no connection: its ep is closed with the iface */
            continue;
        if (peer->is_away) {
            peer->is_away = false;
            if (!is_self(peer) && (outlives_sender(peer) || !peer->bye_received))
                send_bye(peer, WEFT_BYE_FINAL, 0);
        }
        if (outlives_sender(peer) || peer->bye_received)
            weft_peer_discard(peer);
        if (outlives_sender(peer))
            close_if_drained(peer);
        else if (!peer->bye_received)
            all &= close_ep(peer);
    }
    return all;
}

/* -- what peers say -- */

void weft_bye_received(weft_peer *peer, const weft_hdr *hdr)
{
    enum weft_bye what = (enum weft_bye)hdr->tag;
    bool was_told = closes_at_rest(peer) && peer->bye_sent;
    if (what == WEFT_BYE_SEEN) {
        peer->is_rest_seen |= (uint32_t)hdr->src == peer->rests;
        return;
    }
    peer->bye_received = what != WEFT_BYE_BACK;
    peer->is_gone = what == WEFT_BYE_FINAL;
    peer->is_rest_seen |= was_told && what != WEFT_BYE_BACK;
    if (what == WEFT_BYE_REST && !outlives_sender(peer) && !was_told)
        send_bye(peer, WEFT_BYE_SEEN, (uint32_t)hdr->src);
    if (what == WEFT_BYE_REST && closes_at_rest(peer) && !was_told)
        peer->ep->iface->ops->ep_rest(peer->ep->iface, peer->ep, WEFT_EP_IDLE);
    if (what != WEFT_BYE_BACK)
        return;
    weft_peer_come_back(peer);
    weft_peer_return_due(peer);
}

bool weft_bye_has_departed(const weft_peer *peer)
{
    return peer->bye_received || peer->is_rest_sent || peer->has_ended || (peer->was_back && peer->seq_in == peer->seq_back);
}
