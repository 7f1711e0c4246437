/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer: creates peers at first contact and sends frames to them. They are freed with the worker. Frames to a peer use one ep at a time and
 * are sent in the order given, also when the iface is full. Used by p2p; requires worker->lock.
 */
#ifndef WEFT_CORE_PEER_H
#define WEFT_CORE_PEER_H

#include <stdint.h>

#include "base/knob.h"
#include "core/group.h"
#include "core/peer_type.h"
#include "core/worker_type.h"
#include "transport/iface.h"

/* The peer of a process, if there was contact; else NULL. */
weft_peer *weft_peer_known(const weft_worker *worker, weft_process process);
/* The same, connected on first use; may block for its address. WEFT_E_NOMEM; WEFT_E_PEER: no iface reaches it. */
int weft_peer_find(weft_worker *worker, weft_process process, weft_peer **peer);
/* The peer of a process that has died; if there is none, a new one without a connection. NULL: out of memory. */
weft_peer *weft_peer_find_dead(weft_worker *worker, weft_process process);
/* Frees all peers of a worker that closes. */
void weft_peer_free_all(weft_worker *worker);

/* Whether a body of this length goes by zero copy. Never with checksums: hdr_csum builds each frame anew, by copy. */
static inline bool weft_peer_is_zcopy(const weft_peer *peer, uint64_t bytes)
{
    uint32_t min = peer->ep->iface->caps.zcopy_min;
    return min && bytes >= min && !weft_knob.checksum;
}

/* Credits that an eager message of this length costs. */
static inline int32_t weft_peer_cost(uint64_t bytes) { return (int32_t)((bytes + WEFT_CREDIT_BYTES) / WEFT_CREDIT_BYTES); }

/* Takes due credits for a frame's header, at most 65,535. */
static inline uint32_t weft_peer_take_credits_due(weft_peer *peer)
{
    uint32_t credits = peer->credits_due;
    if (weft_unlikely(credits > 0xffff))
        credits = 0xffff;
    peer->credits_due -= credits;
    return credits;
}

/* Sets the header's seq and credits. */
static inline void weft_peer_stamp(weft_peer *peer, weft_hdr *hdr)
{
    hdr->seq = ++peer->seq_out;
    hdr->credits = (uint16_t)weft_peer_take_credits_due(peer);
    peer->worker->counters[WEFT_COUNT_FRAMES_LONG]++;
}

/* Undoes weft_peer_stamp for a frame that was not sent. */
static inline void weft_peer_unstamp(weft_peer *peer, const weft_hdr *hdr)
{
    peer->seq_out--;
    peer->worker->counters[WEFT_COUNT_FRAMES_LONG]--;
    peer->credits_due += hdr->credits;
}

/* Messages (frames that match receives) sent to the peer and received from it; wrap. Deferred ones do not count yet. */
static inline uint32_t weft_peer_msgs_out(const weft_peer *peer) { return peer->seq_out - peer->others_out; }
static inline uint32_t weft_peer_msgs_in(const weft_peer *peer) { return peer->seq_in - peer->others_in; }

/* Stamps and sends: 0, INPROGRESS, AGAIN or an error. The caller must keep the order: no earlier frame may wait. */
int weft_peer_post(weft_peer *peer, weft_frame *frame);
/* Sends now or queues in order: 0 or an error; *sent (may be NULL): sent now. A queued body of up to 80 bytes without pack is copied. Any
 * other must stay valid until the queue completes req (rc 0: sent); req must be given then. A frame with zcopy_ctx needs no req:
 * callbacks.done is called exactly once if 0 is returned, also if the body was copied or is never sent. */
int weft_peer_send(weft_peer *peer, const weft_frame *frame, weft_req *req, bool *sent);
/* Sends deferred frames in order, then messages that have credit. Returns the number sent. */
int weft_peer_flush_pending(weft_peer *peer);
/* Sends due credits in a frame of their own, unless deferred frames will carry them or one side has sent BYE. */
void weft_peer_return_credits(weft_peer *peer);
/* The same if enough are due, once neither side has sent BYE any more. */
void weft_peer_return_due(weft_peer *peer);
/* Tells a peer that this process, which rested, is back (BYE with tag BACK). No effect if it knows. */
void weft_peer_come_back(weft_peer *peer);
/* Adds the credits of a consumed message. They return with the next frame to the peer; from worker->credit_return_min on, in a frame of
 * their own. */
static inline void weft_peer_add_credits_due(weft_peer *peer, uint64_t bytes)
{
    peer->credits_due += (uint32_t)weft_peer_cost(bytes);
    if (weft_unlikely(peer->credits_due >= peer->worker->credit_return_min))
        weft_peer_return_credits(peer);
}
/* Aborts the job: a required reply cannot be sent (out of memory) and the peer would hang. */
void weft_peer_abort_job(weft_peer *peer, int rc) __attribute__((noreturn, cold));
/* Adds the peer to worker->backlog or removes it, by whether waiting or sendqs has entries. Call after changing either. */
void weft_peer_update_backlog(weft_peer *peer);
/* Finalize: the peer has sent BYE, so that it needs none of the deferred frames, and may have exited: completes them unsent. */
void weft_peer_discard(weft_peer *peer);
/* A peer that has left a channel, `chan` by its id of it: completes the deferred messages and NOTIFYs of it with rc, unsent, and takes back
 * their credit. Fragments of eager messages stay. */
void weft_peer_withdraw(weft_peer *peer, uint32_t chan, int rc);
/* The peer has failed: sets weft_null_ep and completes all deferred frames with rc. Idempotent. */
void weft_peer_fail(weft_peer *peer, int rc);

#endif
