/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: rendezvous, for messages too long for eager and for synchronous sends. The sender announces the message by RTS; the receiver
 * matches it and chooses the protocol (rndv_select). Called by eager, dispatch and recv under worker->lock.
 * If the iface needs registered memory, keys travel in RTS (get) and CTS (put). An unregistered buffer is registered at once if
 * short, registered segment by segment while the previous one moves, or copied now and registered asynchronously.
 * Memory that cannot be registered goes by DATA frames: no transfer fails for lack of a key.
 */
#ifndef WEFT_P2P_RNDV_H
#define WEFT_P2P_RNDV_H

#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "p2p/rndv_wire.h"

/* Sender: announces the message of req. 0; WEFT_AGAIN: no state is free (rndv_pool); or an error. */
int weft_rndv_send_rts(weft_peer *peer, weft_req *req);
/* Sender: requests to cancel an announced message. The request ends in any case, cancelled or received. */
void weft_rndv_cancel(weft_req *req);
/* Receiver: starts the rendezvous of req, which matched this RTS. req may be ended and freed on return. */
void weft_rndv_recv_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts);
/* Receiver: ends the sender's request with error rc; no receive can match this RTS (communicator freed or stopped). */
void weft_rndv_reject_rts(weft_peer *peer, const weft_rts *rts, int rc);
/* Handlers of rendezvous frames. Frames for an unknown request are dropped. */
void weft_rndv_cts(weft_peer *peer, const weft_hdr *hdr, const weft_cts *cts);
void weft_rndv_data(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_rndv_csum(weft_peer *peer, const weft_hdr *hdr);
void weft_rndv_fin(weft_peer *peer, const weft_hdr *hdr);
void weft_rndv_on_cancel(weft_peer *peer, const weft_hdr *hdr);
/* USE and REVOKED of a promise (p2p/promise). */
void weft_rndv_use(weft_peer *peer, const weft_hdr *hdr);
void weft_rndv_revoked(weft_peer *peer, const weft_hdr *hdr);
/* Notification of a put into promised memory. */
void weft_rndv_notify(weft_peer *peer, uint32_t id);

/* The peer is lost: its rendezvous end with rc once no own fragment is in flight. */
void weft_rndv_lost(weft_peer *peer, int rc);
/* The same on this channel: the peer lives, but has left it. */
void weft_rndv_left(weft_peer *peer, const weft_chan *chan, int rc);
/* The peer has called MPI_Finalize: ends the messages announced to it and not matched, on channels that it has left. Short ones end as if
 * sent, others with WEFT_E_PEER; a message whose cancellation was requested ends cancelled. */
void weft_rndv_end_unmatched(const weft_peer *peer);

#endif
