/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq: see sendq.h. A queue is a FIFO of records (sendq_records.h). A bag counts their tags, so that an ASK is answered in O(1).
 * Invariants: a queue with records is in its peer's sendqs and the peer in the worker's backlog. peer->credit is then
 * WEFT_CREDIT_STALLED lower than the credits left; only weft_sendq_flush adds that back while it runs.
 */
#include "p2p/sendq.h"

#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/log.h"
#include "base/status.h"
#include "p2p/eager.h"
#include "p2p/sendq_internal.h"
#include "type/pack.h"

#define BATCH_MAX 1024 /* messages that share a request */
#define CHAN_BURST 32        /* messages of one channel before the next channel is served */
#define OVERTAKEN_MAX 4096 /* records passed over to find one that was asked for */
#define POLL_EVERY 32  /* queued messages between two polls for credit */

static void drop_front(weft_sendq *queue)
{
    queue->left++;
    weft_records_drop_front(&queue->records, queue->peer->worker->pool);
}

/* -- open and close of a queue -- */

static bool open_queues(weft_chan *chan)
{
    if (chan->sendqs)
        return true;
    chan->sendqs = malloc(sizeof *chan->sendqs);
    if (!chan->sendqs)
        return false;
    weft_fifomap_open(&chan->sendqs->map);
    weft_list_init(&chan->sendqs->all);
    return true;
}

static weft_sendq *open_queue(weft_chan *chan, int dst, weft_peer *peer)
{
    weft_sendq *queue = weft_sendq_at(chan, dst);
    if (queue)
        return queue;
    queue = open_queues(chan) ? calloc(1, sizeof *queue) : NULL;
    if (!queue) {
        weft_fail(WEFT_E_NOMEM, "no memory to queue messages for rank %u", peer->proc_id.rank);
        return NULL;
    }
    queue->peer = peer;
    queue->chan = chan;
    queue->stall_id = (weft_stalled){chan->id, (uint32_t)dst};
    queue->chan_out = weft_chan_id_at(chan, dst);
    queue->src = chan->rank;
    queue->is_lasting = chan->is_lasting;
    weft_list_init(&queue->link);
    weft_list_init(&queue->batches);
    weft_fifomap_insert(&chan->sendqs->map, &queue->entry, (uint32_t)dst);
    weft_list_append(&chan->sendqs->all, &queue->all);
    return queue;
}

static void free_queue(weft_sendq *queue)
{
    weft_bag_clear(&queue->tags);
    weft_bag_clear(&queue->asked);
    weft_bag_clear(&queue->wanted);
    weft_bag_clear(&queue->stale);
    free(queue);
}

/* The queue got its first record. */
static void begin_stall(weft_sendq *queue)
{
    weft_peer *peer = queue->peer;
    if (weft_list_is_empty(&peer->sendqs))
        peer->credit -= WEFT_CREDIT_STALLED;
    weft_list_append(&peer->sendqs, &queue->link);
    queue->is_helped = queue->chan->is_helped;
    weft_worker_help_begin(peer->worker, queue->is_helped);
    weft_peer_update_backlog(peer);
    queue->seq = peer->seq_out;
    queue->is_seq_late = !weft_list_is_empty(&peer->waiting);
}

/* The queue lost its last record; frees it if its channel is closed. The caller adjusts peer->credit. */
static void end_stall(weft_sendq *queue)
{
    weft_peer *peer = queue->peer;
    peer->overdrafts -= weft_sendq_overdraws(queue);
    peer->offers -= queue->stale.keys != 0;
    weft_bag_clear(&queue->stale);
    weft_bag_clear(&queue->asked);
    weft_bag_clear(&queue->wanted);
    weft_bag_clear(&queue->tags);
    weft_list_remove(&queue->link);
    weft_worker_help_end(peer->worker, queue->is_helped);
    weft_peer_update_backlog(peer);
    if (queue->stalled_sent && !peer->bye_sent && !peer->bye_received && peer->state == WEFT_PEER_ALIVE)
        weft_sendq_send_frame(queue, WEFT_FRAME_DRAINED, 0);
    queue->stalled_sent = queue->sends_all = false;
    if (!queue->chan)
        free_queue(queue);
}

/* -- what comes in -- */

static int write_record(weft_sendq *queue, int32_t tag, uint32_t bytes, weft_record **out)
{
    weft_record *one = NULL;
    if (!weft_bag_add(&queue->tags, tag) || !(one = weft_records_append(&queue->records, queue->peer->worker->pool, bytes))) {
        weft_bag_remove(&queue->tags, tag);
        return weft_fail(WEFT_E_NOMEM, "no memory to queue a message for rank %u", queue->peer->proc_id.rank);
    }
    one->tag = tag;
    one->bytes = bytes;
    *out = one;
    return 0;
}

