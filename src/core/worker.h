/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker: opens, locks, polls and closes a worker (worker_type.h). Generated MPI entry points take the lock; all code below requires it.
 */
#ifndef WEFT_CORE_WORKER_H
#define WEFT_CORE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/call_status.h"
#include "core/lock.h"
#include "core/req.h"
#include "core/worker_type.h"

struct weft_wait;

/* Opens ifaces and pools; `callbacks` are the ifaces' upcalls (p2p). WEFT_E_NOMEM, or the error of an iface. */
int weft_worker_open(struct weft_world *world, uint32_t index, const weft_iface_callbacks *callbacks, weft_worker **worker);
/* Closes the ifaces and frees all memory. The worker must be drained (weft_world_close), or not fully open. */
void weft_worker_close(weft_worker *worker);

/* Read without the lock; mpi/tool_event sets has_tool from any thread. */
static inline bool weft_worker_is_special(const weft_worker *worker) { return __atomic_load_n(&worker->is_special, __ATOMIC_RELAXED); }

static inline void weft_worker_lock(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0)) {
        weft_call_lock(WEFT_CALL_WANTS);
        weft_lock_acquire(&worker->lock);
        worker->was_visited = true;
        weft_call_lock(WEFT_CALL_HOLDS);
    }
}
/* Wakes the sleeping leader if this thread leaves work to it: deferred frames, fragments, ready schedules, frames to self. */
void weft_worker_wake_leader(weft_worker *worker);
/* Wakes the progress thread (core/progress_thread) if it sleeps as the leader. */
void weft_worker_wake_helper(weft_worker *worker);
/* The program's thread releases the lock of a lent worker: takes it back if no operation is left. */
void weft_worker_take_back(weft_worker *worker);
static inline void weft_worker_unlock(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0)) {
        if (worker->is_asleep)
            weft_worker_wake_leader(worker);
        if (__builtin_expect(worker->is_lent, 0))
            weft_worker_take_back(worker);
        weft_call_lock(WEFT_CALL_FREE);
        weft_lock_release(&worker->lock);
    }
}

/* MPI_THREAD_MULTIPLE: several threads of the program may be inside MPI. */
static inline bool weft_worker_is_multiple(const weft_worker *worker) { return worker->is_threaded && !worker->is_lent; }
/* Several threads use the worker now, so each should hold the lock for a short time. If it is lent, the progress thread can wait. */
static inline bool weft_worker_is_shared(const weft_worker *worker)
{
    return weft_worker_is_multiple(worker) || worker->is_helping;
}

/* An operation begins that the progress thread can advance, if is_helped. Its end passes the same value. */
static inline void weft_worker_help_begin(weft_worker *worker, bool is_helped)
{
    if (!is_helped)
        return;
    atomic_store_explicit(&worker->helped, atomic_load_explicit(&worker->helped, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_store_explicit(&worker->wants_thread, true, memory_order_relaxed);
}
static inline void weft_worker_help_end(weft_worker *worker, bool is_helped)
{
    if (is_helped)
        atomic_store_explicit(&worker->helped, atomic_load_explicit(&worker->helped, memory_order_relaxed) - 1, memory_order_relaxed);
}
static inline bool weft_worker_needs_help(const weft_worker *worker)
{
    return atomic_load_explicit(&worker->helped, memory_order_relaxed);
}

/* The lock should not be held for 100 us. A call that copies more bytes than this must do so unlocked (callout), or in parts with
 * weft_worker_offer between them. */
#define WEFT_WORKER_HOLD_BYTES (64u << 10)
static inline bool weft_worker_is_long(const weft_worker *worker, uint64_t bytes)
{
    return bytes > WEFT_WORKER_HOLD_BYTES && worker->is_threaded;
}

/* Between two parts: lets a thread that waits for the lock take it. As after a callout, the caller must read all state again. */
static inline void weft_worker_offer(weft_worker *worker)
{
    if (__builtin_expect(worker->is_threaded, 0) && __builtin_expect(weft_lock_is_wanted(&worker->lock), 0))
        weft_lock_offer(&worker->lock);
}

/* Publishes what this thread waits for in the status page. */
void weft_worker_show(struct weft_wait *wait);
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

#endif
