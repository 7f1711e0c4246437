/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req: one operation in flight, and the completion that its end tells. An MPI_Request is a pointer to one of these.
 * Guarded by its worker. `is_done` is set last, by weft_req_end, exactly once.
 */
#ifndef WEFT_CORE_REQ_H
#define WEFT_CORE_REQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/list.h"
#include "transport/iface.h"

typedef struct weft_req weft_req;
typedef struct weft_completion weft_completion;
struct weft_worker;
struct weft_chan;
struct weft_peer;
struct MPI_ABI_Datatype;
struct weft_reg;

/* A counter with an action: the last of N completions opens it. rc keeps the first error (weft_status_worse). */
struct weft_completion {
    uint32_t left;
    int rc;
    void (*open)(weft_completion *completion);
};

/* BATCH: several sends that were copied aside (p2p/sendq): `count` handles name it. */
enum weft_req_kind { WEFT_REQ_SEND = 1, WEFT_REQ_RECV, WEFT_REQ_SCHED, WEFT_REQ_USER, WEFT_REQ_NOTHING, WEFT_REQ_BATCH };

#define WEFT_REQ_MAGIC 0x52455157u
#define WEFT_ANY (-1)      /* any source: MPI_ANY_SOURCE */
#define WEFT_ANY_TAG (-2)  /* any tag: MPI_ANY_TAG */
#define WEFT_NOBODY (-3)   /* MPI_PROC_NULL */

/* What a receive found; also the core of MPI_Status. */
typedef struct weft_recv_info {
    int32_t source, tag;
    uint64_t bytes;
    bool cancelled;
} weft_recv_info;

struct weft_req {
    uint32_t magic;   /* WEFT_REQ_MAGIC while alive */
    uint8_t kind;
    bool is_done;
    bool is_blocking; /* receive: its thread is inside of it (MPI_Recv): see weft_match_overtake */
    bool is_persistent, is_active;
    bool is_static;   /* never freed: the shared "already complete" request */
    bool is_dense;    /* of the message */
    bool is_posted;   /* stands in the matching ... */
    bool is_latest;   /* ... among its channel's latest */
    bool is_tainted;  /* send: what it sends may be made of damaged data */
    bool is_sync;     /* send: announced however short it is */
    uint16_t overtaken; /* where is_blocking: so often */
    uint8_t mode;     /* rendezvous: enum weft_rndv_proto chosen */
    int rc;           /* valid when done */
    int32_t rank, tag; /* destination, or source, as asked for */
    weft_completion *completion;  /* told once when done; NULL: nobody */
    struct weft_worker *worker;
    struct weft_chan *chan;
    void *buf;
    uint64_t count, bytes;
    const struct MPI_ABI_Datatype *type;
    weft_recv_info recv_info;
    weft_fifo_entry match; /* p2p/match: among the posted receives of its channel */
    uint64_t order;        /* post number */
    weft_list_link link;        /* in a waiting queue (pumps, schedules) or the free list */
    void *extra;           /* owner's: schedule, persistent arguments; NULL at birth */
    void (*free_extra)(weft_req *req);
    void *queued;     /* send: its record in p2p/sendq while it waits for credit, else NULL */
    /* rendezvous only (p2p/rndv): valid once it has begun */
    struct weft_peer *peer;
    weft_iface *iface;       /* that it began on, whatever becomes of the peer */
    struct weft_reg *pin;  /* held for the whole buffer; NULL: none */
    weft_mw *mw;       /* send: of it, to the receiver; NULL: none */
    uint64_t moved;        /* bytes that are to be moved in all */
    uint64_t arrived;      /* of them: send: that have left by our doing; receive: that are there */
    uint64_t next;         /* receive: first byte that no fragment was started for */
    uint64_t begin_ns;        /* receive: when it began, for the ladder */
    uint64_t remote_addr;          /* receive: where the message stands in the sender; 0: not in one run ... */
    weft_rkey remote_rkey;      /* ... and its key */
    weft_list_link lent;        /* receive: fragments that the sender may write */
    uint32_t fragment_count;         /* fragments of ours under way */
    uint32_t segments;     /* receive: lent so far */
    uint32_t csum;          /* receive: what the message must sum up to, if ... */
    bool has_csum;        /* ... its sender said so; it may be ... */
    bool awaits_csum;       /* ... still to come: the message is longer than the receive, and the sum of its beginning was asked for */
    uint32_t remote_req_id;      /* the other side's name for its request */
    uint32_t id;         /* ours, in the worker's table; 0 = none */
    uint32_t left;         /* send: ends still to come */
    uint32_t received;     /* send: what weft_bidir_send_begin returned (p2p/bidir) */
    bool is_cold;          /* receive: memory on one side was not registered; send: it was moved in segments */
    bool fin_done;          /* receive: the sender knows that we are through; send: the receiver was told to cancel it */
    bool is_stepping;      /* receive: fragments are being started */
    bool is_both_ways;     /* receive: messages go the other way meanwhile */
};

/* A fresh request from the worker's pool: flags, rc, completion, chan, type, found, extra are zero; what belongs to the message is not set.
 * NULL when out of memory. */
weft_req *weft_req_new(struct weft_worker *worker, enum weft_req_kind kind);
/* Gives a request that is over back, with what its owner attached to it. */
void weft_req_free(weft_req *req);
/* Calls `each` for every request of the worker that was made and not freed; it may free that one. */
void weft_req_each(struct weft_worker *worker, void (*each)(weft_req *req));
/* A request fails: keeps what this thread just said of it (weft_fail), for whichever thread completes it, and whenever. The last few of a worker
 * are kept. */
void weft_req_record_error(weft_req *req, int rc) __attribute__((cold));
/* Before a failed request's code is returned: says again what was kept, else a general sentence, never what some other failure was. */
void weft_req_report_error(const weft_req *req) __attribute__((cold));
/* The end of a request is weft_req_end in core/worker.h; this is its seldom half: tells the completion, wakes a leader that sleeps. */
void weft_req_notify(weft_req *req);

#endif
