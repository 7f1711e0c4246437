/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dispatch: the one switch on a frame's kind, where every frame enters floor 4, and what a world on this floor is opened with.
 */
#ifndef WEFT_P2P_DISPATCH_H
#define WEFT_P2P_DISPATCH_H

#include "core/peer.h"
#include "core/world.h"
#include "p2p/chan.h"
#include "p2p/match.h"

/* Opens the world with point-to-point on top: what src/mpi and tests call instead of weft_world_open. Same terms. */
int weft_p2p_open(weft_boot *boot, int thread_level, weft_world **world);

/* An eager message goes into the receive that matched it; the room it took is owed back to its sender. */
void weft_dispatch_eager(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* The same for every other kind of message: one that is announced, or has a sum behind it. */
void weft_dispatch_other(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* A message in fragments (p2p/eager_frags). Unexpected: room for it, filled from body unless that is NULL; then, when all of it is there, it is
 * kept for a receive. Matched: all of it is in the receive. */
weft_unexpected *weft_dispatch_unexpected(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_dispatch_keep(weft_peer *peer, weft_chan *chan, weft_unexpected *unexpected);
void weft_dispatch_end(weft_peer *peer, weft_req *req, const weft_hdr *hdr);

/* A message whose communicator was freed: nobody can ask for it any more. Its room is owed back, a sender that waits is told. */
void weft_dispatch_drop(weft_peer *peer, const weft_hdr *hdr, const void *body, int rc);

#endif
