/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma_op: one get, put, amo or flush, its fragments, and the state of all ops of an iface. Shared by rma_op.c (begin and finish) and rma.c
 * (posting, completions).
 */
#ifndef WEFT_TRANSPORTS_VERBS_RMA_OP_H
#define WEFT_TRANSPORTS_VERBS_RMA_OP_H

#include "transports/verbs/flow.h"

enum op_kind { OP_GET, OP_PUT, OP_AMO, OP_FLUSH };

typedef struct verbs_op {
    weft_list_link link; /* in ep->ops */
    verbs_ep *ep;
    enum op_kind kind;
    uint8_t *local;
    uint64_t remote, bytes, next; /* next: offset of the first byte not yet in a fragment */
    weft_rkey rkey;
    uint32_t key_epoch;     /* epoch in which rkey is valid; 0: any */
    uint32_t lkeys[VERBS_RAILS];
    weft_list_link in_flight, redo; /* verbs_frag: posted; to be posted again */
    void *done;
    uint32_t notify;
    verbs_slot *notify_slot;     /* slot of its notification while that is in flight with the last fragment; else NULL */
    bool is_notified;        /* the notification was delivered: the put has ended */
    bool after_all;          /* the notification comes after all earlier puts of the ep too */
    bool is_unposted;        /* no bytes, but its fragment, which only carries the notification, is not posted yet */
    bool has_arrived;        /* a notification that was delivered stood behind all fragments: none is posted again */
    int rc;
    uint8_t bad_status;     /* completion status that set rc; 0: none */
    uint32_t vendor;
    /* amo */
    weft_atomic atomic;
    uint64_t expected;
    uint64_t *cell;
    uint64_t late_ns;       /* time since which no QP to the target's first rail exists; 0: one exists */
} verbs_op;

typedef struct verbs_frag {
    verbs_work work;
    weft_list_link link; /* in op->in_flight, op->redo or free_frags */
    verbs_op *op;
    uint64_t at;
    uint32_t bytes, tries;
} verbs_frag;

struct verbs_rma_ops {
    weft_list_link waiting; /* verbs_ep.by_rma: eps with fragments to post */
    weft_list_link free_frags;
    verbs_slab *cells; /* result words of atomics, registered; allocated at the first one */
    uint64_t free_cells;
    uint64_t in_flight_bytes;
    uint32_t frag_bytes;
};

/* Appends a new op to ep->ops. 0, AGAIN (too many ops), WEFT_E_PEER or WEFT_E_NOMEM. */
int verbs_op_begin(verbs_ep *ep, enum op_kind kind, void *done, verbs_op **op);
/* Finishes it and the flushes that waited for it. Calls callbacks.done, which may post more. */
void verbs_op_finish(verbs_op *op);
/* Finishes it alone. Calls callbacks.done. */
void verbs_op_finish_one(verbs_op *op);
/* Frees it without a callback. */
void verbs_op_discard(verbs_op *op);
/* Nothing of it is left to post. */
static inline bool verbs_op_is_posted(const verbs_op *op)
{
    return op->next == op->bytes && !op->is_unposted && weft_list_is_empty(&op->redo);
}
/* Are all earlier puts of the ep posted in full on the home QP, or complete, and no atomics under way? Then what is posted on the home QP
 * now becomes visible after them. */
bool verbs_op_is_in_order(const verbs_op *op);
/* No put or atomic of the ep before it is under way. */
bool verbs_op_is_oldest(const verbs_op *op);
/* A new epoch is up: puts behind which a notification after all puts was delivered have arrived. */
void verbs_ops_mark_arrived(verbs_ep *ep);
verbs_frag *verbs_frag_alloc(struct verbs_rma_ops *rma);
/* Result word of an atomic. NULL: none is free, or memory cannot be registered. */
uint64_t *verbs_cell_alloc(verbs_iface *iface);
void verbs_cell_free(verbs_iface *iface, const uint64_t *cell);

#endif
