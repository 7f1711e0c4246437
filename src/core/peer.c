/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer: creates peers and queues frames that found the iface full. See peer.h.
 */
#include "core/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/hdr_csum.h"
#include "core/iface_select.h"
#include "core/req.h"
#include "core/world_type.h"
#include "mem/pool.h"

#define SLOTS_MIN 16u

static uint32_t slot_of(const weft_worker *worker, uint64_t job, uint32_t rank)
{
    uint32_t at = (uint32_t)(((job ^ rank) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & worker->peer_mask;
    while (worker->peer_slots[at] && (worker->peer_slots[at]->proc_id.rank != rank || worker->peer_slots[at]->proc_id.job != job))
        at = (at + 1) & worker->peer_mask;
    return at;
}

weft_peer *weft_peer_known(const weft_worker *worker, weft_process process)
{
    return worker->peer_slots ? worker->peer_slots[slot_of(worker, process.job, process.rank)] : NULL;
}

/* Makes room for one more: at most half of the slots are used. */
static bool grow(weft_worker *worker)
{
    uint32_t slots = worker->peer_slots ? 2 * (worker->peer_mask + 1) : SLOTS_MIN;
    weft_peer **more;
    if (worker->peer_slots && worker->peer_count < slots / 4)
        return true;
    more = calloc(slots, sizeof *more);
    if (!more)
        return false;
    free(worker->peer_slots);
    worker->peer_slots = more;
    worker->peer_mask = slots - 1;
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        more[slot_of(worker, peer->proc_id.job, peer->proc_id.rank)] = peer;
    return true;
}

/* NULL: out of memory; sets the error text. */
static weft_peer *new_peer(weft_worker *worker, weft_process process)
{
    weft_peer *peer = grow(worker) ? calloc(1, sizeof *peer) : NULL;
    if (!peer) {
        weft_fail(WEFT_E_NOMEM, "no memory for the state of peer rank %u", process.rank);
        return NULL;
    }
    peer->worker = worker;
    peer->proc_id = (weft_proc_id){process.job, process.rank, worker->index};
    peer->credit = peer->credit_full = (int32_t)((uint64_t)weft_knob.credit_kib * 1024 / WEFT_CREDIT_BYTES);
    weft_list_init(&peer->waiting);
    weft_list_init(&peer->sendqs);
    weft_list_init(&peer->backlog);
    return peer;
}

static void enter_peer(weft_worker *worker, weft_peer *peer)
{
    peer->number = worker->peer_count++;
    worker->peer_slots[slot_of(worker, peer->proc_id.job, peer->proc_id.rank)] = peer;
    peer->next = worker->peers;
    atomic_store_explicit(&worker->peers, peer, memory_order_release); /* counters.c reads the list without the lock */
}

int weft_peer_find(weft_worker *worker, weft_process process, weft_peer **out)
{
    weft_peer *peer = weft_peer_known(worker, process);
    int rc;
    if (peer) {
        weft_peer_come_back(peer);
        *out = peer;
        return 0;
    }
    if (process.job != worker->world->boot->job)
        return weft_fail(WEFT_E_PEER, "rank %u is of another job, to which there is no connection", process.rank);
    peer = new_peer(worker, process);
    if (!peer)
        return WEFT_E_NOMEM;
    rc = weft_iface_select_reach(worker, peer);
    if (rc) {
        free(peer);
        return rc;
    }
    peer->eager_max = peer->now_max = peer->ep->iface->caps.frame_max;
    if (worker->on_peer_connect)
        worker->on_peer_connect(peer);
    enter_peer(worker, peer);
    *out = peer;
    return 0;
}

weft_peer *weft_peer_find_dead(weft_worker *worker, weft_process process)
{
    weft_peer *peer = weft_peer_known(worker, process);
    if (peer)
        return peer;
    peer = new_peer(worker, process);
    if (!peer)
        return NULL;
    peer->ep = &weft_null_ep;
    enter_peer(worker, peer);
    return peer;
}

void weft_peer_free_all(weft_worker *worker)
{
    weft_peer *next;
    for (weft_peer *peer = worker->peers; peer; peer = next) {
        next = peer->next;
        weft_peer_discard(peer); /* has left, or stays at rest */
        free(peer);
    }
    free(worker->peer_slots);
}

void weft_peer_update_backlog(weft_peer *peer)
{
    bool is_in = !weft_list_is_empty(&peer->backlog), waits = !weft_list_is_empty(&peer->waiting) || !weft_list_is_empty(&peer->sendqs);
    if (waits && !is_in)
        weft_list_append(&peer->worker->backlog, &peer->backlog);
    else if (!waits && is_in)
        weft_list_remove(&peer->backlog);
}

static int defer_frame(weft_peer *peer, const weft_frame *frame, weft_req *req)
{
    weft_worker *worker = peer->worker;
    weft_pending_frame *pending = weft_pool_alloc(worker->pool, sizeof *pending);
    if (!pending)
        return weft_fail(WEFT_E_NOMEM, "no memory to queue a frame for rank %u", peer->proc_id.rank);
    pending->frame = *frame;
    pending->req = req;
    if (!frame->pack && !frame->zcopy_ctx && frame->hdr.bytes <= sizeof pending->small) {
        if (frame->hdr.bytes)
            memcpy(pending->small, frame->body, frame->hdr.bytes);
        pending->frame.body = pending->small;
    }
    worker->counters[WEFT_COUNT_FRAMES_DEFERRED]++;
    weft_list_append(&peer->waiting, &pending->link);
    weft_peer_update_backlog(peer);
    return 0;
}

/* The queue is done with a frame: calls callbacks.done for a zero-copy body, unless the iface still reads it (INPROGRESS). */
static void release_pending(weft_peer *peer, const weft_frame *frame, int rc)
{
    if (frame->zcopy_ctx && rc != WEFT_INPROGRESS)
        peer->worker->callbacks->done(peer->worker, frame->zcopy_ctx, rc);
}

int weft_peer_post(weft_peer *peer, weft_frame *frame)
{
    int rc;
    weft_peer_stamp(peer, &frame->hdr);
    rc = weft_unlikely(weft_knob.checksum) ? weft_hdr_csum_send(peer->ep, frame) : weft_iface_send(peer->ep, frame);
    if (rc && rc != WEFT_INPROGRESS)
        weft_peer_unstamp(peer, &frame->hdr);
    else if (!weft_frame_is_message(frame->hdr.kind))
        peer->others_out++;
    return rc;
}

int weft_peer_send(weft_peer *peer, const weft_frame *given, weft_req *req, bool *sent)
{
    weft_frame frame = *given;
    if (sent)
        *sent = false;
    if (weft_list_is_empty(&peer->waiting)) {
        int rc = weft_peer_post(peer, &frame);
        if (rc == 0 || rc == WEFT_INPROGRESS) {
            if (sent)
                *sent = true;
            release_pending(peer, &frame, rc);
            return 0;
        }
        if (rc != WEFT_AGAIN)
            return rc;
    }
    return defer_frame(peer, given, req);
}

static void end_pending(weft_peer *peer, weft_pending_frame *pending, int rc)
{
    weft_req *req = pending->req;
    weft_frame frame = {.zcopy_ctx = pending->frame.zcopy_ctx};
    weft_list_remove(&pending->link);
    weft_pool_free(peer->worker->pool, pending, sizeof *pending);
    weft_peer_update_backlog(peer);
    release_pending(peer, &frame, rc);
    if (req)
        weft_req_end(req, rc);
}

void weft_peer_abort_job(weft_peer *peer, int rc)
{
    char text[640];
    snprintf(text, sizeof text, "a required reply to rank %u cannot be sent, and that rank would hang: %s", peer->proc_id.rank,
             weft_fail_text(rc));
    peer->worker->world->boot->ops->abort(peer->worker->world->boot, 1, text);
}

int weft_peer_flush_pending(weft_peer *peer)
{
    int pushed = 0;
    while (!weft_list_is_empty(&peer->waiting)) {
        weft_pending_frame *pending = weft_container(peer->waiting.next, weft_pending_frame, link);
        int rc;
        pending->frame.more = pending->link.next != &peer->waiting;
        rc = weft_peer_post(peer, &pending->frame);
        if (rc && rc != WEFT_INPROGRESS) {
            if (rc == WEFT_AGAIN)
                break;
            if (!pending->req && !pending->frame.zcopy_ctx && peer->state == WEFT_PEER_ALIVE)
                weft_peer_abort_job(peer, rc);
        }
        end_pending(peer, pending, rc);
        pushed++;
    }
    if (weft_unlikely(!weft_list_is_empty(&peer->sendqs)) && weft_list_is_empty(&peer->waiting))
        pushed += peer->worker->flush(peer);
    return pushed;
}

void weft_peer_return_credits(weft_peer *peer)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_CREDIT}};
    /* deferred frames will carry the credits; nothing may be sent after BYE, and a peer that sent BYE needs none */
    if (weft_list_is_empty(&peer->waiting) && !peer->bye_sent && !peer->bye_received)
        weft_peer_send(peer, &frame, NULL, NULL);
}

