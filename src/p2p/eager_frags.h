/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_frags: eager messages in fragments. Where a frame is copied in by its sender and out by its receiver (caps.frag), a receiver that waits
 * copies one fragment while the sender copies the next. A frame EAGER_FRAGS announces the message, so it is matched meanwhile; FRAG frames
 * follow, with nothing else of this peer between. Guarded by the worker.
 */
#ifndef WEFT_P2P_EAGER_FRAGS_H
#define WEFT_P2P_EAGER_FRAGS_H

#include "core/peer.h"

/* Is the peer likely to wait for this message? It has answered all that we sent: no credit is out. Two that send to each other at the same
 * time copy both, and in a stream each message is a fragment of the stream: more frames are only more frames. */
static inline bool weft_eager_frags_help(const weft_peer *peer, uint64_t bytes)
{
    return weft_unlikely(bytes > peer->frag) && peer->credit == peer->credit_full;
}

/* Sends the message that this frame would carry whole: 0, AGAIN when nothing of it has left, or an error. What the iface refuses midway is
 * copied and queued, so the body is free on return. */
int weft_eager_frags_send(weft_peer *peer, const weft_frame *whole);

/* Frames of both kinds. */
void weft_eager_frags_on_first(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_eager_frags_on_next(weft_peer *peer, const weft_hdr *hdr, const void *body);

#endif
