/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bye: see bye.h. Where an iface does not deliver what is sent after the sender stops (no outlives_sender), a peer answers REST by SEEN:
 * frames before it have arrived then, and a later loss of the connection is no failure there.
 */
#include "core/bye.h"

#include "base/status.h"
#include "core/peer.h"
#include "core/world_type.h"

static bool is_ended(const weft_peer *peer) { return peer->state == WEFT_PEER_CLOSED || peer->state == WEFT_PEER_FAILED; }

static bool is_self(const weft_peer *peer) { return peer->ep->iface->ops == &weft_self_ops; }

static bool outlives_sender(const weft_peer *peer) { return peer->ep->iface->caps.outlives_sender; }

static void send_bye(weft_peer *peer, enum weft_bye what)
{
    weft_frame bye = {.hdr = {.kind = WEFT_FRAME_BYE, .tag = (int32_t)what}};
    weft_peer_send(peer, &bye, NULL, NULL);
}

static void take_leave(weft_peer *peer, enum weft_bye why)
{
    if (peer->bye_sent)
        return;
    peer->is_rest_seen = false; /* a late SEEN may answer an earlier REST */
    send_bye(peer, why);
    peer->bye_sent = true;
    peer->is_rest_sent = why == WEFT_BYE_REST;
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

/* Sends BYE to all peers before waiting for any, else a cycle of ranks would deadlock. A peer with both BYEs exchanged is closed at once,
 * also while BYEs to others are deferred: these may wait for its connection. */
bool weft_bye_close(weft_worker *worker)
{
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (peer->bye_received && !is_ended(peer) && outlives_sender(peer))
            weft_peer_discard(peer);
    bool is_quiet = weft_list_is_empty(&worker->backlog) && weft_list_is_empty(&worker->fragments), all = is_quiet;
    for (weft_peer *peer = worker->peers; peer && is_quiet; peer = peer->next)
        if (!is_ended(peer))
            take_leave(peer, WEFT_BYE_FINAL);
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (!is_ended(peer))
            all &= peer->bye_sent && close_if_drained(peer);
    return all;
}

/* -- rest -- */

static uint32_t page_state(const weft_worker *worker, uint32_t rank)
{
    const weft_boot *boot = worker->world->boot;
    if (!boot->has_segment || rank >= boot->size || (boot->node_of && boot->node_of[rank] != boot->node))
        return WEFT_RANK_NONE;
    return atomic_load_explicit(&weft_segment_rank(&boot->segment, boot->local_of ? boot->local_of[rank] : rank)->state,
                                memory_order_acquire);
}

bool weft_bye_is_final(const weft_worker *worker, uint32_t rank)
{
    uint32_t state = page_state(worker, rank);
    return state == WEFT_RANK_FINAL || state == WEFT_RANK_DEAD;
}

/* By the page, as the BYE may not have had space in the ring. Such a peer has received all that it needs. */
static bool rests_by_page(const weft_peer *peer)
{
    uint32_t state;
    if (is_self(peer) || !outlives_sender(peer))
        return false;
    state = page_state(peer->worker, peer->proc_id.rank);
    return state == WEFT_RANK_FINAL || state == WEFT_RANK_REST;
}

static bool knows(const weft_peer *peer)
{
    if (outlives_sender(peer) && !is_self(peer))
        return true;
    return peer->bye_received || peer->is_rest_seen;
}

bool weft_bye_rest(weft_worker *worker)
{
    bool is_quiet = true;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (!is_ended(peer) && outlives_sender(peer) && (peer->bye_received || rests_by_page(peer)))
            weft_peer_discard(peer);
    if (!weft_list_is_empty(&worker->backlog) || !weft_list_is_empty(&worker->fragments))
        return false;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        if (!is_ended(peer)) {
            take_leave(peer, WEFT_BYE_REST);
            is_quiet &= knows(peer);
        }
    return is_quiet && weft_list_is_empty(&worker->backlog);
}

void weft_bye_rested(weft_worker *worker)
{
    void **pointers = weft_group_pointers(worker->world->group, worker->serial);
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        peer->is_away = !is_ended(peer);
    for (uint32_t i = 0; pointers && i < worker->world->group->size; i++)
        pointers[i] = NULL; /* the first send to each peer finds it anew, and sends BACK before (weft_peer_find) */
}

bool weft_bye_leave(weft_worker *worker)
{
    bool all = true;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next) {
        if (is_ended(peer))
            continue;
        if (peer->is_away) {
            peer->is_away = false;
            if (!is_self(peer) && (outlives_sender(peer) || !peer->bye_received))
                send_bye(peer, WEFT_BYE_FINAL);
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

void weft_bye_received(weft_peer *peer, enum weft_bye what)
{
    if (what == WEFT_BYE_SEEN) {
        peer->is_rest_seen = true;
        return;
    }
    peer->bye_received = what != WEFT_BYE_BACK;
    peer->is_gone = what == WEFT_BYE_FINAL;
    if (what == WEFT_BYE_REST && !outlives_sender(peer))
        send_bye(peer, WEFT_BYE_SEEN);
    if (what != WEFT_BYE_BACK)
        return;
    weft_peer_come_back(peer);
    weft_peer_return_due(peer);
}

bool weft_bye_has_departed(const weft_peer *peer)
{
    return peer->bye_received || peer->is_rest_sent || (peer->was_back && peer->seq_in == peer->seq_back);
}
