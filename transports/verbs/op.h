/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: one get, put, amo or flush, its pieces, and the books of all of a port's. Shared by op.c (beginning and end) and rma.c (what goes
 * on in between).
 */
#ifndef WEFT_TRANSPORTS_VERBS_OP_H
#define WEFT_TRANSPORTS_VERBS_OP_H

#include "transports/verbs/flow.h"

enum op_kind { OP_GET, OP_PUT, OP_AMO, OP_FLUSH };

typedef struct verbs_op {
    weft_list_link link; /* in path->ops */
    verbs_ep *ep;
    enum op_kind kind;
    uint8_t *local;
    uint64_t remote, bytes, next; /* next: not cut off yet from here */
    weft_rkey rkey;
    uint32_t key_epoch;     /* the only one in which it works; 0: any */
    uint32_t lkeys[VERBS_RAILS];
    weft_list_link in_flight, redo; /* verbs_piece */
    void *done;
    uint32_t notify;
    verbs_slot *notice;     /* its notification's number, while it is under way with the last piece */
    bool is_noticed;        /* a break has found it delivered: the put has ended */
    int rc;
    uint8_t bad_status;     /* of the completion that made rc */
    uint32_t vendor;
    /* amo */
    weft_atomic atomic;
    uint64_t expected;
    uint64_t *cell;
    uint64_t late_ns;       /* the one link that may carry it is not there since; 0: it is */
} verbs_op;

typedef struct verbs_piece {
    verbs_work work;
    weft_list_link link; /* in op->in flight or op->redo, or free */
    verbs_op *op;
    uint64_t at;
    uint32_t bytes, tries;
} verbs_piece;

struct verbs_rma_ops {
    weft_list_link waiting; /* verbs_ep.by_move: something of theirs is not posted */
    weft_list_link free_pieces;
    verbs_slab *cells; /* where the devices put old values; made at the first atomic */
    uint64_t free_cells;
    uint64_t in_flight_bytes;
    uint32_t piece_bytes;
};

/* A new op at the path's end; 0, AGAIN or an error. */
int verbs_op_begin(verbs_ep *ep, enum op_kind kind, void *done, verbs_op **op);
/* Ends it, and the flushes that waited for it; may call up, which may post more. */
void verbs_op_finish(verbs_op *op);
/* Ends it alone. */
void verbs_op_finish_one(verbs_op *op);
/* Frees it, tells nobody. */
void verbs_op_forget(verbs_op *op);
verbs_piece *verbs_piece_take(struct verbs_rma_ops *moves);
/* Where a device puts an old value. NULL: none is free, or memory cannot be pinned. */
uint64_t *verbs_cell_take(verbs_iface *iface);
void verbs_cell_give(verbs_iface *iface, const uint64_t *cell);

#endif
