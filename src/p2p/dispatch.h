/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dispatch: entry of all received frames into layer 4 (p2p): the switch on the frame kind. Opens a world with point-to-point.
 * Runs inside an iface's poll under the worker's lock; may send replies, never waits.
 */
#ifndef WEFT_P2P_DISPATCH_H
#define WEFT_P2P_DISPATCH_H

#include "core/peer.h"
#include "core/world.h"
#include "p2p/chan.h"
#include "p2p/match.h"

/* Opens a world with point-to-point. src/mpi and tests call it instead of weft_world_open; same contract. */
int weft_p2p_open(weft_boot *boot, int thread_level, weft_world **world);

/* Copies an eager message into its matched receive, ends the receive and returns the credits to the sender. */
void weft_dispatch_eager(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* The same for RTS (starts the rendezvous) and EAGER_CSUM frames. */
void weft_dispatch_other(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* Steps of a message in fragments (p2p/eager_frags). */
/* Allocates an unexpected message and copies body unless NULL. Never returns NULL: aborts the job if out of memory. */
weft_unexpected *weft_dispatch_unexpected(weft_peer *peer, const weft_hdr *hdr, const void *body);
/* Queues a complete unexpected message for a later receive and wakes a sleeping thread, which may probe for it. */
void weft_dispatch_keep(weft_peer *peer, weft_chan *chan, weft_unexpected *unexpected);
/* Ends a receive whose buffer holds the complete message; returns the credits. */
void weft_dispatch_end(weft_peer *peer, weft_req *req, const weft_hdr *hdr);

/* Drops a message that no receive can match (communicator freed or stopped). Returns its credits; an RTS is rejected with rc. */
void weft_dispatch_drop(weft_peer *peer, const weft_hdr *hdr, const void *body, int rc);

#endif
