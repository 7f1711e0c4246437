/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_pool: the state of a rendezvous, which belongs to one request (req->rndv) from its begin to its end, and its id, by which frames
 * name it (docs/wire.md, "Request ids"). One pool per worker; requires worker->lock. Called by the files rndv*.
 * Without memory for another state a send waits in its queue and a matched receive in `pending`, until one is freed. The last states are
 * for receives only: a receive ends without help of the program, so that what has matched always moves.
 */
#ifndef WEFT_P2P_RNDV_POOL_H
#define WEFT_P2P_RNDV_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/peer.h"
#include "core/req.h"

#define WEFT_RNDV_ID_BITS 20        /* of an id: index of the state; 11 more count its uses, and bit 31 is 0 (WEFT_NOTIFY_WINDOW) */
#define WEFT_RNDV_SLAB 32           /* states that are allocated together */
#define WEFT_RNDV_RECV_RESERVE 8    /* initial value of reserve */
#define WEFT_RNDV_POSTED_SHARE 4    /* posted receives take at most one in so many of all states */

typedef struct weft_rndv {
    /* first line: both halves */
    weft_req *req;           /* NULL: the state is free */
    uint32_t id;             /* this side's id; free: that of the next use */
    uint32_t remote_id;      /* the other side's */
    uint8_t proto;           /* enum weft_rndv_proto selected */
    uint8_t state;           /* enum weft_rndv_state */
    bool is_cold : 1;        /* receive: memory on one side was not registered; send: transferred in fragments */
    bool has_csum : 1;       /* receive: the sender sent a checksum */
    bool is_posted : 1;      /* counted in the pool's posted_count */
    bool has_begun : 1;      /* the event RNDV_BEGUN was due; RNDV_ENDED follows */
    bool is_helped : 1;      /* counts in worker->helped */
    bool awaits_reg : 1;     /* send: reg may not be made yet (INPROGRESS) */
    uint32_t fragment_count; /* own fragments in flight */
    weft_peer *peer;
    weft_iface *iface;       /* iface at its begin; stays the same if the peer fails */
    struct weft_reg *reg;    /* registration of the whole buffer, held; NULL: none. Made, unless awaits_reg */
    uint64_t moved;          /* bytes to transfer in all */
    uint64_t arrived;        /* send: bytes transferred by this side; receive: bytes received */
    union {
        struct { /* send */
            weft_mw *mw;       /* memory window of the receiver; NULL: none */
            uint32_t left;     /* finish events still to come (own put, the receiver's FIN) */
            uint32_t received; /* result of weft_bidir_send_begin (p2p/bidir) */
            bool uses_promise; /* began by USE */
        };
        struct { /* receive */
            uint64_t next;        /* first byte for which no fragment was started */
            uint64_t order;       /* post number of the request */
            uint64_t begin_ns;    /* time of its begin, for protocol statistics (p2p/rndv_select); 0: nothing is moved */
            uint64_t remote_addr; /* address of the message in the sender; 0: not contiguous */
            weft_list_link exposed; /* fragments exposed to the sender's puts */
            uint32_t segments;    /* fragments exposed so far */
            uint32_t csum;        /* expected checksum, if has_csum */
            bool awaits_csum;     /* shorter than the message; the checksum of its beginning was requested and has not come yet */
            bool fin_done;        /* the sender needs no FIN: one was sent, or the sender's brought an error */
            bool is_stepping;     /* inside start_frags */
            bool is_promised;     /* began by a promise */
            bool is_written;      /* promised: the put's notification overtook USE */
            bool is_withdrawn;    /* promised: req is the library's own (p2p/withdrawn) */
            bool is_both_ways;    /* rendezvous run in the other direction meanwhile */
            weft_rkey remote_rkey; /* key of remote_addr */
        };
    };
    uint32_t next_free;      /* free: index of the next free one; 0: none */
} weft_rndv;

typedef struct weft_rndv_pool {
    struct weft_rndv_cell **slabs; /* [slab_capacity] by index / WEFT_RNDV_SLAB */
    uint32_t slab_count, slab_capacity;
    uint32_t free, free_count;     /* index of the first free state, 0: none; their number */
    uint32_t max;                  /* largest index: as many states as ids allow; tests lower it */
    uint32_t reserve;              /* states that no send takes; tests lower it */
    uint32_t posted_count;         /* states of posted receives, at most max / WEFT_RNDV_POSTED_SHARE */
    weft_list_link pending;        /* RTS that matched while no state was free (rndv_recv) */
    bool is_full_reported;         /* the log says that all ids are in use */
    bool is_beginning;             /* inside weft_rndv_begin_pending, which is not re-entrant */
} weft_rndv_pool;

/* 0 or WEFT_E_NOMEM. */
int weft_rndv_pool_open(weft_worker *worker);
void weft_rndv_pool_close(weft_worker *worker);
/* Takes a state for the request of a rendezvous that begins. Sets req, id, and what both halves use to 0. WEFT_AGAIN: none is free now;
 * WEFT_E_NOMEM: there is not one. */
int weft_rndv_alloc(weft_req *req, weft_peer *peer, weft_rndv **rndv);
/* The same for a posted receive, which does not name the state until it has matched (weft_rndv_bind_posted). NULL: posted receives have
 * their share, or the last states are left to receives that have matched. */
weft_rndv *weft_rndv_alloc_posted(weft_req *req, weft_peer *peer);
/* A posted receive has matched: the state counts as any other. */
void weft_rndv_bind_posted(weft_rndv *rndv);
static inline void weft_rndv_bind(weft_rndv *rndv)
{
    rndv->req->rndv = rndv;
    rndv->req->has_rndv = true;
}
/* Returns it; frames with its id are dropped from now on. */
void weft_rndv_free(weft_rndv *rndv);
/* The state with this id, of a rendezvous with `peer`; NULL: it has ended. An id is used again after 4,096 others of its state, by
 * then perhaps with another peer: a late frame must not find that one. */
weft_rndv *weft_rndv_lookup(const weft_peer *peer, uint32_t id);

/* A state in use, of index `from` or the next ones; NULL: none. *index: its index. */
weft_rndv *weft_rndv_next_used(const weft_worker *worker, uint32_t from, uint32_t *index);

#endif
