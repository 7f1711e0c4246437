/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req_type: request, the state of one operation in flight, and its completion callback. An MPI_Request handle is a pointer to a weft_req.
 * See req.h for the calls.
 */
#ifndef WEFT_CORE_REQ_TYPE_H
#define WEFT_CORE_REQ_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/language.h"
#include "base/list.h"

typedef struct weft_req weft_req;
typedef struct weft_completion weft_completion;
struct weft_worker;
struct weft_chan;
struct weft_peer;
struct weft_rndv;
struct MPI_ABI_Datatype;

/* Completion counter: when `left` reaches 0, `open` is called. rc keeps the first error (weft_status_worse). */
struct weft_completion {
    uint32_t left;
    int rc;
    void (*open)(weft_completion *completion);
};

/* mpi/request_ops has what MPI's calls do for each.
 * BSEND: a persistent buffered send. FLUSH: of a buffer for such sends. PSEND, PRECV: partitioned. RMA: one-sided, that completes at the
 * origin.
 * BATCH: several sends that were copied into a queue (p2p/sendq). */
enum weft_req_kind {
    WEFT_REQ_SEND = 1,
    WEFT_REQ_RECV,
    WEFT_REQ_SCHED,
    WEFT_REQ_USER,
    WEFT_REQ_NOTHING,
    WEFT_REQ_BATCH,
    WEFT_REQ_SENDRECV,
    WEFT_REQ_GENERALIZED, WEFT_REQ_DUP,
    WEFT_REQ_BSEND,
    WEFT_REQ_FLUSH,
    WEFT_REQ_PSEND,
    WEFT_REQ_PRECV,
    WEFT_REQ_RMA,
    WEFT_REQ_KINDS
};

/* How a receive is posted (p2p/match). OLDER: in its channel's map. LATEST: not yet. LONG: in the map, and counts in worker->helped. */
enum weft_posted_as { WEFT_POSTED_OLDER, WEFT_POSTED_LATEST, WEFT_POSTED_LONG };

/* TAINTED: standard send of data that may derive from a damaged message. With WEFT_CHECKSUM its receive fails (p2p/msg_csum). */
enum weft_send_mode { WEFT_SEND_STANDARD, WEFT_SEND_READY, WEFT_SEND_SYNC, WEFT_SEND_TAINTED };

#define WEFT_REQ_MAGIC 0x52455157u
#define WEFT_ANY (-1)      /* any source: MPI_ANY_SOURCE */
#define WEFT_ANY_TAG (-2)  /* any tag: MPI_ANY_TAG */
#define WEFT_PROC_NULL (-3)   /* MPI_PROC_NULL */

/* Result of a receive; becomes the MPI_Status, whose private word has the same bits. */
typedef struct weft_recv_info {
    int32_t source, tag;
    uint64_t bytes : 63, cancelled : 1;
} weft_recv_info;

/* First member of what req->extra points to: the state of kinds that a short message does not need. */
typedef struct weft_req_ext {
    void (*free)(weft_req *req); /* frees all of req->extra; called by weft_req_free */
    weft_language_copy *copies;  /* of buffers that are arrays with gaps in a binding; freed by weft_req_free. NULL: none */
} weft_req_ext;

/* Two lines, and a pool's begins an even one. A message that matches a posted receive touches no more of it. The state of a rendezvous
 * (rndv), and what other kinds of operations need (extra), hang on it.
 *   first line   identity, flags, matching, buffer: all that a search of the posted receives reads
 *   second line  length, result, and what waits for it
 * Isend and Wait of a message that leaves at once: no request; Wait reads worker->done_req.
 * Irecv, its message's delivery, Wait: both lines. A step of a collective: the same, or a request on the stack. */
struct weft_req {
    uint32_t magic;   /*  0: WEFT_REQ_MAGIC; 0: freed */
    int32_t number;   /*  4: the handle as an int (MPI_Request_toint); constant for this memory */
    uint8_t kind;     /*  8: enum weft_req_kind */
    bool is_done;
    bool is_blocking; /* receive: MPI_Recv; later receives may overtake it in matching (weft_match_overtake) */
    bool may_promise; /* receive: posted by a persistent request, whose extra begins with a weft_promise (p2p/promise) */
    bool is_dense;    /* the datatype has no gaps */
    bool is_persistent, is_active;
    bool is_posted;   /* 15: receive: in the channel's matching structures */
    uint8_t posted_as; /* receive while is_posted: enum weft_posted_as; else not cleared, for that would cost a store */
    bool has_rndv;    /* rndv is valid */
    bool is_static;   /* never freed: the shared "already complete" request */
    union {
        uint8_t send_mode; /* 19: send: enum weft_send_mode */
        uint8_t overtaken; /* if is_blocking: how often */
    };
    int rc;           /* 20: valid when done; rendezvous: its first error */
    union {
        weft_fifo_entry match;    /* 24: receive while is_posted: p2p/match; its key is made of rank and tag */
        struct {
            int32_t tag, rank;    /* 24: destination or source, as given by the user */
            struct weft_rndv *rndv; /* 32: while has_rndv, which is not while is_posted: the rendezvous (p2p/rndv_pool) */
            union {
                weft_list_link link; /* 40: BATCH: in its queue; freed: in the free list */
                void *queued;     /* 40: SEND: its record in p2p/sendq while it waits for credit; NULL: does not wait */
            };
        };
    };
    union {
        void *buf;            /* 56 */
        uint64_t handles;     /* BATCH: that refer to it */
    };
    uint64_t bytes;           /* 64: of the message to send, or of the receive buffer, packed */
    union {
        weft_recv_info recv_info; /* 72: from the match on */
        struct {
            int32_t unused[2];
            uint64_t order;   /* 80: receive until it matches: post number; BATCH until it ends: see p2p/sendq */
        };
    };
    weft_completion *completion; /* 88: notified once when done; NULL: none */
    struct weft_worker *worker;
    struct weft_chan *chan;
    const struct MPI_ABI_Datatype *type; /* 112 */
    void *extra;              /* 120: the kind's own state (schedule, persistent arguments): begins with a weft_req_ext; NULL: none */
};

#define WEFT_REQ_BYTES 128
_Static_assert(sizeof(weft_req) == WEFT_REQ_BYTES && offsetof(weft_req, bytes) == WEFT_REQ_BYTES / 2, "a request is two lines");
_Static_assert(offsetof(weft_req, number) == offsetof(weft_language_request, number), "bindings read the number");
_Static_assert(offsetof(weft_req, is_posted) == 15 && offsetof(weft_req, rc) == 20 && offsetof(weft_req, buf) == 56,
               "what matching reads is in the first line");
/* Little-endian (configure refuses others): the key of a posted receive is (rank << 32 | tag), which stay readable beside it. */
_Static_assert(offsetof(weft_req, tag) == offsetof(weft_req, match.key) && offsetof(weft_req, rank) == offsetof(weft_req, match.key) + 4,
               "rank and tag are the key");
_Static_assert(offsetof(weft_req, rndv) + sizeof(void *) <= offsetof(weft_req, link), "a send has rndv beside queued");
_Static_assert(offsetof(weft_req, order) == offsetof(weft_req, recv_info) + 8, "order lies where the received bytes will");

#endif