static void is_written(weft_sendq *queue, int32_t tag, uint64_t bytes)
{
    weft_peer *peer = queue->peer;
    bool has_credit;
    queue->put++;
    if (weft_list_is_empty(&queue->link))
        begin_stall(queue);
    has_credit = peer->credit + WEFT_CREDIT_STALLED > 0;
    peer->worker->counters[has_credit ? WEFT_COUNT_FRAMES_DEFERRED : WEFT_COUNT_STALLED]++;
    if (!has_credit)
        WEFT_EVENT_RAISE(WEFT_EVENT_SEND_STALLED, NULL, peer->proc_id.rank, tag, bytes);
    if (!has_credit && !queue->stalled_sent)
        weft_sendq_send_stalled(queue);
    else if (weft_bag_remove(&queue->asked, tag))
        weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, tag);
}

/* No credit or ASK will arrive from the peer any more. */
static bool is_over(const weft_peer *to, const weft_chan *chan) { return weft_chan_is_left(chan, to) || to->state != WEFT_PEER_ALIVE; }

static bool is_dead(const weft_peer *peer) { return peer->state == WEFT_PEER_FAILED && !peer->bye_received; }

/* Result of a send that its peer never receives: 0 for an eager one, which completes locally, unless the peer has died. */
static int end_of(const weft_peer *peer, bool is_eager, int rc)
{
    if (!rc && is_dead(peer))
        return weft_fail(WEFT_E_PEER, "the process of rank %u has died", peer->proc_id.rank);
    if (rc || is_eager)
        return rc;
    return weft_chan_left_error(peer);
}

static bool is_eager(const weft_peer *peer, const weft_req *req)
{
    return req->send_mode != WEFT_SEND_SYNC && req->bytes <= peer->eager_max;
}

int weft_sendq_add(weft_peer *peer, weft_req *req)
{
    weft_sendq *queue;
    weft_record *one;
    int rc;
    if (is_over(peer, req->chan)) {
        weft_req_end(req, end_of(peer, is_eager(peer, req), 0));
        return 0;
    }
    queue = open_queue(req->chan, req->rank, peer);
    rc = queue ? write_record(queue, req->tag, WEFT_RECORD_REQ, &one) : WEFT_E_NOMEM;
    if (rc)
        return rc;
    *weft_record_req(one) = req;
    req->queued = one;
    is_written(queue, req->tag, req->bytes);
    return 0;
}

/* Shared request for the next copy; NULL: out of memory. */
static weft_req *batch_of(weft_sendq *queue, int dst)
{
    weft_req *batch = weft_list_is_empty(&queue->batches) ? NULL : weft_container(queue->batches.prev, weft_req, link);
    if (batch && batch->handles < BATCH_MAX)
        return batch;
    batch = weft_req_new(queue->peer->worker, WEFT_REQ_BATCH);
    if (!batch) {
        weft_fail(WEFT_E_NOMEM, "no memory for a send request");
        return NULL;
    }
    batch->chan = queue->chan;
    batch->rank = dst;
    batch->tag = WEFT_ANY_TAG;
    batch->bytes = 0;
    batch->handles = 0;
    batch->order = queue->put;
    weft_list_append(&queue->batches, &batch->link);
    return batch;
}

int weft_sendq_copy(weft_peer *peer, weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
                    weft_req **out)
{
    uint32_t bytes = (uint32_t)(count * (uint64_t)type->size);
    weft_sendq *queue = is_over(peer, chan) ? NULL : open_queue(chan, dst, peer);
    weft_req *batch = queue ? batch_of(queue, dst) : NULL;
    weft_record *one;
    int rc = batch ? write_record(queue, tag, bytes, &one) : WEFT_E_NOMEM;
    if (is_over(peer, chan)) {
        *out = &peer->worker->done_req;
        return is_dead(peer) ? end_of(peer, true, 0) : 0;
    }
    if (rc) {
        if (batch && !batch->handles) {
            weft_list_remove(&batch->link);
            weft_req_free(batch);
        }
        return rc;
    }
    if (type->is_dense && bytes)
        memcpy(one->payload, (const char *)buf + type->true_lb, bytes);
    else if (bytes)
        weft_pack(type, buf, count, 0, bytes, one->payload);
    batch->handles++;
    *out = batch;
    is_written(queue, tag, bytes);
    return 0;
}

