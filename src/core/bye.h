/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bye: the BYE frames by which a process takes leave of its peers: for good, or until a session after MPI_Finalize (docs/wire.md). Called
 * by core/world and p2p; requires worker->lock. The return is weft_peer_come_back.
 * Invariant: a peer to which BACK was sent learns of the next rest before this process stops polling.
 */
#ifndef WEFT_CORE_BYE_H
#define WEFT_CORE_BYE_H

#include <stdbool.h>

#include "core/peer_type.h"
#include "transport/frame.h"

/* One step of closing: sends FINAL to all peers that do not rest and closes drained eps. True: nothing is in flight and all eps are
 * closed. waited_ns: since the first step. */
bool weft_bye_close(weft_worker *worker, uint64_t waited_ns);
/* One step towards rest, which leaves the eps open. True: nothing is in flight and each peer knows, or rests as well. waited_ns: since the
 * first step. After a while the launcher is asked about silent peers. */
bool weft_bye_rest(weft_worker *worker, uint64_t waited_ns);
/* Call after weft_bye_rest returned true. The next send to a peer then sends BACK first. */
void weft_bye_rested(weft_worker *worker);
/* Call when this process has returned, before it polls. */
void weft_bye_returned(weft_worker *worker);
/* One step of the end of a process that rests: FINAL to the peers that may wait for it. Peers that rest are not waited for. True: no peer
 * needs more steps. */
bool weft_bye_leave(weft_worker *worker);
/* A BYE has arrived: sets the peer's state and answers. */
void weft_bye_received(weft_peer *peer, const weft_hdr *hdr);
/* The connection to the peer is lost. True: it has left in an orderly way, as far as this process can know: it rested, or this process did
 * and needs nothing more from it. (Of a crash the launcher knows.) */
bool weft_bye_has_departed(const weft_peer *peer);
/* By the pages of this node: the process with this rank of the job has ended, or will not return to MPI. False also if not known. */
bool weft_bye_is_final(const weft_worker *worker, uint32_t rank);

#endif
