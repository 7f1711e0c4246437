/* SPDX-License-Identifier: BSD-3-Clause
 *
 * haul: notes between the PMIx servers of a job and its head. A note may be long (the data of all ranks), so it crosses in pieces, and
 * no more than a window of them is on its way: what else a wire carries, and a head that is stopped for a while, do not notice. A body is
 * counted, not copied: one that goes to all nodes stands in memory once.
 */
#ifndef WEFT_MPIRUN_HAUL_H
#define WEFT_MPIRUN_HAUL_H

#include <stdatomic.h>

#include "tools/mpirun/wire.h"

#define REFBUF_MAX ((size_t)256 << 20) /* of one body */
#define HAUL_PIECE ((size_t)16 << 10)
#define HAUL_WINDOW ((size_t)64 << 10) /* beside a daemon's output (daemon.c) it fits the head's socket */

typedef struct refbuf {
    atomic_uint refs;
    size_t bytes;
    char data[];
} refbuf;

/* NULL: no memory. */
refbuf *refbuf_make(size_t bytes);
refbuf *refbuf_of(const void *data, size_t bytes);
refbuf *refbuf_hold(refbuf *self);
/* NULL is none. From any thread. */
void refbuf_drop(refbuf *self);

enum pmix_msg_kind {
    /* server to head; the answer is a PMIX_MSG_DONE with the same ticket */
    PMIX_MSG_GATHER = 1, /* rank: enum gather_kind, seconds: of patience; body: u32 count, u32 ranks[count] (0: all), data */
    PMIX_MSG_FETCH,      /* what `rank` has put; seconds */
    PMIX_MSG_PUBLISH,    /* nameserver.h, all three */
    PMIX_MSG_LOOKUP,
    PMIX_MSG_UNPUBLISH,
    /* server to head, no answer */
    DMODEX_RESP,      /* the answer to DMODEX_REQ: its ticket, status, data */
    PMIX_MSG_GONE,       /* rank has ended */
    /* head to server */
    PMIX_MSG_DONE,       /* ticket, status, data */
    DMODEX_REQ,        /* ticket, rank: what has it put? */
    /* both ways */
    PMIX_MSG_EVENT,      /* rank: its source; status: the event; body: u32 range, attributes */
};

enum gather_kind { GATHER_FENCE = 1, GATHER_CONNECT, GATHER_DISCONNECT, GATHER_PMI };

enum pmix_msg_status { PMIX_MSG_OK, PMIX_MSG_NONE, PMIX_MSG_LATE, PMIX_MSG_LARGE, PMIX_MSG_TWICE, PMIX_MSG_UNABLE };

typedef struct pmix_msg {
    uint32_t kind;
    int32_t status;
    uint64_t ticket;
    uint32_t rank, seconds; /* 0: for ever */
    refbuf *body;           /* NULL: empty. Who has the note drops it */
} pmix_msg;

typedef struct haul {
    struct haul_item *first, *last; /* to be sent */
    size_t sent;                    /* bytes of the first one's body */
    size_t lent, owed;              /* on its way; came and not acknowledged */
    size_t waiting;                 /* bytes of all bodies that wait */
    pmix_msg coming;
    size_t came;                    /* bytes of its body; its refbuf is made with the first piece */
    bool is_coming;
} haul;

/* Queues a note and takes its body over; call haul_move then. 0 or -1: no memory, the body is dropped. */
int haul_add(haul *self, const pmix_msg *what);
/* Sends what the window allows. */
void haul_move(haul *self, wire *to);
/* Takes in a CTRL_PIECE. 1: `whole` is a note, and its body the caller's; 0: not yet; -1: the wire has trouble. */
int haul_take(haul *self, wire *from, const wire_frame *frame, pmix_msg *whole);
/* Takes in a CTRL_PIECES: so many bytes have come. */
void haul_taken(haul *self, size_t bytes);
void haul_close(haul *self);

#endif
