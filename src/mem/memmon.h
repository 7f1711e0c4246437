/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon: who tells us that memory which was pinned is no longer what it was: unmapped, moved, thrown away, mapped anew. One per
 * process. Every piece of such news stands in one list of ranges that only grows (a ring of them); a registration cache reads on
 * from where it was. News is published before its effect can be seen by whoever could use the memory again:
 *     interposer  (libweft-memhooks.so, preloaded by mpirun) before the system call, in the thread that makes it. It cannot see one
 *                 that is made inline, so it only brings userfaultfd's news earlier, unless the knob pin_watch names it alone
 *     userfaultfd a helper reads the kernel's event; the unmapping call returns only after that. `busy` is raised before the read
 *                 and lowered after the range is published, so that a look-up cannot slip between
 * userfaultfd alone does not stop *another* thread from mapping the freed addresses before the event is queued. But the kernel
 * counts the unmappings under way from before they show until after their events were read, and says so to whoever asks
 * (weft_memmon_sync, one system call). While the process has more than one thread, a look-up therefore asks first and reads the
 * news then. A mapping that no watch covers is never cached.
 */
#ifndef WEFT_MEM_MEMMON_H
#define WEFT_MEM_MEMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

typedef struct weft_range { uint64_t start, end; } weft_range;

#define WEFT_INVAL_LOG_ROOM 1024

/* The list: a ticket (fetch_add on `next`) names a slot; the slot's turn is stored last. Readers never write. Never allocates. */
typedef struct weft_inval_log_slot {
    _Atomic uint64_t turn;      /* ticket + 1 when the range stands here */
    _Atomic uint64_t start, end;
} weft_inval_log_slot;
typedef struct weft_inval_log {
    _Alignas(WEFT_LINE) _Atomic uint64_t next;
    _Alignas(WEFT_LINE) _Atomic uint32_t busy; /* odd: events are known to exist and not yet published; one more each time */
    _Alignas(WEFT_LINE) weft_inval_log_slot slots[WEFT_INVAL_LOG_ROOM];
} weft_inval_log;

/* Set in a range's start: the pages were thrown away, the mapping stands. Ranges are whole pages otherwise. */
#define WEFT_INVAL_LOG_EMPTIED ((uint64_t)1)

/* Publishes [start, end). Any thread, also within malloc; async-signal-safe; never waits. */
void weft_inval_log_append(weft_inval_log *news, uint64_t start, uint64_t end);
/* Calls `each` for what came since *cursor and moves it on. Returns false when so much came that some is lost: everything may
 * have changed. Waits (spins) while busy and while a ticket that was drawn has no range yet. */
bool weft_inval_log_read(const weft_inval_log *news, uint64_t *cursor, void (*each)(void *arg, weft_range range), void *arg);
/* Is there anything at all? Two loads; the hot half of a look-up. `busy` first: if it is even and an event was read before, its range
 * was told before, and `next` shows it. The other way round both could happen between the two loads, and nothing would be found. */
static inline bool weft_inval_log_is_new(const weft_inval_log *news, uint64_t cursor)
{
    uint32_t busy = atomic_load_explicit(&news->busy, memory_order_acquire);
    return atomic_load_explicit(&news->next, memory_order_acquire) != cursor || (busy & 1);
}

typedef struct weft_memmon weft_memmon;

/* The process's watch, started at the first call (self-tests of what the knob pin_watch allows: some ms); never NULL: a watch
 * that covers nothing is one. Called at the first pin, not at start. */
weft_memmon *weft_memmon_get(void);
/* Both interposer and userfaultfd publish here. */
const weft_inval_log *weft_memmon_log(const weft_memmon *watch);
/* Will every change of [start, end) be told from now on? Registers the mappings that need it. false: do not cache. Stale entries
 * that overlap a mapping which was not registered before are published first. */
bool weft_memmon_track(weft_memmon *watch, uint64_t start, uint64_t end);
/* Waits until no unmapping is under way whose news could still be missing. Only where weft_memmon_needs_sync says so, and before the
 * news is read. false: it takes too long, so nothing that was kept can be trusted now. */
bool weft_memmon_sync(const weft_memmon *watch);
/* One load when the process has one thread or userfaultfd is not in force. */
bool weft_memmon_needs_sync(const weft_memmon *watch);
/* In a child after fork nothing is watched and nothing is pinned. */
void weft_memmon_forget(void);

/* What is in force and why the others are not, line by line, for weft-info and the log. Runs the self-tests. */
void weft_memmon_describe(void (*line)(void *arg, const char *text), void *arg);

#endif
