/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq: sends that wait for credit, one queue per channel and peer in call order; messages of a channel never overtake each other.
 * A queue is sent when credit returns. If the receiver requests a message of it (ASK, stall.h), everything up to that message is
 * sent beyond the credit. docs/wire.md, "Credits", has the protocol. Called by send, recv, dispatch and chan under worker->lock.
 * Invariant: while a queue has records peer->credit is at most 0, so that the fast paths need not check it.
 */
#ifndef WEFT_P2P_SENDQ_H
#define WEFT_P2P_SENDQ_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "type/type.h"

#define WEFT_SENDQ_COPY_MAX 256 /* bytes of a message that is queued by copy: less than a request takes */

/* Queues the send of req; ends it at once if the peer has sent BYE or failed. 0 or an error. */
int weft_sendq_add(weft_peer *peer, weft_req *req);
/* Queues a copy of a short message. *req: a request shared by several messages; req->handles counts its handles. It ends when the first
 * of them has left: a program that waits for its sends then does not fill the queue without bound. 0 or an error. */
int weft_sendq_copy(weft_peer *peer, weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
                    weft_req **req);
/* Should the caller poll for credit? True at the first queued message and at each POLL_EVERYth. */
bool weft_sendq_is_poll_due(const weft_chan *chan, int dst);
/* Removes a queued request (req->queued); the caller ends it. */
void weft_sendq_remove(weft_req *req);
/* Ends a shared request at once; its messages stay queued. */
void weft_sendq_release(weft_req *batch);

/* worker->flush: sends what credit or ASKs allow. Returns the number of messages sent. */
int weft_sendq_flush(weft_peer *peer);
/* Handler of ASK: the receiver requests a message. */
void weft_sendq_on_ask(weft_peer *peer, const weft_hdr *hdr, const void *body);
/* The channel closes: copies are still sent, requests end with WEFT_E_COMM. */
void weft_sendq_close(weft_chan *chan);
/* The peer has sent BYE (rc 0) or failed: ends all requests queued for it and drops the copies. */
void weft_sendq_give_up(weft_peer *peer, int rc);

/* The peer has left this channel: ends all requests queued for it on the channel with rc and drops the copies. */
void weft_sendq_leave(weft_peer *peer, const weft_chan *chan, int rc);

#endif
