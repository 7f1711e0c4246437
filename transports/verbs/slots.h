/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slots: registered memory for frames, in short and long slots. Slots come from slabs that are allocated on demand, up to a bound, and
 * registered on every rail. A slot is free, posted to an SRQ, or holds a frame until it is known to have arrived. Called by flow, credit,
 * rma_op and eager_ring.
 */
#ifndef WEFT_TRANSPORTS_VERBS_SLOTS_H
#define WEFT_TRANSPORTS_VERBS_SLOTS_H

#include "transports/verbs/verbs.h"

/* Prefix of each frame on a QP. seq and ack are the low halves of the ep's numbers; at most VERBS_IN_FLIGHT_MAX frames are in flight. */
typedef struct verbs_prefix {
    uint16_t seq;     /* number of a frame that is kept and resent; ignored in unnumbered frames */
    uint16_t ack;     /* last frame delivered in order */
    uint16_t credits; /* receive credits returned */
    uint8_t kind;     /* enum verbs_kind */
    uint8_t flags;
} verbs_prefix;

enum verbs_kind {
    VERBS_KIND_PLAIN = 1, /* frame of the caller; numbered */
    VERBS_KIND_NOTIFY,    /* put notification in hdr.tag; numbered */
    VERBS_KIND_CREDITS,   /* prefix only: returns credits */
    VERBS_KIND_RECALL,    /* asks the peer to give up unused credits */
    VERBS_KIND_RETURN,    /* hdr.tag credits are given up by the sender */
    VERBS_KIND_RING_OPEN, /* offers ring memory: hdr.chan, .tag, .src, .bytes, .credits; eager_ring.c */
    VERBS_KIND_RING_SHUT, /* asks the writer to stop; it replies RING_DONE */
    VERBS_KIND_RING_DONE, /* the writer has stopped */
    VERBS_KIND_EVICT_REQ,      /* asks to close an idle connection; the sender starts nothing more; evict.c */
    VERBS_KIND_EVICT_ACK,    /* agrees: nothing of the sender is in flight */
    VERBS_KIND_NOP,      /* empty: number of a notification that did not arrive; numbered */
    VERBS_KIND_LAST
};
enum verbs_flag { VERBS_FLAG_BY_TOKEN = 1, /* sent with the token, not with a credit */ VERBS_FLAG_TOKEN = 2 /* returns the token */ };

typedef struct verbs_wire { /* layout of a frame on the wire */
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
    weft_list_link link;   /* in a free list, ep->sent, ep->control, rail->emptied; none while posted to an SRQ */
    verbs_slab *slab;
    verbs_wire *wire;
    uint32_t seq;     /* its number; for an unnumbered frame, the number of the last frame before it */
    uint32_t bytes;   /* on the wire */
    bool is_posted;   /* in this epoch */
    bool is_short;
    struct verbs_op *op; /* put that this slot notifies of, until its last fragment completes; NULL: none. Kind NOP: by immediate data */
} verbs_slot;

struct verbs_slab {
    verbs_slab *next;
    uint8_t *memory;
    size_t bytes;
    struct ibv_mr *mr[VERBS_RAILS]; /* NULL where the rail is dead */
    uint32_t lkey[VERBS_RAILS];
    verbs_slot slots[];
};

/* Limit on locked memory, in bytes; queues of real HCAs count as locked. UINT64_MAX: no limit applies to this process. */
uint64_t verbs_lockable_bytes(void);
/* Allocates memory registered on every rail. WEFT_E_NOSPACE, WEFT_E_NOMEM. */
int verbs_slab_alloc(verbs_iface *iface, size_t bytes, uint32_t slots, int access, verbs_slab **slab);
void verbs_slab_free(verbs_slab *slab);

int verbs_slots_open(verbs_iface *iface);
void verbs_slots_close(verbs_iface *iface);
/* Allocates a slot for a frame of `bytes` on the wire; NULL: memory is at its bound. */
verbs_slot *verbs_slot_alloc(verbs_iface *iface, uint32_t bytes);
void verbs_slot_free(verbs_iface *iface, verbs_slot *slot);
/* Few slots are left: callers should request completions more often. */
bool verbs_slots_are_scarce(const verbs_iface *iface);
/* Maximum bytes of a frame's body; equal in all processes that may lock enough memory. */
uint32_t verbs_frame_max(const verbs_iface *iface);

/* Allocates a slot to be posted as a receive; NULL: only the share of sends is left. */
verbs_slot *verbs_receive_slot(verbs_iface *iface);

/* -- recv_queue.c -- */
/* The QP is in INIT: posts its first receives, unless the rail has an SRQ. 0 or an errno value. */
int verbs_recv_queue_open(verbs_rc_qp *qp);
/* Ensures that every receive queue of the ep has `count` receives posted; false: one has not. */
bool verbs_recv_queues_reach(verbs_ep *ep, uint32_t count);
/* A receive has completed: it belongs to no queue until it is recycled, after its delivery. */
void verbs_recv_queue_completed(verbs_slot *slot);
void verbs_recv_queue_recycle(verbs_slot *slot, bool is_flushed);
/* The QP was destroyed: frees what was posted to it. */
void verbs_recv_queue_close(verbs_rc_qp *qp);

/* Ensures that every rail with an SRQ has `count` receives posted; false: it has not. */
bool verbs_receives_reach(verbs_iface *iface, uint32_t count);
/* Queues a consumed receive to be posted again. */
void verbs_receive_recycle(verbs_rail *rail, verbs_slot *slot);
/* Posts the queued receives. */
void verbs_receives_post(verbs_iface *iface);
/* Receives of a rail that suffice for connections with all peers of the job at one time. */
uint32_t verbs_receives_of_peers(const verbs_iface *iface);
/* Maximum receives for credits beyond the first of each peer. */
uint32_t verbs_receives_bound(const verbs_iface *iface);

#endif
