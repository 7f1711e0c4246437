/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker: a lock and everything it guards: ifaces, peers, channels, pools, running schedules. Threads scale by workers; a communicator
 * belongs to one. The door (generated entry points) takes the lock; inner rooms are single-threaded by contract.
 */
#ifndef WEFT_CORE_WORKER_H
#define WEFT_CORE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/list.h"
#include "core/call_status.h"
#include "core/counters.h"
#include "core/lock.h"
#include "core/req.h"
#include "core/wait.h"
#include "transport/iface.h"

struct weft_world;
struct weft_peer;
struct weft_chan;

typedef struct weft_worker {
    struct weft_world *world;
    uint32_t index;
    bool is_threaded;      /* MPI_THREAD_MULTIPLE: take the lock */
    bool is_armed;         /* a thread has armed the ifaces, and disarms them; at most one */
    bool is_asleep;        /* ... and it sleeps on the wakeups */
    weft_iface *ifaces[WEFT_WORKER_IFACES];
    bool has_addr[WEFT_WORKER_IFACES]; /* the iface is a network: others reach it by an address that was put out */
    uint32_t iface_count;
    char no_network[200];  /* why the first network that was promising did not open, where none did; "": nothing to say */
    bool wants_fd;         /* sleeps on descriptors */
    struct weft_peer **peers;  /* [job size], made on first use */
    struct weft_chan_slot *chans; /* by index bits of the channel id */
    uint32_t chan_capacity, chan_lowest; /* no free index of a channel below lowest */
    weft_list_link backlog;         /* peers with frames that found their iface full, or messages that wait for credit */
    weft_list_link scheds;           /* recorded schedules that progress plays */
    uint32_t scheds_ready;      /* how many those are */
    int (*progress_scheds)(struct weft_worker *worker); /* plays them; set by collectives */
    weft_list_link fragments;           /* fragments of transfers that go out chunk by chunk, or found their iface full (p2p/frag) */
    int (*progress_fragments)(struct weft_worker *worker); /* moves them on; set by p2p, as is ... */
    void (*on_peer_connect)(struct weft_peer *peer); /* ... this: a peer was met: choose its limits; and ... */
    int (*flush)(struct weft_peer *peer); /* ... this: sends what waits for the peer's credit, as far as there is some */
    const weft_iface_callbacks *callbacks;         /* what ifaces tell; p2p's */
    weft_req done_req;         /* the shared "already complete" request of eager sends */
    weft_list_link free_reqs;
    void *slabs;               /* memory of the request pool, for closing */
    struct weft_failure *failures; /* why requests failed (core/req); NULL: none did */
    uint32_t failure_next;     /* the oldest of them */
    struct weft_req_id_slot *req_ids; /* requests that a peer may name */
    uint32_t req_id_capacity, req_id_free;
    uint32_t unpolled;         /* receives that unexpected messages served since weft_worker_catch_up polled */
    bool is_assigning_ids;            /* p2p/rndv gives names to what waits for them */
    uint64_t post_order;       /* of the next receive */
    uint64_t asked_order;      /* receives with lower ones need not ask whether their memory was unmapped (core/reg) */
    struct weft_rndv_stats *rndv_stats; /* p2p's: for each iface and kind of peer; freed with the worker */
    uint64_t persistent_bytes;       /* pinned ahead (core/reg) */
    uint32_t credit_return_min;         /* owed credits that are worth a frame of their own */
    struct weft_pool *pool;    /* unexpected messages, at exact size classes */
    weft_fifomap announced;    /* RTS that match nothing yet, by peer and name of its request: what a sender may cancel (p2p/match) */
    weft_list_link pending_rts;         /* RTS that matched while no name was free (p2p/rndv) */
    uint64_t counters[WEFT_COUNT_LAST]; /* core/counters; read by tools, summed over workers */
    void (*count)(struct weft_worker *worker); /* brings counters up to date that somebody else keeps (registrations), or NULL */
    weft_lock lock;
    /* threads that wait (core/leader) */
    struct weft_wait *_Atomic leader; /* polls for all; NULL: none */
    struct weft_wait *heir;    /* parked, and looks for a leader by itself; NULL: none */
    weft_list_link parked;          /* all others, latest first */
    bool has_woken;            /* a parked thread that slept was woken since the leader looked */
    _Atomic uint32_t leaves;   /* times that a leader left */
    _Atomic uint32_t spinners; /* parked threads that spin, at most ... */
    uint32_t spare_cpus;       /* ... so many: CPUs of this rank, less one for the leader */
} weft_worker;

