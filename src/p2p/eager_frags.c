/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_frags: see eager_frags.h. An unexpected message belongs to the peer (peer->frags) until it is complete; receives and probes
 * see it only then.
 */
#include "p2p/eager_frags.h"

#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "core/worker.h"
#include "mem/pool.h"
#include "p2p/bidir.h"
#include "p2p/chan.h"
#include "p2p/deliver.h"
#include "p2p/match.h"
#include "p2p/rndv_select.h"
#include "type/pack.h"
#include "type/type.h"

/* -- the sender -- */

#define FRAGS_MIN 4 /* fragments, at least, that are longer than the shortest */

/* Fragment that the iface refused, while it is queued. */
typedef struct rest {
    weft_completion completion;
    weft_req *req;
    uint64_t size; /* of this allocation, bytes */
    uint8_t bytes[];
} rest;

static void free_rest(weft_completion *completion)
{
    rest *rest = weft_container(completion, struct rest, completion);
    weft_req *req = rest->req;
    weft_pool_free(req->worker->pool, rest, rest->size);
    weft_req_free(req);
}

/* The receiver has the beginning of the message: aborts the job if a fragment cannot be queued. */
static void queue_copy(weft_peer *peer, weft_frame *frame)
{
    weft_worker *worker = peer->worker;
    uint64_t bytes = frame->hdr.bytes, size = sizeof(rest) + bytes;
    rest *rest = weft_pool_alloc(worker->pool, size);
    weft_req *req = rest ? weft_req_new(worker, WEFT_REQ_SEND) : NULL;
    bool has_left;
    int rc;
    if (!req)
        weft_peer_abort_job(peer, weft_fail(WEFT_E_NOMEM, "no memory to queue %llu bytes of a message", (unsigned long long)bytes));
    *rest = (struct rest){.completion = {.left = 1, .open = free_rest}, .req = req, .size = size};
    memcpy(rest->bytes, frame->body, bytes);
    frame->body = rest->bytes;
    req->completion = &rest->completion;
    rc = weft_peer_send(peer, frame, req, &has_left);
    if (rc)
        weft_peer_abort_job(peer, rc);
    if (has_left)
        weft_req_end(req, 0);
}

/* Bytes of a fragment: equal ones, few of them where the message is long. */
static uint64_t length_of(const weft_peer *peer, uint64_t total)
{
    uint64_t most = peer->ep->iface->caps.chunk, frag = total / FRAGS_MIN < most ? total / FRAGS_MIN : most, count;
    frag = frag > peer->frag ? frag : peer->frag;
    count = (total + frag - 1) / frag;
    return weft_round_up((total + count - 1) / count, WEFT_LINE);
}

int weft_eager_frags_send(weft_peer *peer, const weft_frame *whole)
{
    uint64_t total = whole->hdr.bytes, max = length_of(peer, total);
    weft_frame frame = {.hdr = whole->hdr, .body = &total};
    int rc;
    frame.hdr.kind = WEFT_FRAME_EAGER_FRAGS;
    frame.hdr.bytes = sizeof total;
    rc = weft_peer_post(peer, &frame);
    if (rc)
        return rc;
    frame.hdr.kind = WEFT_FRAME_FRAG;
    for (uint64_t at = 0; at < total; at += frame.hdr.bytes) {
        const char *from = (const char *)whole->body + at;
        frame.body = from;
        frame.hdr.bytes = (uint32_t)(total - at < max ? total - at : max);
        rc = weft_list_is_empty(&peer->waiting) ? weft_peer_post(peer, &frame) : WEFT_AGAIN;
        if (weft_unlikely(rc == WEFT_AGAIN))
            queue_copy(peer, &frame);
        if (weft_unlikely(rc < 0))
            weft_peer_abort_job(peer, rc);
    }
    return 0;
}

uint32_t weft_eager_frags_max(const weft_peer *peer)
{
    bool is_free = weft_knob.rndv_scheme == WEFT_RNDV_SCHEME_AUTO || weft_knob.rndv_scheme == WEFT_RNDV_SCHEME_COPY;
    return is_free && !weft_knob.checksum && !weft_knob.eager_max ? peer->ep->iface->caps.frags_max : 0;
}

