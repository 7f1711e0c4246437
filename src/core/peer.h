/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer: one other process as a worker reaches it. Made on first contact; frames to a peer take one ep at a time and leave in the
 * order in which they were given, also when the iface is full.
 */
#ifndef WEFT_CORE_PEER_H
#define WEFT_CORE_PEER_H

#include <stdint.h>

#include "base/knob.h"
#include "base/list.h"
#include "core/worker.h"
#include "transport/iface.h"

enum weft_peer_state { WEFT_PEER_ALIVE, WEFT_PEER_FAILED, WEFT_PEER_CLOSED };

/* An eager message that comes in fragments (p2p/eager_frags), while it is not whole. */
typedef struct weft_eager_frags {
    weft_hdr hdr;           /* as if it came in one frame */
    uint32_t arrived;         /* bytes */
    weft_req *req;            /* the receive that matched it; or ... */
    struct weft_unexpected *unexpected; /* ... where it is kept; both NULL: it is dropped */
} weft_eager_frags;

/* Rendezvous with one peer in both directions (p2p/bidir). */
typedef struct weft_bidir {
    uint8_t score;      /* how often lately they overlapped; 0: they do not */
    bool remote;        /* the peer's last RTS: its score is not 0 */
    uint32_t sends;     /* under way: announced and not over */
    uint32_t accepted;  /* receives, all that began; wraps */
    uint32_t received;  /* ... and ended */
} weft_bidir;

typedef struct weft_peer {
    weft_ep *ep;       /* never NULL: the null ep when lost */
    weft_worker *worker;
    uint32_t seq_out, seq_in;
    uint32_t eager_max;    /* largest body sent without asking, bytes */
    uint32_t now_max;      /* ... and of such as are copied at once: longer ones are read where they lie (caps.zcopy_min) */
    uint32_t frag;         /* longer eager messages may go in fragments of so many bytes (caps.frag) */
    int32_t credit;        /* eager credit left, in WEFT_CREDIT_BYTES; WEFT_CREDIT_STALLED less while sendqs is not empty */
    int32_t credit_full;   /* ... and when the peer has taken all that we sent */
    uint32_t credits_due;         /* what we have freed of theirs and not yet told */
    bool bye_sent, bye_received;
    bool is_without_csum;      /* was told that it sends no checksums while we check (p2p/msg_csum) */
    bool sends_hdr_csum;       /* its frames carry checks of their headers (core/hdr_csum) */
    bool is_courtesy;      /* met only to be notified of an error (p2p/chan): that it is gone by then is no failure */
    bool no_rma;          /* get and put were refused: copy */
    weft_bidir bidir;      /* do rendezvous with it go both ways at once? */
    struct weft_rndv_stats *rndv_stats; /* of its iface and kind (p2p/rndv_select) */
    enum weft_peer_state state;
    weft_list_link waiting;     /* weft_pending_frame: frames that found the iface full; while not empty every frame queues here */
    weft_list_link sendqs;      /* weft_sendq: messages that wait for credit, by channel (p2p/sendq) */
    uint32_t overdrafts;   /* how many of those queues may send beyond the credit ... */
    uint32_t offers;       /* ... and have asks to be answered when none moves any more */
    weft_list_link backlog;     /* in worker->backlog while waiting or sendqs is not empty */
    weft_proc_id proc_id;
    weft_eager_frags frags;
} weft_peer;

/* A frame that waits for its iface. Owned by the queue. */
typedef struct weft_pending_frame {
    weft_list_link link;
    weft_frame frame;
    weft_req *req; /* ends when the frame has left; NULL: nobody's */
    uint64_t small[10]; /* a CTS with its key */
} weft_pending_frame;

/* The peer of a rank of our job, reached if need be. WEFT_E_PEER with a text when no iface reaches it. */
int weft_peer_find(weft_worker *worker, uint32_t rank, weft_peer **peer);

/* Is a body of so many bytes better lent to the peer's iface than copied? With checksums frames are built anew, so all are copied. */
static inline bool weft_peer_is_zcopy(const weft_peer *peer, uint64_t bytes)
{
    uint32_t min = peer->ep->iface->caps.zcopy_min;
    return min && bytes >= min && !weft_knob.checksum;
}

/* While messages wait for credit no other may overtake them: the short ways look at credit alone. More than any window, less than half the range. */
#define WEFT_CREDIT_STALLED (1 << 28)

/* What a message of so many bytes in its frame costs in credits. */
static inline int32_t weft_peer_cost(uint64_t bytes) { return (int32_t)((bytes + WEFT_CREDIT_BYTES) / WEFT_CREDIT_BYTES); }

/* Credits to put into a header; what is owed goes with every frame. */
static inline uint32_t weft_peer_take_credits_due(weft_peer *peer)
{
    uint32_t credits = peer->credits_due;
    if (weft_unlikely(credits > 0xffff))
        credits = 0xffff;
    peer->credits_due -= credits;
    return credits;
}

/* Puts number and credits into the header. */
static inline void weft_peer_stamp(weft_peer *peer, weft_hdr *hdr)
{
    hdr->seq = ++peer->seq_out;
    hdr->credits = (uint16_t)weft_peer_take_credits_due(peer);
    peer->worker->counters[WEFT_COUNT_FRAMES_LONG]++;
}

/* A stamped frame that was not taken gives its number and credits back. */
static inline void weft_peer_unstamp(weft_peer *peer, const weft_hdr *hdr)
{
    peer->seq_out--;
    peer->worker->counters[WEFT_COUNT_FRAMES_LONG]--;
    peer->credits_due += hdr->credits;
}

/* Stamps and sends: 0, INPROGRESS, AGAIN or an error. For who keeps the order itself: nothing of this peer's waits. */
int weft_peer_post(weft_peer *peer, weft_frame *frame);
/* Sends now, or queues in order: 0 or an error. *sent says which when not NULL. A queued frame's body: up to 80 bytes without fill are copied; anything else
 * must stay valid until req, which must be given then, is ended by the queue (rc 0: the frame has left). A frame with `held` needs no req:
 * callbacks.done tells of it in any case, also when it was copied or will never leave, but not when an error is returned. */
int weft_peer_send(weft_peer *peer, const weft_frame *frame, weft_req *req, bool *sent);
/* Tries again what waits, in order; then what waits for credit. How many frames left. */
int weft_peer_flush_pending(weft_peer *peer);
/* Tells a peer its credits when no frame of ours did so lately. */
void weft_peer_return_credits(weft_peer *peer);
/* Room that a message of so many bytes took is free again. Credits go back with the next frame to that peer; when half a window is owed they
 * are worth a frame of their own. */
static inline void weft_peer_add_credits_due(weft_peer *peer, uint64_t bytes)
{
    peer->credits_due += (uint32_t)weft_peer_cost(bytes);
    if (weft_unlikely(peer->credits_due >= peer->worker->credit_return_min))
        weft_peer_return_credits(peer);
}
/* A frame that keeps a promise to the peer cannot be sent (no memory for a ring): the job ends here, with a text, instead of hanging. */
void weft_peer_abort_job(weft_peer *peer, int rc) __attribute__((noreturn, cold));
/* Keeps the peer in worker->backlog exactly while something waits for it. */
void weft_peer_settle(weft_peer *peer);
/* No way leads there any more: everything that waits ends with an error. */
void weft_peer_fail(weft_peer *peer, int rc);

#endif
