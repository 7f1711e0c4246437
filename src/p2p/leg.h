/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leg: one stretch of a rendezvous on its way: read from the peer (get), written into the peer (put), pushed by DATA frames, or lent
 * (the peer writes it into our memory). Rendezvous decides what legs there are; here they are carried out: started, tried again when
 * the iface refuses, and told as over exactly once. A leg holds its pin until then. An eager message that the iface reads where it lies is
 * a leg too (HELD): its frame has gone before, all that is left is to hear that the buffer is free.
 */
#ifndef WEFT_P2P_LEG_H
#define WEFT_P2P_LEG_H

#include <stdint.h>

#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "type/type.h"

enum weft_leg_kind { WEFT_LEG_DATA, WEFT_LEG_GET, WEFT_LEG_PUT, WEFT_LEG_LENT, WEFT_LEG_HELD };

typedef struct weft_leg weft_leg;
struct weft_leg {
    weft_list_link link;     /* DATA, GET, PUT: in worker->pumps while there is more to push or the iface refuses; LENT: in req->lent */
    weft_req *req;
    weft_pin *pin;      /* of our stretch; NULL: none is needed, or the request's own covers it */
    weft_loan *loan;    /* lent: what the peer's key stands on; NULL: the registration itself */
    uint64_t from, to;  /* which bytes of the message are still to go */
    uint64_t bytes;     /* so many there were */
    uint64_t piece;     /* get, put: of them under way: at most caps.move_piece, or what the iface moves at one time */
    uint64_t far;       /* where the message stands in the peer */
    void (*over)(weft_leg *leg, int rc); /* told once; frees the leg or starts it anew */
    uint32_t index;     /* put, lent: the segment's, from 1; 0: none */
    uint32_t held;      /* data: frames whose bodies the iface still reads */
    int rc;             /* data: of what is over, while ... */
    bool is_out;        /* ... it only waits for those */
    bool is_starting;   /* get, put: the iface's call has not returned ... */
    bool has_moved;     /* ... and the move ended inside it, with rc */
    uint8_t kind;
    weft_key key;       /* the peer's */
};

/* Where the bytes of a dense message begin. */
static inline void *weft_leg_start_of(const weft_req *req) { return (char *)req->buf + req->type->true_lb; }

/* Counts as one of req->legs until it is freed. NULL: out of memory. */
weft_leg *weft_leg_new(weft_req *req, enum weft_leg_kind kind, uint64_t from, uint64_t to, void (*over)(weft_leg *leg, int rc));
/* Takes back what was lent, drops the pin, too. */
void weft_leg_free(weft_leg *leg);
/* Begins or goes on. `over` may be told before it returns: do not touch the leg after it. */
void weft_leg_start(weft_leg *leg);
/* A get or put ended, or a body is free again (up.done). */
void weft_leg_done(weft_leg *leg, int rc);
/* Everything that waits in the worker: how many things happened. */
int weft_leg_pump(weft_worker *worker);

#endif
