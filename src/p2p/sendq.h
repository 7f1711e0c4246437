/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq: what a sender has to send while the receiver lends no room for it: a queue for each channel and peer, in the order of the calls.
 * It moves on when credit comes back, or beyond the credit when the receiver asks for a message that stands in it (stall.h): then
 * everything up to that message leaves, so that messages of a channel never overtake each other. docs/wire.md, "Credits", has the protocol.
 * While anything waits, peer->credit is at most 0, so that the short ways need no look here.
 */
#ifndef WEFT_P2P_SENDQ_H
#define WEFT_P2P_SENDQ_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "type/type.h"

#define WEFT_SENDQ_COPY_MAX 256 /* bytes of a message that is copied aside: less than a request takes */

/* Queues the send that req describes. 0 or an error. */
int weft_sendq_add(weft_peer *peer, weft_req *req);
/* Queues a copy of a short message. *req: a request that it shares with others; each handle to it counts once in req->count. It is over when
 * the first of them has left, as all of them were copied: that keeps a program which waits for its sends from filling our memory. */
int weft_sendq_copy(weft_peer *peer, weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, weft_req **req);
/* Time to poll for credit: with the first message queued, and with each 32nd. */
bool weft_sendq_is_look_due(const weft_chan *chan, int dst);
/* Takes a request that was queued out again; the caller ends it. */
void weft_sendq_remove(weft_req *req);
/* Ends a shared request at once; its messages leave when they can. */
void weft_sendq_release(weft_req *batch);

/* worker->flush: sends what credit or asks allow. How many messages left. */
int weft_sendq_flush(weft_peer *peer);
/* The receiver asks for a message (WEFT_FRAME_ASK). */
void weft_sendq_on_ask(weft_peer *peer, const weft_hdr *hdr, const void *body);
/* The channel closes: copies still leave, requests end with an error. */
void weft_sendq_close(weft_chan *chan);
/* The peer takes no more (goodbye, rc 0) or is lost: everything queued for it ends. */
void weft_sendq_give_up(weft_peer *peer, int rc);

#endif
