/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker: lock domain: a lock and the ifaces, peers, channels, pools and running schedules that it guards. A communicator belongs to one
 * worker; threads scale by workers. Generated MPI entry points take the lock; all code below requires it.
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
    bool is_armed;         /* a thread has armed the ifaces; that thread disarms them */
    bool is_asleep;        /* that thread sleeps on the wakeups */
    weft_iface *ifaces[WEFT_WORKER_IFACES];
    bool has_addr[WEFT_WORKER_IFACES]; /* the iface is a network: its address is published by modex */
    uint32_t iface_count;
    char no_network[200];  /* why the first network with an active device did not open, if none opened; "": no reason */
    bool wants_fd;         /* sleeps on descriptors, not on a futex */
    struct weft_peer **peers; /* [job size]; NULL entry: no contact yet */
    struct weft_chan_slot *chans; /* by index bits of the channel id */
    uint32_t chan_capacity, chan_lowest; /* channel indices below chan_lowest are all in use */
    weft_list_link backlog; /* peers with deferred frames or messages that wait for credit */
    weft_list_link scheds; /* schedules that progress can advance */
    uint32_t scheds_ready; /* length of scheds */
    int (*progress_scheds)(struct weft_worker *worker); /* advances scheds; set by collectives */
    weft_list_link fragments; /* fragments of transfers that are sent in chunks or found the iface full (p2p/frag) */
    int (*progress_fragments)(struct weft_worker *worker); /* advances fragments; set by p2p */
    void (*on_peer_connect)(struct weft_peer *peer); /* new peer: sets its limits; set by p2p; NULL: none */
    int (*flush)(struct weft_peer *peer); /* sends messages that wait for credit, as far as it lasts; set by p2p */
    const weft_iface_callbacks *callbacks; /* upcalls of the ifaces; owned by p2p */
    weft_req done_req;         /* shared "already complete" request of eager sends */
    weft_list_link free_reqs;
    void *slabs;               /* memory of the request pool, freed at close; NULL: none */
    struct weft_failure *failures; /* ring of error texts of failed requests (core/failure); NULL: none failed */
    uint32_t failure_next;     /* count of failures; its remainder is the slot of the next one */
    struct weft_req_id_slot *req_ids; /* table of requests with an id */
    uint32_t req_id_capacity, req_id_free; /* slots; first free slot, 0: none */
    uint32_t unpolled;         /* receives completed by unexpected messages since weft_worker_catch_up polled */
    bool is_assigning_ids;     /* inside begin_pending (p2p/rndv), which is not re-entrant */
    uint64_t post_order;       /* post number of the next receive */
    uint64_t asked_order;      /* receives with lower post numbers need no check for unmapped memory (core/reg) */
    struct weft_rndv_stats *rndv_stats; /* of p2p, by iface and kind of peer; freed with the worker */
    uint64_t persistent_bytes; /* bytes of persistent registrations (core/reg) */
    uint32_t credit_return_min; /* due credits from which a CREDIT frame is sent, in WEFT_CREDIT_BYTES */
    struct weft_pool *pool;    /* unexpected messages and deferred frames, by exact size classes */
    weft_fifomap announced;    /* unmatched RTS, by peer and its request id: those that a sender may cancel (p2p/match) */
    weft_list_link pending_rts; /* RTS that matched while no request id was free (p2p/rndv) */
    uint64_t counters[WEFT_COUNT_LAST]; /* core/counters */
    void (*count)(struct weft_worker *worker); /* updates counters kept elsewhere (registrations); NULL: none */
    weft_lock lock;
    /* threads that wait (core/leader) */
    struct weft_wait *_Atomic leader; /* polls for all; NULL: none */
    struct weft_wait *heir;    /* parked thread that checks for a leader; NULL: none */
    weft_list_link parked;     /* all parked threads, latest first */
    bool has_woken;            /* a sleeping parked thread was woken since the leader's last check */
    _Atomic uint32_t leaves;   /* times that a leader stepped down; wraps */
    _Atomic uint32_t spinners; /* parked threads that spin, at most spare_cpus */
    uint32_t spare_cpus;       /* CPUs of this rank, less one for the leader; constant */
} weft_worker;

