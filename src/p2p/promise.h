/* SPDX-License-Identifier: BSD-3-Clause
 *
 * promise: a persistent receive that keeps matching one persistent send promises its buffer to that send when it is started (frame
 * PROMISE); the send writes there at once (USE, a put, FIN), without RTS and CTS (docs/wire.md, "Promises"). Called by mpi/persistent,
 * by the rendezvous, by recv and dispatch. Requires worker->lock.
 * Invariant: a promise is used only if no other message went from the sender to the receiver since it was made; both sides count messages
 * (weft_peer_msgs_out, weft_peer_msgs_in). So what uses a promise matches the receive that made it, in MPI's order.
 */
#ifndef WEFT_P2P_PROMISE_H
#define WEFT_P2P_PROMISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/list.h"
#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "p2p/rndv_wire.h"
#include "transport/iface.h"
#include "type/type.h"

struct weft_rndv;

#define WEFT_PROMISE_MATCHES_MIN 2  /* consecutive matches with one send after which a receive makes promises */
#define WEFT_PROMISE_MATCHES_MAX 64 /* the same after a promise that was not used: doubled each time, up to this */

/* What a persistent request of kind SEND or RECV needs: the beginning of its extra. Zeroed: not open. */
typedef struct weft_promise {
    weft_req_ext ext;
    weft_list_link link;     /* in worker->promises->all */
    weft_worker *worker;     /* NULL: not open, or its world was closed */
    weft_peer *peer;
    bool is_recv;
    uint32_t id;             /* of the send, chosen by its process; constant while open */
    uint32_t msgs;           /* messages of the sender to the receiver before the promise */
    union {
        struct { /* send */
            weft_fifo_entry entry; /* in worker->promises->sends, by id */
            bool is_made;    /* msgs and cts are valid */
            bool is_warm;    /* one was made before */
            uint64_t cts[(sizeof(weft_cts) + WEFT_RKEY_BYTES) / 8]; /* weft_cts: where the message goes */
        };
        struct { /* receive */
            struct weft_rndv *rndv; /* state of the promise until it is used; the promise may be void. NULL: none */
            struct weft_reg *reg;   /* by whose key the send writes, kept for the next promise; NULL: none */
            weft_iface *reg_iface;  /* of reg */
            uint64_t bytes;    /* of the latest message of the send */
            uint32_t matches;  /* consecutive matches with that send since a promise was not used */
            uint32_t matches_min; /* of them before the next promise */
        };
    };
} weft_promise;

/* All open ones of a worker. */
typedef struct weft_promises {
    weft_list_link all;
    weft_list_link withdrawn; /* of receives that were cancelled (p2p/withdrawn) */
    weft_fifomap sends;
    uint32_t last_id;
} weft_promises;

int weft_promises_open(weft_worker *worker); /* 0 or WEFT_E_NOMEM */
void weft_promises_close(weft_worker *worker);
/* The peer has sent BYE or failed: frees what waits for its answer. */
void weft_promises_give_up(weft_peer *peer);

/* -- the send -- */

/* The request is freed; also after its world was closed. */
void weft_promise_close_send(weft_promise *self);
/* Should a start poll first? A promise is due. */
static inline bool weft_promise_is_due(const weft_promise *self) { return self->is_warm && !self->is_made; }
/* Polls once. Only in a direct call of the program. */
void weft_promise_poll(weft_promise *self);
/* The promise that the send of this persistent request to peer uses; it is gone then. NULL: none. Valid until the next poll. */
const weft_cts *weft_promise_take(weft_peer *peer, weft_req *req);
/* Id by which the receiver may make promises to this persistent send, for RTS; 0: none. */
uint32_t weft_promise_id(weft_peer *peer, weft_req *req);
/* Handlers of PROMISE and REVOKE. */
void weft_promise_on_promise(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_promise_on_revoke(weft_peer *peer, const weft_hdr *hdr);

/* -- the receive -- */

void weft_promise_close_recv(weft_promise *self);
/* weft_irecv_into for a persistent receive; makes a promise if the receive keeps matching one send and is first in line. */
int weft_promise_irecv(weft_promise *self, weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type,
                       weft_req *req);
/* The persistent receive has matched this RTS: what was promised is void. Call before its rendezvous begins. */
void weft_promise_on_rts(weft_peer *peer, weft_req *req, const weft_rts *rts);
/* Withdraws the promise of a posted persistent receive that is cancelled: from now on nothing writes into its buffer, and a message that
 * uses the promise is held aside (p2p/withdrawn). WEFT_E_NOMEM: no memory to hold it; the receive goes on. */
int weft_promise_withdraw(weft_req *req);
/* The send uses the promise: the receive has matched. */
void weft_promise_on_use(weft_req *req);

#endif
