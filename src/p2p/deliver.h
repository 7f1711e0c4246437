/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deliver: what becomes of a message that has arrived: copied into its matched receive, kept for a later one, or dropped. Called by
 * dispatch, eager_frags, recv and chan. Requires worker->lock; may run inside an iface's poll.
 */
#ifndef WEFT_P2P_DELIVER_H
#define WEFT_P2P_DELIVER_H

#include <string.h>

#include "base/copy.h"
#include "core/peer.h"
#include "core/worker.h"
#include "p2p/chan.h"
#include "p2p/match.h"
#include "p2p/req_data.h"
#include "type/pack.h"
#include "type/type.h"

/* Copies an eager message into its matched receive, ends the receive and returns the credits to the sender. */
void weft_deliver_eager(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* The same for RTS (starts the rendezvous), EAGER_CSUM frames, and what a withdrawn promise holds. */
void weft_deliver_other(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* Steps of a message in fragments (p2p/eager_frags). */
/* Allocates an unexpected message and copies body unless NULL. Never returns NULL: aborts the job if out of memory. */
weft_unexpected *weft_deliver_unexpected(weft_peer *peer, const weft_hdr *hdr, const void *body);
/* Bytes of the message, announced or here. */
uint64_t weft_unexpected_bytes(const weft_unexpected *unexpected);
/* Queues a complete unexpected message for a later receive and wakes a sleeping thread, which may probe for it. */
void weft_deliver_enqueue(weft_peer *peer, weft_chan *chan, weft_unexpected *unexpected);
/* Ends a receive whose buffer holds the complete message; returns the credits. */
void weft_deliver_end(weft_peer *peer, weft_req *req, const weft_hdr *hdr);

/* Drops a message that no receive can match (communicator freed or stopped). Returns its credits; an RTS is rejected with rc. */
void weft_deliver_drop(weft_peer *peer, const weft_hdr *hdr, const void *body, int rc);
/* Ends a receive that is shorter than its message, with WEFT_E_TRUNCATE. */
void weft_deliver_end_truncated(weft_req *req, const weft_hdr *hdr);

/* weft_deliver_eager for the fast path of dispatch. */
static inline void weft_deliver_eager_inline(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body)
{
    uint64_t bytes = hdr->bytes;
    req->recv_info.source = hdr->src;
    req->recv_info.tag = hdr->tag;
    req->recv_info.bytes = bytes;
    req->recv_info.cancelled = false;
    if (weft_unlikely(bytes > req->bytes))
        bytes = req->bytes;
    if (weft_likely(req->is_dense) && bytes <= 32) {
        weft_copy_short(req->buf, body, (uint32_t)bytes);
    } else {
        if (req->is_dense)
            memcpy(req->buf, body, bytes);
        else
            weft_unpack(req->type, req->buf, weft_req_count(req), 0, bytes, body);
        peer->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    }
    weft_peer_add_credits_due(peer, hdr->bytes);
    if (weft_unlikely(bytes < hdr->bytes))
        weft_deliver_end_truncated(req, hdr);
    else
        weft_req_end(req, 0);
}

#endif
