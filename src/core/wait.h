/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait: the one way to wait. Spin, then yield, then sleep, on everything that can wake us. Whoever waits does
 *
 *     weft_wait wait;
 *     weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_RECV, peer, tag, bytes);
 *     while (!req->is_done)
 *         weft_wait_progress(&wait);
 *     weft_wait_end(&wait);
 *
 * The condition is looked at between turns, under the worker's lock (which a turn may drop and take again). A turn polls; when polls
 * stay empty it spins up to the knobs' limits, then arms every iface, comes back once more so that the caller looks again, and only
 * then sleeps. In the simulator a turn hands over to another rank's fibre. Where several threads wait in one worker only one of them
 * does all that: see core/leader.h.
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

/* (core/wait_policy says how long to spin, weft_sleep_ops, below, how to sleep.) */
typedef struct weft_wait weft_wait;
struct weft_wait {
    struct weft_worker *worker;
    uint32_t idle;      /* empty polls in a row */
    bool is_armed;
    bool is_shown;      /* the status page says what we wait for */
    bool has_slept;
    uint32_t yields;    /* so far in this wait */
    weft_wait_spin spin;
    enum weft_wait_reason why;
    int32_t peer, tag;
    uint64_t bytes;
    weft_wakeup wakeups[WEFT_WORKER_IFACES]; /* set while armed */
    /* What wakes this thread where another one leads (core/leader), set after begin; none: it polls beside the leader. One of ... */
    weft_req *req;      /* ... the end of this request, ... */
    bool (*attach)(weft_wait *wait, weft_completion *completion); /* ... of what this ties to the completion (NULL: unties again; false: cannot), ... */
    bool (*is_over)(weft_wait *wait); /* ... or this condition, which other processes change: the leader looks at it. Under the lock */
    weft_completion completion;     /* opens when it is over; set while parked, as is ... */
    weft_list_link link;     /* ... this: in worker->parked */
    _Atomic uint32_t signal; /* enum signal: parked threads sleep on it */
    bool has_led, is_resigned;
    bool has_offered;   /* the lock, since the latest poll */
    bool is_aside;      /* parked while none leads */
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
void weft_wait_progress(weft_wait *wait);
void weft_wait_close(weft_wait *wait);
static inline void weft_wait_end(weft_wait *wait)
{
    if (__builtin_expect(wait->is_armed | wait->is_shown | wait->has_led | wait->yields, 0))
        weft_wait_close(wait);
}

/* The seat of sleeping: real processes sleep on a futex or on descriptors; sim switches fibres. One per world. When to sleep is
 * core/wait_policy's. */
typedef struct weft_sleep_ops {
    /* Sleeps on the wakeups that arm filled in, until one rings or limit_ns is over. Called with the worker unlocked.
     * Returns true when the limit ended it. */
    bool (*sleep)(struct weft_worker *worker, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns);
    /* Ends the sleep of the thread that leads in this worker. */
    void (*wake)(struct weft_worker *worker);
    void (*aside)(bool begins); /* simulator only: what is done until it ends is another CPU's work and takes none of our time */
} weft_sleep_ops;

extern const weft_sleep_ops weft_sleep_ops_here; /* on futex and descriptors */

#endif
