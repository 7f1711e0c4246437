/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer: a worker's state of one other process: ep, credit, queues. Created at first contact, freed with the worker. Frames to a peer use
 * one ep at a time and are sent in the order given, also when the iface is full. Used by p2p; requires worker->lock.
 */
#ifndef WEFT_CORE_PEER_H
#define WEFT_CORE_PEER_H

#include <stdint.h>

#include "base/knob.h"
#include "base/list.h"
#include "core/worker.h"
#include "transport/iface.h"

enum weft_peer_state { WEFT_PEER_ALIVE, WEFT_PEER_FAILED, WEFT_PEER_CLOSED }; /* CLOSED: ep closed after both sides sent BYE */

/* Incomplete eager message that arrives in fragments (p2p/eager_frags). */
typedef struct weft_eager_frags {
    weft_hdr hdr;           /* header of the whole message as one frame */
    uint32_t arrived;       /* bytes */
    weft_req *req;          /* matched receive; NULL: none */
    struct weft_unexpected *unexpected; /* buffer if it is unmatched; req and this NULL: the message is dropped */
} weft_eager_frags;

/* Whether rendezvous with a peer run in both directions at once (p2p/bidir). */
typedef struct weft_bidir {
    uint8_t score;      /* recent overlaps, 0..WEFT_BIDIR_MAX; 0: none */
    bool remote;        /* the peer's last RTS said that its score is not 0 */
    uint32_t sends;     /* in flight: announced and not complete */
    uint32_t accepted;  /* receives begun; wraps */
    uint32_t received;  /* receives ended; wraps */
} weft_bidir;

typedef struct weft_peer {
    weft_ep *ep;           /* never NULL: weft_null_ep after failure or close */
    weft_worker *worker;
    uint32_t seq_out, seq_in; /* numbers of the last frame sent and received; wrap */
    uint32_t eager_max;    /* largest body sent eagerly, bytes */
    uint32_t now_max;      /* largest eager body that is copied at once, bytes; longer ones use zero copy (caps.zcopy_min) */
    uint32_t frag;         /* fragment size of longer eager messages, bytes (caps.frag) */
    int32_t credit;        /* eager credit left, in WEFT_CREDIT_BYTES; reduced by WEFT_CREDIT_STALLED while sendqs is not empty */
    int32_t credit_full;   /* credit when the peer has consumed all sent messages, in WEFT_CREDIT_BYTES */
    uint32_t credits_due;  /* credits to return to the peer, in WEFT_CREDIT_BYTES */
    bool bye_sent, bye_received;
    bool is_without_csum;  /* it was reported that the peer sends no checksums although this side checks them (p2p/msg_csum) */
    bool sends_hdr_csum;   /* its frames have header checksums (core/hdr_csum) */
    bool is_courtesy;      /* created only to notify it of an error (p2p/chan): its exit is no failure */
    bool no_rma;           /* get and put were refused: use copies */
    weft_bidir bidir;
    struct weft_rndv_stats *rndv_stats; /* of its iface and kind (p2p/rndv_select); not owned */
    enum weft_peer_state state;
    weft_list_link waiting; /* weft_pending_frame: deferred since the iface was full; while not empty, all frames queue here */
    weft_list_link sendqs;  /* weft_sendq: messages that wait for credit, by channel (p2p/sendq) */
    uint32_t overdrafts;   /* queues of sendqs that may send beyond the credit */
    uint32_t offers;       /* queues of sendqs with requests (ASK) to answer once no queue can send */
    weft_list_link backlog; /* in worker->backlog while waiting or sendqs is not empty */
    weft_proc_id proc_id;
    weft_eager_frags frags;
} weft_peer;

/* Frame deferred since the iface was full. Owned by weft_peer.waiting. */
typedef struct weft_pending_frame {
    weft_list_link link;
    weft_frame frame;
    weft_req *req;      /* completes when the frame is sent; NULL: none */
    uint64_t small[10]; /* copy of a short body (a CTS with its key fits) */
} weft_pending_frame;

/* The peer of a rank of this job, connected on first use; may block for its address. WEFT_E_NOMEM; WEFT_E_PEER: no iface reaches it. */
int weft_peer_find(weft_worker *worker, uint32_t rank, weft_peer **peer);

/* Whether a body of this length goes by zero copy. Never with checksums: hdr_csum builds each frame anew, by copy. */
static inline bool weft_peer_is_zcopy(const weft_peer *peer, uint64_t bytes)
{
    uint32_t min = peer->ep->iface->caps.zcopy_min;
    return min && bytes >= min && !weft_knob.checksum;
}

/* Offset that keeps credit negative while messages wait for it: fast paths test credit only and so cannot overtake them. More than any
 * window, less than half the range of int32_t. */
#define WEFT_CREDIT_STALLED (1 << 28)

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
void weft_peer_settle(weft_peer *peer);
/* The peer has failed: sets weft_null_ep and completes all deferred frames with rc. Idempotent. */
void weft_peer_fail(weft_peer *peer, int rc);

#endif
