/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message: operations as messages of a window's channel (docs/rma.md, "Messages"). Private to src/rma.
 *
 * An operation is a HEAD message: weft_rma_head, and behind it up to WEFT_RMA_INLINE bytes of data. Longer data are a DATA message of their
 * own: that of a put is received in place with the target's datatype, that of an accumulate comes in pieces, each an operation. What is
 * fetched comes back as a REPLY. All three are messages of p2p, so credit, rendezvous and checksums are as for all others.
 * HEADs are handled in their order. Tags: HEAD has 0, DATA and REPLY that of the operation's number.
 */
#ifndef WEFT_RMA_MESSAGE_H
#define WEFT_RMA_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/req.h"
#include "rma/operation.h"
#include "rma/window.h"

#define WEFT_RMA_INLINE 4096u  /* bytes of data in a HEAD */
#define WEFT_RMA_PIECE 65536u  /* bytes of an accumulate's DATA or REPLY: of temporary memory at the target */
#define WEFT_RMA_SLOTS 64u     /* datatypes of an origin that a target keeps */
#define WEFT_RMA_PREDEFINED 255u /* head.slot: head.type is a handle */
#define WEFT_RMA_NO_OP 0x3d      /* head.op: handle of MPI_NO_OP */

/* head.kind: enum weft_rma_kind, or: */
enum { WEFT_RMA_FLUSH = 16, WEFT_RMA_TYPE, WEFT_RMA_NOTIFY };

typedef struct weft_rma_head {
    uint8_t kind, slot;     /* slot: of the target's datatype, or WEFT_RMA_PREDEFINED */
    uint8_t op;             /* handle */
    bool has_data : 1;      /* a DATA message follows; else the data are behind the head */
    bool asks : 1;          /* PUT, GET: the origin wants to know the region of its first byte */
    uint16_t basic, type;   /* handles of predefined types */
    uint32_t number;
    uint32_t notify;        /* PUT, GET, NOTIFY: counter + 1; 0: none */
    uint64_t offset, count; /* place and elements at the target. FLUSH: offset is the count of operations that shall be performed */
    uint64_t skip, bytes;   /* packed bytes of this piece */
} weft_rma_head;

#define WEFT_RMA_NUMBER_MASK ((1u << 29) - 1)
enum { WEFT_RMA_TAG_HEAD = 0 };
static inline int weft_rma_tag_data(uint32_t number) { return (int)((number & WEFT_RMA_NUMBER_MASK) << 2 | 1); }
static inline int weft_rma_tag_reply(uint32_t number) { return (int)((number & WEFT_RMA_NUMBER_MASK) << 2 | 2); }

/* Answers are NOTIFYs; first byte below WEFT_SYNC_POST (sync_state.h).
 * ACK: the count of operations performed, in their order, and the first error of those since the last ACK.
 * FAILED: operation `number`, which has a REPLY, failed; its REPLY has no bytes.
 * REGION: answer to a head that asks, sent before any other to that head. FOUND: the sender has read this region in the receiver's table.
 * REVOKED: a region that the receiver was told of, or has found, is detached. */
enum { WEFT_RMA_ACK = 1, WEFT_RMA_FAILED, WEFT_RMA_REGION, WEFT_RMA_REVOKED, WEFT_RMA_FOUND };
typedef struct weft_rma_note {
    uint8_t kind, unused[3];
    uint32_t number;
    int32_t rc;
    uint32_t unused2;
    uint64_t performed;
    char text[WEFT_NOTIFY_BYTES - 24]; /* of rc; cut after its end when it is sent */
} weft_rma_note;
_Static_assert(sizeof(weft_rma_note) == WEFT_NOTIFY_BYTES, "a note is a NOTIFY");

/* REGION, FOUND, REVOKED. */
typedef struct weft_rma_region_note {
    uint8_t kind, unused[3];
    uint32_t detaches;    /* REGION: of the sender's control */
    uint64_t base, bytes; /* REGION: bytes 0: no region has the address */
    weft_rkey rkey;       /* REGION, FOUND; length 0: the target has not registered it */
} weft_rma_region_note;

typedef struct weft_rma_error {
    int rc;
    char *text; /* owned */
} weft_rma_error;

/* What a member keeps for each other. */
typedef struct weft_rma_peer {
    /* of operations that arrive (inbox.c) */
    weft_list_link ready;    /* in inbox->ready if is_ready: HEADs may wait */
    weft_list_link puts;     /* jobs: puts that receive their DATA, in order */
    bool is_ready, is_busy;  /* is_busy: no HEAD is taken before the job under way has ended */
    uint32_t jobs;
    weft_list_link notices;  /* operations that order notifications (notice.h) */
    uint64_t handled;        /* operations without REPLY whose HEAD was handled */
    uint64_t flush, flush_last; /* lowest and highest count that a FLUSH waits for; 0: none */
    weft_type **types;       /* [WEFT_RMA_SLOTS], decoded, each with one reference; NULL: none yet */
    weft_rma_error failed;   /* tells the origin with the next ACK */
    /* of own operations (outbox.c) */
    weft_list_link records;  /* not complete at the origin, in order */
    uint64_t begun;          /* records so far */
    uint64_t asked;          /* highest count of a FLUSH sent */
    uint32_t number;         /* of the last operation with DATA or REPLY */
    const weft_type **known; /* [WEFT_RMA_SLOTS], held: what the target has in its slots; NULL: none yet */
    weft_rma_error error;    /* of an earlier operation: the next flush returns it */
} weft_rma_peer;

typedef struct weft_window_inbox {
    weft_window *window;     /* NULL: closed, while messages are under way */
    weft_list_link link;     /* in worker->inboxes if is_linked: there is something to do */
    bool is_linked;
    bool is_remote;          /* some targets are not mapped here */
    uint32_t idle;           /* polls of flushes in a row without an event */
    bool is_helped;          /* counts in worker->helped */
    uint32_t size;           /* members */
    bool has_error;          /* a peer has an error to return */
    weft_list_link ready;    /* peers */
    weft_list_link open;     /* jobs under way */
    weft_list_link jobs, records; /* that have ended, to be finished */
    uint32_t jobs_count, records_count; /* under way */
    char *out;               /* [sizeof(weft_rma_head) + WEFT_RMA_INLINE] of the HEAD that is made */
    weft_rma_peer peers[];
} weft_window_inbox;

/* Do the numbers of a head fit each other, the target's datatype and the `behind` bytes of data behind it? Not if it was damaged on its
 * way. In head.c. */
bool weft_rma_head_is_sound(const weft_rma_head *head, const weft_type *type, uint64_t behind);
/* Puts it into worker->inboxes. */
void weft_rma_inbox_link(weft_window_inbox *inbox);
/* Keeps the first error. */
void weft_rma_error_set(weft_rma_error *error, int rc, const char *text);

/* outbox.c */
int weft_rma_send(weft_window *window, const weft_rma_op *op, weft_req **req);
int weft_rma_send_notify(weft_window *window, uint32_t target, uint32_t notify); /* a notification without data */
int weft_rma_ask(weft_window *window, uint32_t target); /* sends a FLUSH unless one is under way for all operations so far */
void weft_rma_outbox_finish(weft_window_inbox *inbox); /* ends records that are complete */
void weft_rma_outbox_on_note(weft_window_inbox *inbox, uint32_t from, const weft_rma_note *note);
void weft_rma_outbox_close(weft_window_inbox *inbox);
void weft_rma_outbox_forget(weft_window_inbox *inbox); /* frees records under way, whose messages go on */

#endif
