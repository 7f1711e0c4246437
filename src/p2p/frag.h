/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frag: one fragment of a rendezvous in flight. rndv chooses the fragments; frag starts them, retries them when the iface is full, awaits
 * registrations, and calls on_done() exactly once. A fragment holds its registration until it is freed. Requires worker->lock; on_done()
 * may be called inside weft_frag_start, weft_frag_pump and an iface's poll.
 */
#ifndef WEFT_P2P_FRAG_H
#define WEFT_P2P_FRAG_H

#include <stdint.h>

#include "core/done.h"
#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "p2p/req_data.h"
#include "p2p/rndv_pool.h"

/* DATA: sent in DATA frames. GET, PUT: RMA by this process. EXPOSED: the peer writes it. ZCOPY: an eager message sent from the user's
 * buffer; only its completion is awaited. WHOLE: a buffer that is registered as a whole before its fragments begin. */
enum weft_frag_kind { WEFT_FRAG_DATA, WEFT_FRAG_GET, WEFT_FRAG_PUT, WEFT_FRAG_EXPOSED, WEFT_FRAG_ZCOPY, WEFT_FRAG_WHOLE };

typedef struct weft_frag weft_frag;
struct weft_frag {
    weft_done done;      /* of its gets, puts and zero-copy frames */
    weft_list_link link; /* in worker->fragments while it waits to continue or for its registration; then EXPOSED: in rndv->exposed */
    weft_req *req;       /* the request it belongs to */
    weft_rndv *rndv;     /* its rendezvous; NULL: ZCOPY */
    weft_reg *reg;       /* local registration of the fragment, owned; NULL: none needed, or rndv->reg covers it */
    weft_mw *mw;         /* EXPOSED: memory window of the peer's key, owned; NULL: the key is the region's */
    uint64_t from, to;   /* bytes of the message still to be moved: [from, to) */
    uint64_t bytes;      /* initial length of the fragment */
    uint64_t op_bytes;      /* GET, PUT: bytes of the operation in flight, at most op_max() */
    uint64_t remote_addr;        /* GET, PUT: address of the message's first byte in the peer */
    void (*on_registered)(weft_frag *frag, int rc); /* awaits reg: called once it is made, or with an error; NULL: does not await it */
    void (*on_done)(weft_frag *frag, int rc); /* called once at the end; frees the fragment or restarts it as another kind */
    uint32_t index;      /* PUT, EXPOSED: segment number from 1; 0: not a segment */
    uint32_t notify;     /* PUT: for the peer's callbacks.notify, if one operation moves all bytes; 0: none, FIN follows */
    uint32_t bodies_in_use;       /* DATA: frames whose bodies the iface still reads */
    int rc;              /* DATA: result while is_out; GET, PUT: result if has_moved */
    bool is_out;         /* DATA: all frames are sent; on_done() waits until bodies_in_use is 0 */
    bool is_starting;    /* GET, PUT: the iface's get or put has not returned */
    bool has_moved;      /* GET, PUT: the operation completed inside that call */
    uint8_t kind;        /* enum weft_frag_kind */
    weft_rkey rkey;      /* GET, PUT: the peer's key; length 0: none */
};

/* A fragment for bytes [from, to), counted in rndv->fragment_count until it is freed; rndv NULL: ZCOPY. NULL: out of memory. */
weft_frag *weft_frag_new(weft_req *req, weft_rndv *rndv, enum weft_frag_kind kind, uint64_t from, uint64_t to,
                         void (*on_done)(weft_frag *frag, int rc));
/* Frees the fragment; invalidates its memory window and releases its registration. */
void weft_frag_free(weft_frag *frag);
/* Starts or continues the fragment. on_done() may be called before it returns: the caller must not use the fragment afterwards. */
void weft_frag_start(weft_frag *frag);
/* Awaits frag->reg, whose acquire was INPROGRESS: weft_frag_pump calls on_registered. After an error frag->reg is of no use, and still
 * released with the fragment. */
void weft_frag_await(weft_frag *frag, void (*on_registered)(weft_frag *frag, int rc));
/* worker->progress_fragments: looks whether awaited registrations are made, and continues the waiting fragments within one time slice.
 * Returns the number of events. */
int weft_frag_pump(weft_worker *worker);

#endif
