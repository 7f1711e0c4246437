/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frags: see frags.h. An unexpected message is visible to receives and probes when all of it is there; until then it belongs to the peer.
 */
#include "p2p/frags.h"

#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "core/worker.h"
#include "mem/pool.h"
#include "p2p/arrive.h"
#include "p2p/chan.h"
#include "p2p/match.h"
#include "type/pack.h"
#include "type/type.h"

/* -- the sender -- */

/* What the iface refused, while it is queued. */
typedef struct rest {
    weft_gate gate;
    weft_req *req;
    uint64_t size; /* of all this */
    uint8_t bytes[];
} rest;

static void free_rest(weft_gate *gate)
{
    rest *rest = weft_container(gate, struct rest, gate);
    weft_req *req = rest->req;
    weft_pool_give(req->worker->pool, rest, rest->size);
    weft_req_free(req);
}

/* The receiver has the beginning of the message: there is no way back. */
static int queue_rest(weft_peer *peer, weft_frame *frame, const void *from, uint64_t bytes)
{
    weft_worker *worker = peer->worker;
    uint64_t size = sizeof(rest) + bytes;
    rest *rest = weft_pool_take(worker->pool, size);
    weft_req *req = rest ? weft_req_new(worker, WEFT_REQ_SEND) : NULL;
    bool has_left;
    int rc;
    if (!req)
        weft_peer_doom(peer, weft_fail(WEFT_E_NOMEM, "no memory to queue %llu bytes of a message", (unsigned long long)bytes));
    *rest = (struct rest){.gate = {.left = 1, .open = free_rest}, .req = req, .size = size};
    memcpy(rest->bytes, from, bytes);
    frame->body = rest->bytes;
    frame->head.bytes = (uint32_t)bytes;
    req->gate = &rest->gate;
    rc = weft_peer_send(peer, frame, req, &has_left);
    if (rc)
        weft_peer_doom(peer, rc);
    if (has_left)
        weft_req_end(req, 0);
    return 0;
}

int weft_frags_send(weft_peer *peer, const weft_frame *whole)
{
    uint64_t total = whole->head.bytes, count = (total + peer->frag - 1) / peer->frag;
    uint64_t most = weft_round_up((total + count - 1) / count, WEFT_LINE);
    weft_frame frame = {.head = whole->head, .body = &total};
    int rc;
    frame.head.kind = WEFT_FRAME_EAGER_FRAGS;
    frame.head.bytes = sizeof total;
    rc = weft_peer_post(peer, &frame);
    if (rc)
        return rc;
    frame.head.kind = WEFT_FRAME_FRAG;
    for (uint64_t at = 0; at < total; at += frame.head.bytes) {
        const char *from = (const char *)whole->body + at;
        frame.body = from;
        frame.head.bytes = (uint32_t)(total - at < most ? total - at : most);
        rc = weft_peer_post(peer, &frame);
        if (weft_unlikely(rc == WEFT_AGAIN))
            return queue_rest(peer, &frame, from, total - at);
        if (weft_unlikely(rc < 0))
            weft_peer_doom(peer, rc);
    }
    return 0;
}

/* -- the receiver -- */

void weft_frags_on_first(weft_peer *peer, const weft_head *head, const void *body)
{
    weft_frags *frags = &peer->frags;
    weft_chan *chan = weft_chan_of(peer->worker, head->chan);
    uint64_t total;
    memcpy(&total, body, sizeof total);
    *frags = (weft_frags){.head = *head};
    frags->head.kind = WEFT_FRAME_EAGER;
    frags->head.bytes = (uint32_t)total;
    if (!chan)
        return;
    frags->req = weft_match_arrival(&chan->match, head->src, head->tag);
    if (!frags->req)
        frags->early = weft_arrive_early(peer, &frags->head, NULL);
}

static void put(const weft_frags *frags, const void *body, uint64_t bytes)
{
    weft_req *req = frags->req;
    if (frags->early)
        memcpy((char *)frags->early->body + frags->arrived, body, bytes);
    if (!req || frags->arrived >= req->bytes)
        return;
    bytes = bytes < req->bytes - frags->arrived ? bytes : req->bytes - frags->arrived;
    if (req->is_dense)
        memcpy((char *)req->buf + req->type->true_lb + frags->arrived, body, bytes);
    else
        weft_unpack(req->type, req->buf, req->count, frags->arrived, bytes, body);
}

/* A receive may have been posted since the message began, and its communicator may have been freed. */
static void end_early(weft_peer *peer, weft_early *early)
{
    weft_worker *worker = peer->worker;
    weft_chan *chan = weft_chan_of(worker, early->head.chan);
    weft_req *req = chan ? weft_match_arrival(&chan->match, early->head.src, early->head.tag) : NULL;
    int rc = !chan ? WEFT_E_COMM : chan->refuses && !req ? chan->refuses(chan, early->head.tag) : 0;
    if (!req && !rc) {
        weft_arrive_keep(peer, chan, early);
        return;
    }
    if (req)
        weft_arrive_eager(peer, req, &early->head, early->body);
    else
        weft_arrive_drop(peer, &early->head, early->body, rc);
    weft_early_free(worker, early);
}

void weft_frags_on_next(weft_peer *peer, const weft_head *head, const void *body)
{
    weft_frags *frags = &peer->frags;
    weft_req *req = frags->req;
    weft_early *early = frags->early;
    put(frags, body, head->bytes);
    frags->arrived += head->bytes;
    if (frags->arrived < frags->head.bytes)
        return;
    frags->req = NULL;
    frags->early = NULL;
    if (req)
        weft_arrive_end(peer, req, &frags->head);
    else if (early)
        end_early(peer, early);
    else
        weft_arrive_drop(peer, &frags->head, NULL, WEFT_E_COMM);
}
