/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_queue: nonblocking calls through a node area. An area performs its calls in the order in which they are made, which is equal on
 * all members: a nonblocking call waits for the older ones, and a blocking call for all of them (weft_shmcoll_drain). Progress advances the
 * oldest call of each area as far as the others' posts allow, by the rounds of blocking calls (shmcoll.c).
 * Called by coll.c, sched_area.c and the worker's progress; requires worker->lock.
 * Invariant: calls never end inside a transport callback; while a call is performed, only that thread advances its area.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_QUEUE_H
#define WEFT_COLLECTIVES_SHMCOLL_QUEUE_H

#include "collectives/shmcoll_area.h"

/* Makes the call: publishes it for the check, and begins it if it is the oldest. The caller sets area, kind, args, call, tag, end and
 * owner; `end` may be called before the return. An error: the area is not used any more, or WEFT_E_NOMEM, and `end` is not called. */
int weft_shmcoll_enqueue(weft_shmcoll_pending *pending);
/* Makes a short call without a schedule: publishes it, posts its data, and ends it if the other members' data come within WEFT_WAIT_LOOKS
 * looks. WEFT_OK: the call has ended. WEFT_AGAIN or an error: the caller must pass the call to weft_shmcoll_enqueue, which continues it or
 * ends it with the error, or must call weft_shmcoll_drop_attempt. */
int weft_shmcoll_attempt(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, uint32_t tag);
/* The same for a call that weft_shmcoll_find_short() has found. */
int weft_shmcoll_attempt_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, const weft_shmcoll_short *same,
                               weft_call call, uint32_t tag);
static inline bool weft_shmcoll_may_attempt_short(const weft_shmcoll *area)
{
    return weft_list_is_empty(&area->pending) && !area->rc && area->exchange;
}
/* Condition of weft_shmcoll_attempt: short data, no user operator, and no call under way in the area. */
#define WEFT_SHMCOLL_ATTEMPT_BYTES 32768     /* most bytes of the call (weft_coll_bytes) ... */
#define WEFT_SHMCOLL_ATTEMPT_ALL_BYTES 65536 /* ... times members */
static inline bool weft_shmcoll_may_attempt(const weft_shmcoll *area, const weft_coll *args, weft_call call)
{
    if (call.bytes > WEFT_SHMCOLL_ATTEMPT_BYTES || call.bytes * area->ranks > WEFT_SHMCOLL_ATTEMPT_ALL_BYTES)
        return false;
    if (!weft_list_is_empty(&area->pending))
        return false;
    return !area->rc && !area->csums && area->exchange && (!args->op || args->op->handle);
}
/* Ends an attempted call that gets no schedule: the team has stopped. No effect if there is none. */
void weft_shmcoll_drop_attempt(weft_shmcoll *area) __attribute__((cold));
/* worker->progress_areas: advances all areas in worker->areas by a round. Returns how many have advanced. */
int weft_shmcoll_progress(weft_worker *worker);
/* Before a wait for the call: polls the flags for a short time, which costs less than to poll the ifaces. */
void weft_shmcoll_spin(const weft_shmcoll_pending *pending);
/* Waits until the nonblocking calls made so far have ended. */
void weft_shmcoll_drain(weft_shmcoll *area);
static inline bool weft_shmcoll_has_pending(const weft_shmcoll *area) { return !weft_list_is_empty(&area->pending); }

#endif
