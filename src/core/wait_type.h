/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_type: state of one blocking wait. See wait.h for the calls.
 */
#ifndef WEFT_CORE_WAIT_TYPE_H
#define WEFT_CORE_WAIT_TYPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/req_type.h"
#include "core/wait_policy.h"
#include "core/worker_type.h"
#include "mem/segment.h"
#include "transport/iface.h"

/* On the waiting thread's stack. core/wait_policy decides how long to spin, weft_sleep_ops (core/world_type) how to sleep. */
typedef struct weft_wait weft_wait;
struct weft_wait {
    struct weft_worker *worker;
    uint32_t idle;      /* empty polls in a row */
    bool is_armed;
    bool is_shown;      /* published in the status page (weft_worker_show) */
    bool has_slept;
    uint32_t yielded_ns; /* what the yields since the latest event or sleep count (wait_policy) */
    uint64_t slept_ns, long_ns; /* in all; when worker->on_long_wait is called next. Valid if has_slept */
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
    bool is_background; /* of the progress thread: not shown, calls no function of the program */
    bool has_offered;   /* has offered the lock since its latest poll */
    bool is_aside;      /* parked while there was no leader */
    bool is_seen;       /* parked: is_over was true, and it was woken */
};

#endif
