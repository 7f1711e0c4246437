/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deliver: see deliver.h.
 */
#include "p2p/deliver.h"

#include <stdio.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world.h"
#include "p2p/held.h"
#include "p2p/msg_csum.h"
#include "p2p/rndv.h"

void weft_deliver_end_truncated(weft_req *req, const weft_hdr *hdr)
{
    req->recv_info.bytes = req->bytes;
    weft_req_end(req, weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %u bytes, the receive buffer %llu", hdr->src,
                                hdr->tag, hdr->bytes, (unsigned long long)req->bytes));
}

void weft_deliver_eager(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body) {
    weft_deliver_eager_inline(peer, req, hdr, body);
}

void weft_deliver_other(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body)
{
    int rc;
    if (weft_unlikely(hdr->kind == WEFT_FRAME_HELD)) {
        weft_held_recv(weft_held_of(body), req);
        return;
    }
    if (hdr->kind == WEFT_FRAME_RTS) {
        weft_peer_add_credits_due(peer, hdr->bytes);
        weft_rndv_recv_rts(peer, req, hdr, body);
        return;
    }
    rc = weft_msg_csum_copy_out(peer, req, hdr, body);
    peer->worker->counters[WEFT_COUNT_BYTES_COPIED] += req->recv_info.bytes;
    weft_peer_add_credits_due(peer, hdr->bytes);
    weft_req_end(req, rc);
}

void weft_deliver_end(weft_peer *peer, weft_req *req, const weft_hdr *hdr)
{
    uint64_t bytes = hdr->bytes < req->bytes ? hdr->bytes : req->bytes;
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = hdr->bytes};
    peer->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    weft_peer_add_credits_due(peer, hdr->bytes);
    if (weft_unlikely(bytes < hdr->bytes))
        weft_deliver_end_truncated(req, hdr);
    else
        weft_req_end(req, 0);
}

weft_unexpected *weft_deliver_unexpected(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_worker *worker = peer->worker;
    weft_unexpected *unexpected = weft_unexpected_new(worker, peer, hdr, body);
    if (weft_unlikely(!unexpected)) {
        char text[256];
        snprintf(text, sizeof text,
                 "no memory for an unexpected message of %u bytes from rank %u: the message is lost; the job ends.\n"
                 "Post receives earlier, or lower WEFT_CREDIT_KIB (now %d KiB for each peer).",
                 hdr->bytes, peer->proc_id.rank, weft_knob.credit_kib);
        worker->world->boot->ops->abort(worker->world->boot, 1, text);
    }
    return unexpected;
}

uint64_t weft_unexpected_bytes(const weft_unexpected *unexpected)
{
    const weft_hdr *hdr = &unexpected->hdr;
    if (weft_unlikely(hdr->kind == WEFT_FRAME_HELD))
        return weft_held_of(unexpected->body)->req->bytes;
    return hdr->kind == WEFT_FRAME_RTS ? ((const weft_rts *)unexpected->body)->bytes : weft_msg_csum_payload(hdr);
}

void weft_deliver_enqueue(weft_peer *peer, weft_chan *chan, weft_unexpected *unexpected)
{
    weft_worker *worker = peer->worker;
    const weft_hdr *hdr = &unexpected->hdr;
    if (chan->on_unexpected && (uint32_t)hdr->src < chan->size)
        chan->on_unexpected(chan, (uint32_t)hdr->src, hdr->tag);
    weft_unexpected_add(&chan->match, worker, unexpected);
    WEFT_EVENT_RAISE(WEFT_EVENT_UNEXPECTED_QUEUED, chan, hdr->src, hdr->tag, (int64_t)weft_unexpected_bytes(unexpected));
    worker->counters[WEFT_COUNT_UNEXPECTED]++;
    worker->counters[WEFT_COUNT_UNEXPECTED_BYTES] += hdr->bytes;
    worker->counters[WEFT_COUNT_BYTES_COPIED] += hdr->kind != WEFT_FRAME_RTS && hdr->bytes > 32 ? hdr->bytes : 0;
    if (weft_unlikely(worker->is_asleep)) /* a sleeping thread may probe for it */
        worker->world->sleep_ops->wake(worker);
}

void weft_deliver_drop(weft_peer *peer, const weft_hdr *hdr, const void *body, int rc)
{
    weft_log_debug("a message of rank %u to a communicator that is freed or stopped is dropped", peer->proc_id.rank);
    if (hdr->kind == WEFT_FRAME_HELD) {
        weft_held_drop(weft_held_of(body));
        return;
    }
    if (hdr->kind == WEFT_FRAME_RTS)
        weft_rndv_reject_rts(peer, body, rc);
    weft_peer_add_credits_due(peer, hdr->bytes);
}
