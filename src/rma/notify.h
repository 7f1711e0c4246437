/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notify: notification counters (docs/rma.md, "Notified access"): each member of a window has some. An operation with a notification
 * adds 1 to a counter of its target once it and all earlier operations of its origin on that target are performed. Members that map the
 * target's memory map its counters too and add by an atomic instruction; for others the target adds, when a message (notice.h) or a put of
 * a device tells it to. Such a put's value: WEFT_NOTIFY_WINDOW, 11 bits of the window's number at the target, 20 bits of the counter.
 * Numbers are not used again, since a notification may come after its window is closed.
 * Requires worker->lock, but the counters themselves.
 */
#ifndef WEFT_RMA_NOTIFY_H
#define WEFT_RMA_NOTIFY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "mem/rank_page.h"
#include "core/worker_type.h"
#include "rma/window.h"
#include "transport/iface.h"

/* Alone in its cache line, so that origins of different counters do not disturb each other. */
typedef struct weft_notify_counter {
    _Alignas(WEFT_LINE) _Atomic uint64_t value;
    _Atomic uint32_t waiting; /* waits of the owner: who adds wakes it */
} weft_notify_counter;

typedef struct weft_notify_target {
    weft_notify_counter *counters; /* [count] mapped here; NULL: by messages */
    uint32_t count;
    uint32_t number;               /* of the window at the target; 0: not told, no device notifies */
    weft_rank_page *page;          /* of the target's rank, if counters are mapped */
    bool is_told;                  /* its process has died, and that has ended a wait (mpirun --enable-recovery) */
} weft_notify_target;

typedef struct weft_window_notify {
    uint32_t number;               /* of the window: 1, 2 ... in the order of weft_notify_open in this process; also for reports */
    weft_shared shared;            /* counters of the members of this node; addr NULL: none */
    weft_notify_counter *allocated; /* own counters that no other member maps, owned; NULL: in `shared` */
    weft_notify_target targets[];  /* [window->size] */
} weft_window_notify;

#define WEFT_NOTIFY_COUNTER_BITS 20
#define WEFT_NOTIFY_NUMBERS 2048u /* numbers from this on are not told */

/* Gives the window its number; what devices notify for it is counted from now on. 0: devices cannot notify. */
uint32_t weft_notify_number(weft_window *window);
/* Value of a put that notifies a target's counter. 0: none, it goes by message. */
static inline uint32_t weft_notify_put_value(const weft_window *window, uint32_t target, uint32_t id)
{
    uint32_t number = window->notify->targets[target].number;
    return number && !(id >> WEFT_NOTIFY_COUNTER_BITS) ? WEFT_NOTIFY_WINDOW | number << WEFT_NOTIFY_COUNTER_BITS | id : 0;
}

/* Frees the counters; notify_open.h makes them. */
void weft_notify_close(weft_window *window);

/* Wakes this member's threads that wait. */
void weft_notify_wake_own(weft_window *window);

/* Adds 1 to a counter that is mapped here: id < targets[target].count. What was stored before is visible to who sees the new value. */
static inline void weft_notify_count(weft_window *window, uint32_t target, uint32_t id)
{
    weft_notify_target *at = &window->notify->targets[target];
    weft_notify_counter *counter = &at->counters[id];
    atomic_fetch_add_explicit(&counter->value, 1, memory_order_seq_cst);
    if (weft_likely(!atomic_load_explicit(&counter->waiting, memory_order_seq_cst)))
        return;
    if (target == window->rank) {
        weft_notify_wake_own(window);
        return;
    }
    atomic_thread_fence(memory_order_seq_cst); /* store before load of asleep; pairs with the sleeper */
    weft_page_wake_if_asleep(at->page);
}

/* Value of an own counter. What was stored before the notifications that it has is visible. */
static inline uint64_t weft_notify_value(const weft_window *window, uint32_t id)
{
    return atomic_load_explicit(&window->notify->targets[window->rank].counters[id].value, memory_order_acquire);
}

/* Sets an own counter to 0. Returns its value before. */
static inline uint64_t weft_notify_reset(weft_window *window, uint32_t id)
{
    return atomic_exchange_explicit(&window->notify->targets[window->rank].counters[id].value, 0, memory_order_acq_rel);
}

/* Blocks until one of the own counters ids[count] has its threshold: 0, the first such index and the counter's value. WEFT_E_PEER: a member
 * has died; each death ends one wait of the window, as notifications of the dead may be waited for. */
int weft_notify_wait(weft_window *window, const int *ids, const int64_t *thresholds, uint32_t count, uint32_t *index, uint64_t *value);
/* 0, or the error of a death that has not ended a wait or test yet, which it does hereby. */
int weft_notify_tell_death(weft_window *window);

#endif
