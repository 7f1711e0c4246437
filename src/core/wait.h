/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait: blocking waits. All waits of the library have this form:
 *
 *     weft_wait wait;
 *     weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_RECV, peer, tag, bytes);
 *     while (!req->is_done)
 *         weft_wait_progress(&wait);
 *     weft_wait_end(&wait);
 *
 * The caller checks its condition between turns, under worker->lock; a turn may drop the lock and take it again. A turn polls. After empty
 * polls it yields or spins up to the policy's limits, then arms all ifaces, returns once so that the caller checks again, and then
 * sleeps. With several threads only one of them does this: see core/leader.h. In the simulator a sleep switches to another rank's fibre.
 */
#ifndef WEFT_CORE_WAIT_H
#define WEFT_CORE_WAIT_H

#include <stdint.h>

#include "core/wait_type.h"
#include "core/world_type.h"

static inline void weft_wait_begin(weft_wait *wait, weft_worker *worker, enum weft_wait_reason why, int32_t peer, int32_t tag,
                                   uint64_t bytes)
{
    wait->worker = worker;
    wait->idle = 0;
    wait->is_armed = wait->is_shown = wait->has_slept = wait->has_led = wait->is_resigned = false;
    wait->has_offered = wait->is_background = false;
    wait->yielded_ns = 0;
    wait->spin = (weft_wait_spin){0};
    wait->why = why;
    wait->peer = peer;
    wait->tag = tag;
    wait->bytes = bytes;
    wait->req = NULL;
    wait->attach = NULL;
    wait->is_over = NULL;
}
/* The event has come, and the wait will go on for another one or end: disarms, clears the status page, keeps the lead. */
void weft_wait_pause(weft_wait *wait);
/* Goes on after a pause, for this event, with the same req, attach or is_over. */
static inline void weft_wait_next(weft_wait *wait, enum weft_wait_reason why, int32_t peer, int32_t tag, uint64_t bytes)
{
    wait->why = why;
    wait->peer = peer;
    wait->tag = tag;
    wait->bytes = bytes;
}
/* One turn. Requires worker->lock, which it may drop; may sleep; calls callbacks. The caller then checks its condition again. */
void weft_wait_progress(weft_wait *wait);
/* Yields of a call that may wait a little. */
typedef struct weft_wait_yields {
    uint32_t left; /* that the call may still make; a long one is the last */
    bool has_yielded;
} weft_wait_yields;
/* Yields once. False: none is left, the policy allows none, or other threads use the worker. */
bool weft_wait_yield(weft_worker *worker, weft_wait_yields *yields);
/* The call has ended without a further wait: its yields were no lost time. */
static inline void weft_wait_yields_succeeded(weft_worker *worker, const weft_wait_yields *yields)
{
    if (yields->has_yielded)
        weft_wait_policy_yield_succeeded(&worker->world->wait_policy);
}
/* After some empty polls: the wait spins no longer, but sleeps unless something arrives. */
static inline void weft_wait_cut_short(weft_wait *wait)
{
    wait->idle = UINT32_MAX / 2;
    wait->spin.had_ns = UINT64_MAX / 2;
}
/* Slow path of weft_wait_end: disarms, gives up the lead, clears the status page. */
void weft_wait_close(weft_wait *wait);
static inline void weft_wait_end(weft_wait *wait)
{
    if (__builtin_expect(wait->is_armed | wait->is_shown | wait->has_led | wait->yielded_ns, 0))
        weft_wait_close(wait);
}

extern const weft_sleep_ops weft_sleep_ops_here; /* on futex and descriptors */

#endif