/* Opens ifaces and pools; `callbacks` are the ifaces' upcalls (p2p). WEFT_E_NOMEM, or the error of an iface. */
int weft_worker_open(struct weft_world *world, uint32_t index, const weft_iface_callbacks *callbacks, weft_worker **worker);
/* Closes the ifaces and frees all memory. The worker must be drained (weft_world_close), or not fully open. */
void weft_worker_close(weft_worker *worker);

static inline void weft_worker_lock(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0)) {
        weft_call_lock(WEFT_CALL_WANTS);
        weft_lock_acquire(&worker->lock);
        weft_call_lock(WEFT_CALL_HOLDS);
    }
}
/* Wakes the sleeping leader if this thread leaves work to it: deferred frames, fragments, ready schedules, frames to self. */
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

/* Must enclose every call of a user function (operators, error handlers, callbacks): begin drops worker->lock, end takes it again. The
 * user function may wait for a mutex whose holder waits for the worker. Other threads lock, poll and sleep meanwhile: before begin the
 * caller must take its objects off shared lists and keep them alive; after end it must read all state anew. Must not be called inside
 * an iface's callback. */
void weft_worker_callout_begin(weft_worker *worker);
void weft_worker_callout_end(weft_worker *worker);

/* The lock should not be held for 100 us. A call that copies more bytes than this must do so unlocked (callout), or in parts with
 * weft_worker_offer between them. */
#define WEFT_WORKER_HOLD_BYTES (64u << 10)
static inline bool weft_worker_is_long(const weft_worker *worker, uint64_t bytes)
{
    return bytes > WEFT_WORKER_HOLD_BYTES && worker->is_threaded;
}

/* Between two parts: lets a thread that waits for the lock take it. As after a callout, the caller must read all state anew. */
static inline void weft_worker_offer(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0) && __builtin_expect(weft_lock_is_wanted(&worker->lock), 0))
        weft_lock_offer(&worker->lock);
}

/* Completes a request, exactly once: sets rc and is_done, notifies its completion, wakes a sleeping leader. */
static inline void weft_req_end(weft_req *req, int rc)
{
    req->rc = rc;
    if (__builtin_expect(rc != 0, 0))
        weft_req_record_error(req, rc);
    req->is_done = true;
    if (__builtin_expect(req->completion || req->worker->is_asleep, 0))
        weft_req_notify(req);
}

/* Publishes what this thread waits for in the status page. */
void weft_worker_show(weft_wait *wait);
/* Disarms the first `count` ifaces and clears the rank page's sleep flag. */
void weft_worker_disarm(weft_worker *worker, uint32_t count);

/* Polls every iface once, then advances backlog, fragments and schedules. Returns the number of events. Calls callbacks. */
int weft_worker_poll(weft_worker *worker);

/* Receives of unexpected messages do not poll. This polls after every WEFT_UNPOLLED_MAX of them, so that frames of other peers are
 * received. Called where a receive completes, never inside a poll. */
#define WEFT_UNPOLLED_MAX 32
static inline void weft_worker_catch_up(weft_worker *worker)
{
    if (__builtin_expect(worker->unpolled >= WEFT_UNPOLLED_MAX, 0)) {
        worker->unpolled = 0;
        weft_worker_poll(worker);
    }
}

/* Allocates a request id (req->id) that frames may carry: 20 bits of slot, 12 of generation. Lookup of a stale id returns NULL.
 * WEFT_AGAIN: all are in use; WEFT_E_NOMEM. weft_req_free frees it. */
int weft_req_id_alloc(weft_worker *worker, weft_req *req);
weft_req *weft_req_id_lookup(weft_worker *worker, uint32_t id);
void weft_req_id_free(weft_worker *worker, weft_req *req);

#endif
