/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notify: see notify.h.
 */
#include "rma/notify.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"
#include "rma/memory.h"

/* A put of a device has notified. One for a window that is closed counts nothing. */
static void on_put(weft_worker *worker, uint32_t value)
{
    weft_window *window = worker->notified[(value & ~WEFT_NOTIFY_WINDOW) >> WEFT_NOTIFY_COUNTER_BITS];
    uint32_t id = value & ((1u << WEFT_NOTIFY_COUNTER_BITS) - 1);
    if (window && id < window->notify->targets[window->rank].count)
        weft_notify_count(window, window->rank, id);
}

uint32_t weft_notify_number(weft_window *window)
{
    weft_worker *worker = window->worker;
    uint32_t number = window->notify->number = ++worker->notified_count;
    if (!worker->notified && !(worker->notified = calloc(WEFT_NOTIFY_NUMBERS, sizeof *worker->notified)))
        return 0;
    worker->on_window_notify = on_put;
    if (number >= WEFT_NOTIFY_NUMBERS)
        return 0;
    worker->notified[number] = window;
    return number;
}

void weft_notify_close(weft_window *window)
{
    weft_window_notify *notify = window->notify;
    weft_worker *worker = window->worker;
    if (!notify)
        return;
    window->notify = NULL;
    if (worker->notified && notify->number < WEFT_NOTIFY_NUMBERS)
        worker->notified[notify->number] = NULL;
    if (notify->shared.addr)
        window->memory->iface->ops->unshare(window->memory->iface, &notify->shared);
    free(notify->allocated);
    free(notify);
}

/* -- waits -- */

void weft_notify_wake_own(weft_window *window)
{
    if (window->worker->is_asleep)
        window->worker->world->sleep_ops->wake(window->worker);
}

typedef struct notify_wait {
    weft_wait wait;
    const weft_window *window;
    const int *ids;
    const int64_t *thresholds;
    uint32_t count;
} notify_wait;

/* Index of the first counter that has its threshold; count: none. */
static uint32_t find(const notify_wait *self, uint64_t *value)
{
    uint32_t i = 0;
    while (i < self->count && (int64_t)(*value = weft_notify_value(self->window, (uint32_t)self->ids[i])) < self->thresholds[i])
        i++;
    return i;
}

/* A member whose process has died, which has not ended a wait yet; -1: none. */
static int untold(const weft_window *window)
{
    for (uint32_t i = 0; window->has_lost && i < window->size; i++)
        if (window->targets[i].is_lost && !window->notify->targets[i].is_told)
            return (int)i;
    return -1;
}

int weft_notify_tell_death(weft_window *window)
{
    int member = untold(window);
    if (member < 0)
        return 0;
    window->notify->targets[member].is_told = true;
    return weft_fail(WEFT_E_PEER, "the process of rank %d of the window has died, so its notifications will not come", member);
}

static bool is_over(weft_wait *wait)
{
    const notify_wait *self = weft_container(wait, notify_wait, wait);
    uint64_t value;
    return find(self, &value) < self->count || untold(self->window) >= 0;
}

static void set_waiting(const notify_wait *self, uint32_t by)
{
    weft_notify_counter *counters = self->window->notify->targets[self->window->rank].counters;
    for (uint32_t i = 0; i < self->count; i++)
        atomic_fetch_add_explicit(&counters[self->ids[i]].waiting, by, memory_order_seq_cst);
}

/* For reports, in the form of mem/rank_page.h. */
static uint64_t progress_of(const notify_wait *self)
{
    uint64_t value = weft_notify_value(self->window, (uint32_t)self->ids[0]), threshold = (uint64_t)self->thresholds[0];
    return (value < UINT32_MAX ? value : UINT32_MAX) << 32 | (threshold < UINT32_MAX ? threshold : UINT32_MAX);
}

int weft_notify_wait(weft_window *window, const int *ids, const int64_t *thresholds, uint32_t count, uint32_t *index, uint64_t *value)
{
    notify_wait self = {.window = window, .ids = ids, .thresholds = thresholds, .count = count};
    weft_worker *worker = window->worker;
    *index = find(&self, value);
    if (*index < count)
        return 0;
    weft_wait_begin(&self.wait, worker, WEFT_WAIT_REASON_NOTIFY, (int32_t)window->notify->number, count > 1 ? -(int32_t)count : ids[0],
                    progress_of(&self));
    self.wait.is_over = is_over;
    set_waiting(&self, 1);
    while ((*index = find(&self, value)) == count && untold(window) < 0) {
        weft_wait_progress(&self.wait);
        if (self.wait.is_shown)
            atomic_store_explicit(&weft_call_wait(worker->world->page)->bytes, progress_of(&self), memory_order_relaxed);
    }
    set_waiting(&self, UINT32_MAX);
    weft_wait_end(&self.wait);
    return *index < count ? 0 : weft_notify_tell_death(window);
}
