/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lost: ends the operations that wait for a process that has died, with WEFT_E_PEER (mpirun --enable-recovery), and the sends to one that
 * has called MPI_Finalize. Operations with others go on. A receive or probe from the dead process fails when none of its messages is left.
 * On each channel of which it is a member, a death also ends one receive from any source, whose status has it as the source. Requires
 * worker->lock.
 */
#ifndef WEFT_P2P_LOST_H
#define WEFT_P2P_LOST_H

#include "p2p/chan.h"

/* The peer has failed with rc, and will send and receive nothing more. Not inside of an iface's poll of frames of this peer. */
void weft_lost_peer(weft_peer *peer, int rc);
/* worker->on_death. */
void weft_lost_on_death(weft_worker *worker, uint32_t rank);
/* A receive was posted on a channel with chan->lost_count: ends it, or an older one, if its source has died, or a death has not ended one
 * yet. */
void weft_lost_on_posted(weft_chan *chan, const weft_req *req);
/* 0, or the error of a probe that finds no message. *info gets the source. */
int weft_lost_probe(const weft_chan *chan, int src, weft_recv_info *info);
/* Ends all receives from this member, and all sends to it, with rc: it has left the channel, and all that it sent has come. */
void weft_lost_left(weft_chan *chan, uint32_t member, int rc);
/* The peer has called MPI_Finalize: ends the sends to it on all channels that it has left. Eager ones end as if sent, others with
 * WEFT_E_PEER. */
void weft_lost_finalized(weft_peer *peer);
/* Has the member's process died? O(1) while none has. */
bool weft_lost_is_member(const weft_chan *chan, uint32_t rank);

#endif