bool weft_sendq_is_poll_due(const weft_chan *chan, int dst)
{
    const weft_sendq *queue = weft_sendq_at(chan, dst);
    return !queue || queue->put % POLL_EVERY == 0;
}

/* -- what goes out -- */

/* A record has left: the oldest, or ahead of its turn (next_record). */
static void leave(weft_sendq *queue, weft_record *one)
{
    weft_peer *peer = queue->peer;
    int32_t tag = one->tag;
    queue->is_seq_late = !weft_list_is_empty(&peer->waiting);
    queue->seq = peer->seq_out;
    weft_bag_remove(&queue->tags, tag);
    weft_record_set_gone(one);
    while (weft_sendq_has_records(queue) && weft_record_is_gone(weft_records_front(&queue->records)))
        drop_front(queue);
    weft_sendq_answer(queue, tag);
    weft_sendq_answer(queue, WEFT_ANY_TAG);
}

/* The record to send next: the oldest; without credit, where messages may overtake, the oldest that was asked for. */
static weft_record *next_record(weft_sendq *queue)
{
    weft_record *found = NULL;
    if (queue->peer->credit <= 0 && !queue->sends_all && queue->chan && queue->chan->may_overtake &&
        !weft_bag_has(&queue->wanted, WEFT_ANY_TAG))
        found = weft_records_find(&queue->records, &queue->wanted, OVERTAKEN_MAX);
    return found ? found : weft_records_front(&queue->records);
}

/* Sends a record. 0: sent, failed, or it was removed before; AGAIN: the iface is full or no state of a rendezvous is free. */
static int send_next(weft_sendq *queue)
{
    weft_peer *peer = queue->peer;
    weft_record *one = next_record(queue);
    weft_req *req = one->bytes == WEFT_RECORD_REQ ? *weft_record_req(one) : NULL;
    int32_t credit = peer->credit;
    int rc;
    if (req) {
        req->queued = NULL; /* now: req may be freed below */
        rc = weft_eager_start(peer, req, credit > 0 ? credit : 0);
    } else if (weft_record_is_gone(one)) { /* the oldest */
        drop_front(queue);
        return 0;
    } else {
        weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .chan = queue->chan_out, .src = (int32_t)queue->src, .tag = one->tag,
                                     .bytes = one->bytes}, .body = one->payload, .more = queue->put - queue->left > 1};
        rc = weft_peer_post(peer, &frame);
        if (!rc) {
            peer->credit -= weft_peer_cost(one->bytes);
            weft_eager_count(peer->worker, one->bytes);
        }
    }
    if (rc == WEFT_AGAIN) {
        if (req)
            req->queued = one;
        return rc;
    }
    if (rc && req)
        weft_req_end(req, rc);
    else if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_abort_job(peer, rc);
    peer->worker->counters[WEFT_COUNT_OVERDRAWN] += credit <= 0;
    leave(queue, one);
    return 0;
}

/* Ends the shared requests whose first message has left. Called when no more records can leave now. */
static void end_batches(weft_sendq *queue)
{
    while (!weft_list_is_empty(&queue->batches)) {
        weft_req *batch = weft_container(queue->batches.next, weft_req, link);
        if (batch->order >= queue->left)
            break;
        weft_sendq_release(batch);
    }
}

void weft_sendq_release(weft_req *batch)
{
    weft_list_remove(&batch->link);
    batch->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
    weft_req_end(batch, 0);
}

/* Serves the queues round robin until none may send. Returns the number of messages sent. */
static int flush(weft_peer *peer)
{
    const weft_list_link *idle = NULL; /* first of consecutive queues that sent nothing */
    int n = 0;
    while (!weft_list_is_empty(&peer->sendqs) && weft_list_is_empty(&peer->waiting)) {
        weft_sendq *queue = weft_container(peer->sendqs.next, weft_sendq, link);
        int sent = 0, rc = 0;
        while (sent < CHAN_BURST && weft_sendq_has_records(queue) && weft_list_is_empty(&peer->waiting) &&
               (peer->credit > 0 || weft_sendq_overdraws(queue)) && !rc)
            sent += (rc = send_next(queue)) == 0;
        end_batches(queue);
        n += sent;
        if (!weft_sendq_has_records(queue)) {
            end_stall(queue);
            idle = NULL;
            continue;
        }
        weft_list_remove(&queue->link);
        weft_list_append(&peer->sendqs, &queue->link);
        if (rc || idle == &queue->link)
            break;
        idle = sent ? NULL : idle ? idle : &queue->link;
    }
    return n;
}

