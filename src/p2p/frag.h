/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frag: one fragment of a rendezvous on its way: read from the peer (get), written into the peer (put), pushed by DATA frames, or lent
 * (the peer writes it into our memory). Rendezvous decides what fragments there are; here they are carried out: started, tried again when
 * the iface refuses, and told as over exactly once. A fragment holds its pin until then. An eager message that the iface reads where it lies is
 * a fragment too (HELD): its frame has gone before, all that is left is to hear that the buffer is free.
 */
#ifndef WEFT_P2P_FRAG_H
#define WEFT_P2P_FRAG_H

#include <stdint.h>

#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "type/type.h"

enum weft_frag_kind { WEFT_FRAG_DATA, WEFT_FRAG_GET, WEFT_FRAG_PUT, WEFT_FRAG_EXPOSED, WEFT_FRAG_ZCOPY };

typedef struct weft_frag weft_frag;
struct weft_frag {
    weft_list_link link;     /* DATA, GET, PUT: in worker->pumps while there is more to push or the iface refuses; LENT: in req->lent */
    weft_req *req;
    weft_reg *pin;      /* of our fragment; NULL: none is needed, or the request's own covers it */
    weft_mw *mw;    /* lent: what the peer's key stands on; NULL: the registration itself */
    uint64_t from, to;  /* which bytes of the message are still to go */
    uint64_t bytes;     /* so many there were */
    uint64_t piece;     /* get, put: of them under way: at most caps.rma_fragment, or what the iface moves at one time */
    uint64_t far;       /* where the message stands in the peer */
    void (*over)(weft_frag *frag, int rc); /* told once; frees the fragment or starts it anew */
    uint32_t index;     /* put, lent: the segment's, from 1; 0: none */
    uint32_t held;      /* data: frames whose bodies the iface still reads */
    int rc;             /* data: of what is over, while ... */
    bool is_out;        /* ... it only waits for those */
    bool is_starting;   /* get, put: the iface's call has not returned ... */
    bool has_moved;     /* ... and the move ended inside it, with rc */
    uint8_t kind;
    weft_rkey rkey;       /* the peer's */
};

/* Where the bytes of a dense message begin. */
static inline void *weft_frag_start_of(const weft_req *req) { return (char *)req->buf + req->type->true_lb; }

/* Counts as one of req->fragments until it is freed. NULL: out of memory. */
weft_frag *weft_frag_new(weft_req *req, enum weft_frag_kind kind, uint64_t from, uint64_t to, void (*over)(weft_frag *frag, int rc));
/* Takes back what was lent, drops the pin, too. */
void weft_frag_free(weft_frag *frag);
/* Begins or goes on. `over` may be told before it returns: do not touch the fragment after it. */
void weft_frag_start(weft_frag *frag);
/* A get or put ended, or a body is free again (callbacks.done). */
void weft_frag_done(weft_frag *frag, int rc);
/* Everything that waits in the worker: how many things happened. */
int weft_frag_pump(weft_worker *worker);

#endif
