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
#include "base/list.h"
#include "transport/iface.h"

typedef struct weft_req weft_req;
typedef struct weft_completion weft_completion;
struct weft_worker;
struct weft_chan;
struct weft_peer;
struct MPI_ABI_Datatype;
struct weft_reg;

/* Completion counter: when `left` reaches 0, `open` is called. rc keeps the first error (weft_status_worse). */
struct weft_completion {
    uint32_t left;
    int rc;
    void (*open)(weft_completion *completion);
};

/* mpi/request_ops has what MPI's calls do for each.
 * BSEND: a persistent buffered send. FLUSH: of a buffer for such sends. PSEND, PRECV: partitioned.
 * BATCH: several sends that were copied into a queue (p2p/sendq); `count` handles refer to it. */
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
    WEFT_REQ_KINDS
};

#define WEFT_REQ_MAGIC 0x52455157u
#define WEFT_ANY (-1)      /* any source: MPI_ANY_SOURCE */
#define WEFT_ANY_TAG (-2)  /* any tag: MPI_ANY_TAG */
#define WEFT_PROC_NULL (-3)   /* MPI_PROC_NULL */

/* Result of a receive; becomes the MPI_Status. */
typedef struct weft_recv_info {
    int32_t source, tag;
    uint64_t bytes;
    bool cancelled;
} weft_recv_info;

struct weft_req {
    uint32_t magic;   /* WEFT_REQ_MAGIC; 0: freed */
    int32_t number;   /* the handle as an int (MPI_Request_toint); constant for this memory */
    uint8_t kind;     /* enum weft_req_kind */
    bool is_done;
    bool is_blocking; /* receive: MPI_Recv; later receives may overtake it in matching (weft_match_overtake) */
    bool is_persistent, is_active;
    bool is_static;   /* never freed: the shared "already complete" request */
    bool is_dense;    /* the datatype has no gaps */
    bool is_posted;   /* receive: in the channel's matching structures */
    bool is_latest;   /* receive: posted, and among its channel's latest (p2p/match) */
    bool is_tainted;  /* send: the data may derive from damaged messages */
    bool is_sync;     /* send: synchronous mode; announced by RTS at any length */
    uint16_t overtaken; /* if is_blocking: how often */
    uint8_t mode;     /* rendezvous: enum weft_rndv_proto selected */
    uint8_t state;    /* rendezvous: enum weft_rndv_state; valid while id is not 0 */
    int rc;           /* valid when done */
    int32_t rank, tag; /* destination or source, as given by the user */
    uint32_t id;       /* request id in the worker's table; 0: none */
    weft_completion *completion; /* notified once when done; NULL: none */
    struct weft_worker *worker;
    struct weft_chan *chan;
    void *buf;
    uint64_t count, bytes;
    const struct MPI_ABI_Datatype *type;
    weft_recv_info recv_info;
    weft_fifo_entry match; /* p2p/match: among the posted receives of its channel */
    uint64_t order;        /* post number */
    weft_list_link link;   /* in a queue (fragments, schedules) or the free list */
    void *extra;           /* the owner's: schedule, persistent arguments; NULL in a new request */
    void (*free_extra)(weft_req *req);
    void *queued;          /* send: its record in p2p/sendq while it waits for credit; NULL: does not wait */
    /* rendezvous only (p2p/rndv): valid once it has begun */
    struct weft_peer *peer;
    weft_iface *iface;     /* iface at its begin; stays the same if the peer fails */
    struct weft_reg *reg;  /* registration of the whole buffer, held; NULL: none */
    weft_mw *mw;           /* send: memory window of the receiver; NULL: none */
    uint64_t moved;        /* bytes to transfer in all */
    uint64_t arrived;      /* send: bytes transferred by this side; receive: bytes received */
    uint64_t next;         /* receive: first byte for which no fragment was started */
    uint64_t begin_ns;     /* receive: time of its begin, for protocol statistics (p2p/rndv_select) */
    uint64_t remote_addr;  /* receive: address of the message in the sender; 0: not contiguous */
    weft_rkey remote_rkey; /* receive: key of remote_addr */
    weft_list_link exposed;   /* receive: fragments exposed to the sender's puts */
    uint32_t fragment_count; /* own fragments in flight */
    uint32_t segments;     /* receive: fragments exposed so far */
    uint32_t csum;         /* receive: expected checksum, if has_csum */
    bool has_csum;         /* receive: the sender sent a checksum */
    bool awaits_csum;      /* receive: shorter than the message; the checksum of its beginning was requested and has not come yet */
    uint32_t remote_req_id; /* the other side's request id */
    uint32_t left;         /* send: finish events still to come (own put, the receiver's FIN) */
    uint32_t received;     /* send: result of weft_bidir_send_begin (p2p/bidir) */
    bool is_cold;          /* receive: memory on one side was not registered; send: transferred in fragments */
    bool fin_done;         /* receive: the sender needs no FIN: one was sent, or the sender's brought an error */
    bool is_stepping;      /* receive: inside start_frags (p2p/rndv) */
    bool is_both_ways;     /* receive: rendezvous run in the other direction meanwhile */
};

#endif