int weft_sendq_flush(weft_peer *peer)
{
    int n;
    if (peer->credit + WEFT_CREDIT_STALLED <= 0 && !peer->overdrafts) {
        if (weft_unlikely(peer->offers))
            weft_sendq_offer_stale(peer);
        return 0;
    }
    peer->credit += WEFT_CREDIT_STALLED;
    n = flush(peer);
    for (weft_list_link *link = peer->sendqs.next; link != &peer->sendqs && peer->credit <= 0; link = link->next)
        if (!weft_container(link, weft_sendq, link)->stalled_sent)
            weft_sendq_send_stalled(weft_container(link, weft_sendq, link));
    if (!weft_list_is_empty(&peer->sendqs))
        peer->credit -= WEFT_CREDIT_STALLED;
    if (weft_unlikely(peer->offers) && peer->credit + WEFT_CREDIT_STALLED <= 0 && !peer->overdrafts && weft_list_is_empty(&peer->waiting))
        weft_sendq_offer_stale(peer);
    return n;
}

/* -- ends -- */

/* Ends the stall if no live record is left. Must not be called inside of flush(). */
static void end_if_empty(weft_sendq *queue)
{
    weft_peer *peer = queue->peer;
    if (queue->tags.keys || !weft_sendq_has_records(queue))
        return;
    while (weft_sendq_has_records(queue))
        drop_front(queue);
    end_batches(queue);
    if (peer->sendqs.next == &queue->link && peer->sendqs.prev == &queue->link)
        peer->credit += WEFT_CREDIT_STALLED;
    end_stall(queue);
}

static void take_out(weft_sendq *queue, weft_req *req)
{
    *weft_record_req(req->queued) = NULL;
    req->queued = NULL;
    weft_bag_remove(&queue->tags, req->tag);
}

void weft_sendq_remove(weft_req *req)
{
    weft_sendq *queue = weft_sendq_at(req->chan, req->rank);
    take_out(queue, req);
    if (!weft_bag_has(&queue->tags, req->tag) && queue->tags.keys)
        weft_sendq_answer(queue, req->tag); /* it may have been requested */
    end_if_empty(queue);
}

/* Ends all requests in the queue. all: drops the copies too. */
static void drop(weft_sendq *queue, int rc, bool all)
{
    weft_peer *peer = queue->peer;
    uint32_t at = queue->records.at;
    for (weft_record_block *block = queue->records.first; block; block = block->next, at = sizeof *block)
        for (; at < block->used; at += weft_record_bytes(weft_record_at(block, at)->bytes)) {
            weft_record *one = weft_record_at(block, at);
            weft_req *req = one->bytes == WEFT_RECORD_REQ ? *weft_record_req(one) : NULL;
            if (req) {
                take_out(queue, req);
                weft_req_end(req, end_of(peer, is_eager(peer, req), rc));
            } else if (all && !weft_record_is_gone(one)) {
                weft_bag_remove(&queue->tags, one->tag);
                weft_record_set_gone(one);
            }
        }
    while (!weft_list_is_empty(&queue->batches))
        weft_sendq_release(weft_container(queue->batches.next, weft_req, link));
    end_if_empty(queue);
}

void weft_sendq_close(weft_chan *chan)
{
    if (!chan->sendqs)
        return;
    while (!weft_list_is_empty(&chan->sendqs->all)) {
        weft_sendq *queue = weft_container(chan->sendqs->all.next, weft_sendq, all);
        weft_list_remove(&queue->all);
        drop(queue, WEFT_E_COMM, false);
        queue->chan = NULL;
        if (!weft_sendq_has_records(queue))
            free_queue(queue);
    }
    weft_fifomap_close(&chan->sendqs->map);
    free(chan->sendqs);
    chan->sendqs = NULL;
}

void weft_sendq_give_up(weft_peer *peer, int rc)
{
    bool is_left = peer->is_gone || peer->state != WEFT_PEER_ALIVE;
    for (weft_list_link *link = peer->sendqs.next; link != &peer->sendqs;) {
        weft_sendq *queue = weft_container(link, weft_sendq, link);
        bool stays = queue->is_lasting && !is_left;
        if (!stays)
            drop(queue, rc, true);
        link = stays ? link->next : peer->sendqs.next; /* from the start: requests that end may send */
    }
}

void weft_sendq_leave(weft_peer *peer, const weft_chan *chan, int rc)
{
    for (weft_list_link *link = peer->sendqs.next; link != &peer->sendqs; link = link->next) {
        weft_sendq *queue = weft_container(link, weft_sendq, link);
        if (queue->chan == chan) {
            drop(queue, rc, true);
            return;
        }
    }
}
