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

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/req.h"
#include "core/wait_policy.h"
#include "mem/segment.h"
#include "transport/iface.h"

#define WEFT_WORKER_IFACES 4

struct weft_worker;

/* State of one wait, on the waiting thread's stack. core/wait_policy decides how long to spin, weft_sleep_ops (below) how to sleep. */
typedef struct weft_wait weft_wait;
struct weft_wait {
    struct weft_worker *worker;
    uint32_t idle;      /* empty polls in a row */
    bool is_armed;
    bool is_shown;      /* published in the status page (weft_worker_show) */
    bool has_slept;
    uint32_t yields;    /* sched_yield calls of this wait */
    weft_wait_spin spin;
    enum weft_wait_reason why;
    int32_t peer, tag;
    uint64_t bytes;
    weft_wakeup wakeups[WEFT_WORKER_IFACES]; /* set while armed */
    /* What wakes this thread while parked (core/leader): one of req, attach, is_over, set after begin; none: polls beside the leader. */
    weft_req *req;      /* its end wakes; NULL: none */
    bool (*attach)(weft_wait *wait, weft_completion *completion); /* attaches what wakes to completion; NULL: detaches; false: cannot */
    bool (*is_over)(weft_wait *wait); /* condition that other processes change; the leader polls it, under worker->lock */
    weft_completion completion; /* opens when the wait is over; valid while parked */
    weft_list_link link;     /* in worker->parked; valid while parked */
    _Atomic uint32_t signal; /* enum signal (leader.c); futex of the parked thread */
    bool has_led, is_resigned; /* is_resigned: was the heir while the leader stayed the same; its next park is not as heir */
    bool has_offered;   /* has offered the lock since its latest poll */
    bool is_aside;      /* parked while there was no leader */
    bool is_seen;       /* parked: is_over was true, and it was woken */
};

static inline void weft_wait_begin(weft_wait *wait, struct weft_worker *worker, enum weft_wait_reason why, int32_t peer, int32_t tag, uint64_t bytes)
{
    wait->worker = worker;
    wait->idle = 0;
    wait->is_armed = wait->is_shown = wait->has_slept = wait->has_led = wait->is_resigned = wait->has_offered = false;
    wait->yields = 0;
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
/* Slow path of weft_wait_end: disarms, gives up the lead, clears the status page. */
void weft_wait_close(weft_wait *wait);
static inline void weft_wait_end(weft_wait *wait)
{
    if (__builtin_expect(wait->is_armed | wait->is_shown | wait->has_led | wait->yields, 0))
        weft_wait_close(wait);
}

/* How a world sleeps: processes on a futex or on descriptors; sim switches fibres. core/wait_policy decides when. */
typedef struct weft_sleep_ops {
    /* Sleeps until one of the armed wakeups is raised or limit_ns has passed. The worker must be unlocked. True: ended by the limit. */
    bool (*sleep)(struct weft_worker *worker, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns);
    /* Wakes the sleeping leader of this worker. */
    void (*wake)(struct weft_worker *worker);
    void (*aside)(bool begins); /* simulator only: work between true and false counts as another CPU's time; NULL elsewhere */
} weft_sleep_ops;

extern const weft_sleep_ops weft_sleep_ops_here; /* on futex and descriptors */

#endif
