/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event: see event.h. The lock is a word: raw threads of the library raise events too, and it is held for a few loads and stores.
 */
#include "base/event.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"

#define CAPACITY 2048u /* records; a power of two */

const weft_event_row weft_event_rows[WEFT_EVENT_LAST] = {
#define EVENT(id, name, object, group, elements, sentence) \
    {"weft_" #name, elements, sentence, WEFT_EVENT_OF_##object, WEFT_EVENT_IS_##group},
#include "base/events.def"
#undef EVENT
};
_Static_assert(WEFT_EVENT_LAST <= 32, "weft_event_mask has a bit for each type");

_Atomic uint32_t weft_event_mask;
_Atomic bool weft_event_pending, weft_event_pending_in_wait;
weft_event_deliver_fn *_Atomic weft_event_deliver;

/* Guarded by `is_locked`. */
static _Atomic bool is_locked;
static weft_list_link sinks = {&sinks, &sinks};
static weft_event_record *queue; /* [CAPACITY]; NULL: not open */
static uint32_t first, next;     /* records ever taken and queued; wrap */
static uint32_t calls_left;      /* calls of callbacks that the delivery may still make */
static bool has_dropped;         /* a sink's `dropped` is not 0 */
static bool is_delivering, is_blocked;

void weft_event_lock(void)
{
    while (atomic_exchange_explicit(&is_locked, true, memory_order_acquire))
        sched_yield();
}

void weft_event_unlock(void) { atomic_store_explicit(&is_locked, false, memory_order_release); }

static void settle(void)
{
    bool is_pending = !is_delivering && (first != next || has_dropped);
    atomic_store_explicit(&weft_event_pending, is_pending, memory_order_relaxed);
    atomic_store_explicit(&weft_event_pending_in_wait, is_pending && !is_blocked, memory_order_relaxed);
}

/* What a callback raises is left to a later delivery: one that raises its own event must not keep this thread for ever. */
bool weft_event_begin(void)
{
    if (is_delivering)
        return false;
    is_delivering = true;
    calls_left = next - first;
    for (const weft_list_link *link = sinks.next; has_dropped && link != &sinks; link = link->next)
        calls_left += weft_container(link, const weft_event_sink, link)->dropped > 0;
    settle();
    return true;
}

bool weft_event_may_call(void) { return calls_left && calls_left--; }

void weft_event_end(void)
{
    is_delivering = false;
    settle();
}

void weft_event_block(bool value)
{
    is_blocked = value && (first != next || has_dropped);
    settle();
}

static void put(weft_event_sink *sink, uint64_t ns, const int64_t values[])
{
    if (next - first < CAPACITY) {
        weft_event_record *record = &queue[next++ % CAPACITY];
        *record = (weft_event_record){.sink = sink, .ns = ns};
        for (int i = 0; i < WEFT_EVENT_VALUES; i++)
            record->values[i] = values[i];
    } else if (sink->counts_dropped) {
        sink->dropped += sink->dropped < INT64_MAX;
        has_dropped = true;
    }
}

void weft_event_raise(enum weft_event type, const void *object, const int64_t values[WEFT_EVENT_VALUES])
{
    uint64_t ns;
    weft_event_lock();
    ns = weft_clock_ns(); /* under the lock: the queue is in the order of its times */
    for (weft_list_link *link = sinks.next; link != &sinks; link = link->next) {
        weft_event_sink *sink = weft_container(link, weft_event_sink, link);
        if (sink->type == type && sink->is_open && (!sink->object || sink->object == object))
            put(sink, ns, values);
    }
    settle();
    weft_event_unlock();
}

bool weft_event_open(void)
{
    if (!queue)
        queue = malloc(CAPACITY * sizeof *queue);
    return queue != NULL;
}

void weft_event_close(void)
{
    free(queue);
    queue = NULL;
    first = next = 0;
    has_dropped = is_blocked = false;
    settle();
}

void weft_event_update(void)
{
    uint32_t mask = 0;
    for (weft_list_link *link = sinks.next; link != &sinks; link = link->next) {
        const weft_event_sink *sink = weft_container(link, weft_event_sink, link);
        mask |= sink->is_open ? 1u << sink->type : 0;
    }
    atomic_store_explicit(&weft_event_mask, mask, memory_order_relaxed);
}

void weft_event_add(weft_event_sink *sink) { weft_list_append(&sinks, &sink->link); }

void weft_event_remove(weft_event_sink *sink)
{
    uint32_t to = first;
    for (uint32_t at = first; at != next; at++)
        if (queue[at % CAPACITY].sink != sink)
            queue[to++ % CAPACITY] = queue[at % CAPACITY];
    next = to;
    weft_list_remove(&sink->link);
    weft_event_update();
    settle();
}

const weft_event_record *weft_event_first(void) { return first != next ? &queue[first % CAPACITY] : NULL; }

void weft_event_pop(void)
{
    first++;
    is_blocked = false;
}

weft_event_sink *weft_event_dropped(void)
{
    for (weft_list_link *link = sinks.next; has_dropped && link != &sinks; link = link->next) {
        weft_event_sink *sink = weft_container(link, weft_event_sink, link);
        if (sink->dropped)
            return sink;
    }
    has_dropped = false;
    return NULL;
}