/* Opens ifaces and pools; `up` is what ifaces tell (p2p). WEFT_E_NOMEM, or why an iface would not open. */
int weft_worker_open(struct weft_world *world, uint32_t index, const weft_iface_callbacks *callbacks, weft_worker **worker);
void weft_worker_close(weft_worker *worker);

static inline void weft_worker_lock(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0)) {
        weft_call_lock(WEFT_CALL_WANTS);
        weft_lock_acquire(&worker->lock);
        weft_call_lock(WEFT_CALL_HOLDS);
    }
}
/* Leaving, a thread may leave frames behind, to ourselves or for a full iface: the leader takes care of them, if it sleeps it is woken. */
void weft_worker_wake_leader(weft_worker *worker);
static inline void weft_worker_unlock(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0)) {
        if (worker->is_asleep)
            weft_worker_wake_leader(worker);
        weft_call_lock(WEFT_CALL_FREE);
        weft_lock_release(&worker->lock);
    }
}

/* Around every call of a program's function (operators, error handlers, and whatever callback is still to come): no lock of ours is
 * held meanwhile, for the callback may wait for a mutex that another thread holds while it waits for the worker. Other threads lock,
 * poll and sleep meanwhile. So before begin: what the caller works on is off every list that others walk, and is kept alive by it;
 * after end: nothing that was read before is trusted. Never inside an iface's callback. Requires the lock; takes it again. */
void weft_worker_callout_begin(weft_worker *worker);
void weft_worker_callout_end(weft_worker *worker);

/* No hold of the lock is meant to take 100 us. What moves more bytes than this in one call is done unlocked (callout), or in pieces. */
#define WEFT_WORKER_HOLD_BYTES (64u << 10)
static inline bool weft_worker_is_long(const weft_worker *worker, uint64_t bytes)
{
    return bytes > WEFT_WORKER_HOLD_BYTES && worker->is_threaded;
}

/* Between two pieces: lets a thread in that waits for the lock. As after a callout, nothing that was read before is trusted. */
static inline void weft_worker_offer(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0) && __builtin_expect(weft_lock_is_wanted(&worker->lock), 0))
        weft_lock_offer(&worker->lock);
}

/* Marks the request done, tells its completion, wakes a leader that sleeps. Once. */
static inline void weft_req_end(weft_req *req, int rc)
{
    req->rc = rc;
    if (__builtin_expect(rc != 0, 0))
        weft_req_record_error(req, rc);
    req->is_done = true;
    if (__builtin_expect(req->completion || req->worker->is_asleep, 0))
        weft_req_notify(req);
}

/* The status page says from now on what this thread waits for. */
void weft_worker_show(weft_wait *wait);
/* Ends what arm began on the first `count` ifaces, and the flag by which we are rung. */
void weft_worker_disarm(weft_worker *worker, uint32_t count);

/* One visit to every iface, the backlog and the running schedules. How many things happened. */
int weft_worker_poll(weft_worker *worker);

/* Unexpected messages serve receives without a poll. A program that finds all its messages there polls now and then all the same, so that
 * its other peers are received from: called where a receive completes, never inside a poll. */
#define WEFT_UNPOLLED_MAX 32
static inline void weft_worker_catch_up(weft_worker *worker)
{
    if (__builtin_expect(worker->unpolled >= WEFT_UNPOLLED_MAX, 0)) {
        worker->unpolled = 0;
        weft_worker_poll(worker);
    }
}

/* Gives the request a name (req->name) that may travel to a peer: 20 bits of slot, 12 of generation. A stale name finds NULL.
 * WEFT_AGAIN: all are in use; WEFT_E_NOMEM. weft_req_free takes it away. */
int weft_req_id_alloc(weft_worker *worker, weft_req *req);
weft_req *weft_req_id_lookup(weft_worker *worker, uint32_t name);
void weft_req_id_free(weft_worker *worker, weft_req *req);

#endif
