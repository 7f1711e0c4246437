/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer_type: a worker's state of one other process: ep, credit, queues. See peer.h for the calls.
 */
#ifndef WEFT_CORE_PEER_TYPE_H
#define WEFT_CORE_PEER_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/worker_type.h"
#include "transport/iface.h"

enum weft_peer_state { WEFT_PEER_ALIVE, WEFT_PEER_FAILED, WEFT_PEER_CLOSED }; /* CLOSED: ep closed after both sides sent BYE */

/* Incomplete eager message that arrives in fragments (p2p/eager_frags). */
typedef struct weft_eager_frags {
    weft_hdr hdr;           /* header of the whole message as one frame */
    uint32_t arrived;       /* bytes */
    weft_req *req;          /* matched receive; NULL: none */
    struct weft_unexpected *unexpected; /* buffer if it is unmatched; req and this NULL: the message is dropped */
    uint64_t began_ns;      /* time of the first fragment, if the transfer is measured; else 0 */
} weft_eager_frags;

/* Whether rendezvous with a peer run in both directions at once (p2p/bidir). */
typedef struct weft_bidir {
    uint8_t score;      /* recent overlaps, 0..WEFT_BIDIR_MAX; 0: none */
    bool remote;        /* the peer's last RTS reported that its score is not 0 */
    uint32_t sends;     /* in flight: announced and not complete */
    uint32_t accepted;  /* receives begun; wraps */
    uint32_t received;  /* receives ended; wraps */
} weft_bidir;

#define WEFT_COPIED_CLASSES 4

/* Whether messages of one size class go in fragments instead of RTS (p2p/eager_frags). */
typedef struct weft_copied {
    uint8_t answers; /* how often in a row the peer chose to copy an announced message */
    uint8_t run;     /* messages that may still go unannounced */
} weft_copied;

typedef struct weft_peer {
    weft_ep *ep;           /* never NULL: weft_null_ep after failure or close */
    weft_worker *worker;
    uint32_t seq_out, seq_in; /* numbers of the last frame sent and received; wrap */
    uint32_t others_out, others_in; /* of these: frames that are no messages (weft_frame_is_message); wrap */
    uint32_t eager_max;    /* largest body sent eagerly, bytes */
    uint32_t now_max;      /* largest eager body that is copied at once, bytes; longer ones use zero copy (caps.zcopy_min) */
    uint32_t frag;         /* fragment size of longer eager messages, bytes (caps.frag) */
    uint32_t frags_max;    /* longest message sent eagerly in fragments, bytes; 0: none longer than eager_max */
    weft_copied copied[WEFT_COPIED_CLASSES];
    int32_t credit;        /* eager credit left, in WEFT_CREDIT_BYTES; reduced by WEFT_CREDIT_STALLED while sendqs is not empty */
    int32_t credit_full;   /* credit when the peer has consumed all sent messages, in WEFT_CREDIT_BYTES */
    uint32_t credits_due;  /* credits to return to the peer, in WEFT_CREDIT_BYTES */
    bool bye_sent, bye_received;
    bool is_gone;          /* the BYE received was the last: the peer does not return for a session */
    bool is_rest_sent;     /* REST was sent, and no BACK since: what the peer sends is not needed, and its end no failure */
    bool is_rest_seen;     /* it has answered REST, or needs not (core/bye) */
    bool is_away;          /* this process rested, and has not told the peer of its return */
    bool was_back;         /* BACK was sent; seq_back is valid */
    bool has_ended;        /* the launcher says that its process has ended in an orderly way */
    uint32_t seq_back;     /* seq_in then */
    uint32_t rests;        /* number of the last REST sent; wraps */
    uint64_t asked_ns;     /* when the launcher was last asked about it; 0: never */
    bool is_without_csum;  /* it was reported that the peer sends no checksums although this side checks them (p2p/msg_csum) */
    bool sends_hdr_csum;   /* its frames have header checksums (core/hdr_csum) */
    bool is_courtesy;      /* created only to notify it of an error (p2p/chan): its exit is no failure */
    bool no_rma;           /* get and put were refused: use copies */
    uint32_t withdrawn;    /* promises to it whose receives were cancelled, and that it has not answered (p2p/withdrawn) */
    weft_bidir bidir;
    struct weft_rndv_stats *rndv_stats; /* of its iface and kind (p2p/rndv_select); not owned */
    enum weft_peer_state state;
    weft_list_link waiting; /* weft_pending_frame: deferred since the iface was full; while not empty, all frames queue here */
    weft_list_link sendqs;  /* weft_sendq: messages that wait for credit, by channel (p2p/sendq) */
    uint32_t overdrafts;   /* queues of sendqs that may send beyond the credit */
    uint32_t offers;       /* queues of sendqs with requests (ASK) to answer once no queue can send */
    weft_list_link backlog; /* in worker->backlog while waiting or sendqs is not empty */
    weft_proc_id proc_id;
    uint32_t fragments;    /* of transfers with it, in worker->fragments (p2p/frag) */
    uint32_t number;       /* of the worker's peers, in the order of contact */
    struct weft_peer *next; /* in worker->peers */
    weft_eager_frags frags;
} weft_peer;

/* Frame deferred since the iface was full. Owned by weft_peer.waiting. */
typedef struct weft_pending_frame {
    weft_list_link link;
    weft_frame frame;
    weft_req *req;      /* completes when the frame is sent; NULL: none */
    uint64_t small[10]; /* copy of a short body (a CTS with its key fits) */
} weft_pending_frame;

/* Offset that keeps credit negative while messages wait for it: fast paths test credit only and so cannot overtake them. More than any
 * window, less than half the range of int32_t. */
#define WEFT_CREDIT_STALLED (1 << 28)

#endif
