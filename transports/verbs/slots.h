/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slots: memory for frames, registered once on every rail: short and long slots out of slabs that are made on demand, up to a bound.
 * A slot is free, posted to a receive queue, or holds a frame of ours until that has surely arrived. Called by flow and ring.
 */
#ifndef WEFT_TRANSPORTS_VERBS_SLOTS_H
#define WEFT_TRANSPORTS_VERBS_SLOTS_H

#include "transports/verbs/verbs.h"

/* What stands before a frame on a queue pair. seq and ack are the low halves of the path's numbers: less than 32,768 are under way. */
typedef struct verbs_prefix {
    uint16_t seq;     /* of frames that are kept and sent again; 0 and not looked at in the others */
    uint16_t ack;     /* delivered to us, in order, up to here */
    uint16_t credits; /* given back */
    uint8_t kind;     /* enum verbs_kind */
    uint8_t flags;
} verbs_prefix;

enum verbs_kind {
    VERBS_KIND_PLAIN = 1, /* a frame of the house; numbered */
    VERBS_KIND_NOTIFY,    /* a put's notification in hdr.tag; numbered */
    VERBS_KIND_CREDITS,   /* the prefix says it all */
    VERBS_KIND_RECALL,    /* please give back what you do not need */
    VERBS_KIND_RETURN,    /* hdr.tag credits are given up */
    VERBS_KIND_RING_OPEN, /* here is memory for your short frames: hdr.chan, .tag, .src, .bytes; eager_ring.c */
    VERBS_KIND_RING_SHUT, /* write no more there; say so */
    VERBS_KIND_RING_DONE, /* I write no more there */
    VERBS_KIND_EVICT_REQ,      /* may we close this connection? I send nothing more; evict.c */
    VERBS_KIND_EVICT_ACK,    /* yes: nothing of mine is under way any more */
    VERBS_KIND_NOP,      /* nothing: its number was a notification's that a break kept from arriving; numbered */
    VERBS_KIND_LAST
};
enum verbs_flag { VERBS_FLAG_BY_TOKEN = 1, /* sent with the token, not with a credit */ VERBS_FLAG_TOKEN = 2 /* your token comes back */ };

typedef struct verbs_wire { /* what crosses */
    verbs_prefix prefix;
    weft_hdr hdr;
    uint8_t body[];
} verbs_wire;
_Static_assert(sizeof(verbs_wire) == 32, "bodies are aligned to 8 bytes");

static inline bool verbs_kind_is_numbered(uint8_t kind)
{
    return kind == VERBS_KIND_PLAIN || kind == VERBS_KIND_NOTIFY || kind == VERBS_KIND_NOP;
}

typedef struct verbs_slab verbs_slab;
typedef struct verbs_slot {
    verbs_work work;
    weft_list_link link;   /* free list, path->sent, path->control, rail->emptied; nowhere while posted to receive */
    verbs_slab *slab;
    verbs_wire *wire;
    uint32_t seq;     /* its number; of a frame without one: the number of the last frame before it */
    uint32_t bytes;   /* on the wire */
    bool is_posted;   /* in this epoch */
    bool is_short;
    struct verbs_op *op; /* the put that this number notifies of, until its last piece is over; VERBS_KIND_NOP: by immediate data */
} verbs_slot;

struct verbs_slab {
    verbs_slab *next;
    uint8_t *memory;
    size_t bytes;
    struct ibv_mr *mr[VERBS_RAILS]; /* NULL where the rail is dead */
    uint32_t lkey[VERBS_RAILS];
    verbs_slot slots[];
};

/* Memory that stands registered on every rail. WEFT_E_NOSPACE, WEFT_E_NOMEM. */
int verbs_slab_make(verbs_iface *iface, size_t bytes, uint32_t slots, int access, verbs_slab **slab);
void verbs_slab_free(verbs_slab *slab);

int verbs_slots_open(verbs_iface *iface);
void verbs_slots_close(verbs_iface *iface);
/* For a frame of so many bytes on the wire, or NULL when memory is at its bound. */
verbs_slot *verbs_slot_take(verbs_iface *iface, uint32_t bytes);
void verbs_slot_give(verbs_iface *iface, verbs_slot *slot);
/* Few are left to be taken: completions should be asked for often. */
bool verbs_slots_are_scarce(const verbs_iface *iface);
/* Frames' bodies are at most so long; the same in every process that may lock enough memory. */
uint32_t verbs_frame_max(const verbs_iface *iface);

/* Sees to it that every rail has `count` receives posted: true when they are. */
bool verbs_receives_reach(verbs_iface *iface, uint32_t count);
/* A receive that was used is to be posted again. */
void verbs_receive_give(verbs_rail *rail, verbs_slot *slot);
/* Posts those. */
void verbs_receives_post(verbs_iface *iface);
/* More than so many receives are not made to be lent beside the first to each peer. */
uint32_t verbs_receives_bound(const verbs_iface *iface);

#endif