/* -- the receiver -- */

static weft_rndv_xfer xfer_of(const weft_eager_frags *frags)
{
    return (weft_rndv_xfer){.proto = WEFT_RNDV_COPY, .bytes = frags->hdr.bytes};
}

/* A message that could have been announced is a sample of WEFT_RNDV_COPY, so that the selection knows what that protocol takes. */
static void measure(weft_peer *peer)
{
    weft_eager_frags *frags = &peer->frags;
    weft_rndv_xfer xfer = xfer_of(frags);
    if (frags->hdr.bytes <= peer->eager_max || weft_bidir_expects_send(&peer->bidir))
        return;
    frags->began_ns = weft_clock_ns();
    weft_rndv_xfer_begin(peer->rndv_stats, &xfer, frags->began_ns);
}

void weft_eager_frags_on_first(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_eager_frags *frags = &peer->frags;
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    uint64_t total;
    memcpy(&total, body, sizeof total);
    *frags = (weft_eager_frags){.hdr = *hdr};
    frags->hdr.kind = WEFT_FRAME_EAGER;
    frags->hdr.bytes = (uint32_t)total;
    if (!chan)
        return;
    frags->req = weft_match_posted(&chan->match, hdr->src, hdr->tag);
    if (frags->req)
        measure(peer);
    else
        frags->unexpected = weft_deliver_unexpected(peer, &frags->hdr, NULL);
}

static void put(const weft_eager_frags *frags, const void *body, uint64_t bytes)
{
    weft_req *req = frags->req;
    if (frags->unexpected)
        memcpy((char *)frags->unexpected->body + frags->arrived, body, bytes);
    if (!req || frags->arrived >= req->bytes)
        return;
    bytes = bytes < req->bytes - frags->arrived ? bytes : req->bytes - frags->arrived;
    if (req->is_dense)
        memcpy((char *)weft_req_start(req) + frags->arrived, body, bytes);
    else
        weft_unpack(req->type, req->buf, weft_req_count(req), frags->arrived, bytes, body);
}

/* Since the first fragment a matching receive may have been posted, or the communicator freed or stopped. */
static void end_unexpected(weft_peer *peer, weft_unexpected *unexpected)
{
    weft_worker *worker = peer->worker;
    weft_chan *chan = weft_chan_of(worker, unexpected->hdr.chan);
    weft_req *req = chan ? weft_match_posted(&chan->match, unexpected->hdr.src, unexpected->hdr.tag) : NULL;
    int rc = !chan ? WEFT_E_COMM : chan->refuses && !req ? chan->refuses(chan, unexpected->hdr.tag) : 0;
    if (!req && !rc) {
        weft_deliver_enqueue(peer, chan, unexpected);
        return;
    }
    if (req)
        weft_deliver_eager(peer, req, &unexpected->hdr, unexpected->body);
    else
        weft_deliver_drop(peer, &unexpected->hdr, unexpected->body, rc);
    weft_unexpected_free(worker, unexpected);
}

void weft_eager_frags_on_next(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_eager_frags *frags = &peer->frags;
    weft_req *req = frags->req;
    weft_unexpected *unexpected = frags->unexpected;
    put(frags, body, hdr->bytes);
    frags->arrived += hdr->bytes;
    if (frags->arrived < frags->hdr.bytes)
        return;
    frags->req = NULL;
    frags->unexpected = NULL;
    if (frags->began_ns) {
        weft_rndv_xfer xfer = xfer_of(frags);
        weft_rndv_xfer_end(peer->rndv_stats, &xfer, false, frags->began_ns, weft_clock_ns());
        frags->began_ns = 0;
    }
    if (req)
        weft_deliver_end(peer, req, &frags->hdr);
    else if (unexpected)
        end_unexpected(peer, unexpected);
    else
        weft_deliver_drop(peer, &frags->hdr, NULL, WEFT_E_COMM);
}

void weft_eager_frags_lost(weft_peer *peer, int rc)
{
    weft_eager_frags *frags = &peer->frags;
    if (frags->unexpected)
        weft_unexpected_free(peer->worker, frags->unexpected);
    if (frags->req)
        weft_req_end(frags->req, rc);
    *frags = (weft_eager_frags){.req = NULL};
}
