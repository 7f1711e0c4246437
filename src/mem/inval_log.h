/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inval_log: lock-free ring of ranges of addresses whose mapping changed. Monitor sources append; each registration cache reads from
 * its own cursor. The log stands in static memory of the library or of libweft-memhooks.so.
 */
#ifndef WEFT_MEM_INVAL_LOG_H
#define WEFT_MEM_INVAL_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "mem/ranges.h"

#define WEFT_INVAL_LOG_CAPACITY 1024

/* Ring of changed ranges. A ticket (fetch_add on `next`) selects a slot; the slot's turn is stored last. Readers never write. */
typedef struct weft_inval_log_slot {
    _Atomic uint64_t turn;      /* ticket + 1 once start and end are stored; bit 63: a writer is storing */
    _Atomic uint64_t start, end;
} weft_inval_log_slot;
typedef struct weft_inval_log {
    _Alignas(WEFT_LINE) _Atomic uint64_t next; /* next ticket */
    _Alignas(WEFT_LINE) _Atomic uint32_t busy; /* odd while the listener reads and publishes events; +1 at each change */
    _Alignas(WEFT_LINE) weft_inval_log_slot slots[WEFT_INVAL_LOG_CAPACITY];
} weft_inval_log;

/* Flag in a range's start: the pages were discarded, the mapping remains. Otherwise start and end are page-aligned. */
#define WEFT_INVAL_LOG_DISCARDED ((uint64_t)1)

/* Publishes [start, end). Any thread, also within malloc; async-signal-safe; never blocks or allocates. */
void weft_inval_log_append(weft_inval_log *log, uint64_t start, uint64_t end);
/* Calls `each` for the ranges since *cursor and advances it. False: ranges were lost (overrun), so any memory may have changed.
 * Spins, then sleeps, while busy is odd or a drawn ticket has no range yet. */
bool weft_inval_log_read(const weft_inval_log *log, uint64_t *cursor, void (*each)(void *arg, weft_range range), void *arg);
/* True if there is anything to read: two loads, on the fast path of a lookup. `busy` must be loaded first: if it is even, the ranges of
 * all events read so far are published and show in `next`. In the other order an event could be read and published between the loads. */
static inline bool weft_inval_log_is_new(const weft_inval_log *log, uint64_t cursor)
{
    uint32_t busy = atomic_load_explicit(&log->busy, memory_order_acquire);
    return atomic_load_explicit(&log->next, memory_order_acquire) != cursor || (busy & 1);
}

#endif