void weft_peer_return_due(weft_peer *peer)
{
    if (peer->credits_due >= peer->worker->credit_return_min)
        weft_peer_return_credits(peer);
}

void weft_peer_come_back(weft_peer *peer)
{
    weft_frame bye = {.hdr = {.kind = WEFT_FRAME_BYE, .tag = WEFT_BYE_BACK}};
    if (!peer->is_away || peer->worker->world->is_resting)
        return;
    peer->is_away = peer->is_rest_sent = peer->is_rest_seen = false;
    peer->was_back = true;
    peer->seq_back = peer->seq_in;
    if (peer->state != WEFT_PEER_ALIVE)
        return;
    weft_peer_send(peer, &bye, NULL, NULL);
    peer->bye_sent = false;
    weft_peer_return_due(peer);
}

void weft_peer_discard(weft_peer *peer)
{
    while (!weft_list_is_empty(&peer->waiting))
        end_pending(peer, weft_container(peer->waiting.next, weft_pending_frame, link), 0);
}

void weft_peer_withdraw(weft_peer *peer, uint32_t chan, int rc)
{
    for (weft_list_link *link = peer->waiting.next, *next; link != &peer->waiting; link = next) {
        weft_pending_frame *pending = weft_container(link, weft_pending_frame, link);
        const weft_hdr *hdr = &pending->frame.hdr;
        bool is_whole = weft_frame_is_message(hdr->kind) && hdr->kind != WEFT_FRAME_EAGER_FRAGS && hdr->kind != WEFT_FRAME_FRAG;
        next = link->next;
        if (hdr->chan != chan || !(is_whole || hdr->kind == WEFT_FRAME_NOTIFY))
            continue;
        if (is_whole)
            peer->credit += weft_peer_cost(hdr->bytes);
        end_pending(peer, pending, rc);
    }
}

void weft_peer_fail(weft_peer *peer, int rc)
{
    if (peer->state == WEFT_PEER_FAILED)
        return;
    WEFT_EVENT_RAISE(WEFT_EVENT_PEER_FAILED, NULL, peer->proc_id.rank);
    peer->state = WEFT_PEER_FAILED;
    peer->ep = &weft_null_ep;
    while (!weft_list_is_empty(&peer->waiting))
        end_pending(peer, weft_container(peer->waiting.next, weft_pending_frame, link), rc);
}
