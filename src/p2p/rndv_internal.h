/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_internal: shared by rndv.c, rndv_send.c and rndv_recv.c. A request has a state (rndv_pool) until it ends; frames for an
 * unknown id are dropped (the operation failed meanwhile). A request ends when all its bytes have arrived or it failed, and no fragment
 * is in flight: memory that a device may still access is never returned to the user.
 */
#ifndef WEFT_P2P_RNDV_INTERNAL_H
#define WEFT_P2P_RNDV_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "p2p/req_data.h"
#include "p2p/rndv.h"
#include "p2p/rndv_pool.h"
#include "p2p/rndv_state.h"

/* Bytes of a segment of unregistered memory: long enough to keep a device busy while the next one is registered, short enough for the
 * first one to leave soon. */
#define WEFT_RNDV_SEGMENT ((uint64_t)256 << 10)

/* -- both halves (rndv.c) -- */

/* Sends a frame of at most 80 bytes; aborts the job if it cannot be queued. */
void weft_rndv_send_small(weft_peer *peer, enum weft_frame_kind kind, uint32_t chan, int32_t src, int32_t tag, const void *body,
                          uint32_t bytes);
/* index: segment; 0: this side's whole part. */
void weft_rndv_send_fin(weft_rndv *rndv, uint32_t index, int rc);
int weft_rndv_no_memory(const weft_peer *peer); /* sets the error text, returns WEFT_E_NOMEM */
/* Writes the peer's key to bytes [from, end) of the message. Returns its length; 0: no key. */
uint8_t weft_rndv_put_key(uint8_t *to, weft_rndv *rndv, const weft_reg *reg, uint64_t from, uint64_t end, uint32_t rights, weft_mw **mw);
void weft_rndv_take_key(weft_rkey *rkey, const uint8_t *from, uint8_t bytes);
/* Registers the whole buffer asynchronously, for its next use. */
void weft_rndv_reg_async(weft_rndv *rndv, uint32_t rights);
/* UNSUPPORTED: this pair copies from now on. STALE: the connection of the memory window broke; only these bytes are copied. */
bool weft_rndv_is_to_be_copied(weft_peer *peer, int rc);
/* Raises the event RNDV_BEGUN; weft_rndv_release raises RNDV_ENDED after it. proto: enum weft_rndv_proto; -1: the receiver's choice. */
void weft_rndv_event_begun(weft_rndv *rndv, int proto);
/* Frees the state; starts receives that wait for one. */
void weft_rndv_release(weft_rndv *rndv);

/* -- promises (p2p/promise) -- */

/* Receiver: promises the posted receive's buffer for a message of `bytes` to the send with this id, which writes it by the key of reg;
 * reg NULL: which sends it by DATA frames. NULL: not possible now. */
weft_rndv *weft_rndv_promise(weft_peer *peer, weft_req *req, const weft_reg *reg, uint64_t bytes, uint32_t send_id, uint32_t msgs);
/* Receiver: frees the state of a promise that is void. */
void weft_rndv_unpromise(weft_rndv *rndv);

/* -- the sender's half (rndv_send.c). weft_rndv_next allows the frame; the rendezvous may be over on return. -- */

void weft_rndv_send_on_cts(weft_rndv *rndv, const weft_cts *cts);
/* FIN of the receiver with result rc, or WEFT_FIN_CANCELLED. */
void weft_rndv_send_on_fin(weft_rndv *rndv, int rc);

/* -- the receiver's half (rndv_recv.c), likewise -- */

/* Starts receives that wait for a state. A receive may end at once, free its state and so call this again: only the outermost call runs
 * the loop. */
void weft_rndv_begin_pending(weft_worker *worker);
/* bytes of the message from `offset` on; they lie within rndv->moved. */
void weft_rndv_recv_on_data(weft_rndv *rndv, uint64_t offset, const void *body, uint32_t bytes);
/* The checksum that was requested. */
void weft_rndv_recv_on_csum(weft_rndv *rndv, uint32_t csum);
/* The sender, whose request has this id, uses the promise. */
void weft_rndv_recv_on_use(weft_rndv *rndv, uint32_t remote_id);
/* Notification of the put that uses a promise: instead of its FIN. It may come before USE. */
void weft_rndv_recv_on_notify(weft_rndv *rndv);
/* FIN of the sender: segment `index` or its half (0) is written, or the send failed with rc. */
void weft_rndv_recv_on_fin(weft_rndv *rndv, uint32_t index, int rc);
/* Receiver: the sender is lost. No FIN arrives for what it was to write. */
void weft_rndv_recv_lost(weft_rndv *rndv, int rc);

#endif
