/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unmap_wakeup: wakes the helper threads of registration caches when memory with a registration changes, and for nothing else. Process-wide
 * counts say which granules of 64 KiB have registrations; granules that are 64 GiB apart share a count, which costs a needless wake-up.
 * Order (Dekker): a source of changes appends to the log, then loads the counts; a cache increments the counts of a registration, then
 * loads the log. So either the report wakes a helper, or the cache finds the report.
 */
#ifndef WEFT_MEM_UNMAP_WAKEUP_H
#define WEFT_MEM_UNMAP_WAKEUP_H

#include <stdatomic.h>
#include <stdint.h>

/* Gives a helper thread the word on which it sleeps (a private futex; several caches may share one). Never fails. */
_Atomic uint32_t *weft_unmap_wakeup_open(void);
void weft_unmap_wakeup_close(_Atomic uint32_t *word);
/* Increments the word and wakes the threads that sleep on it. Any thread; async-signal-safe. */
void weft_unmap_wakeup_raise(_Atomic uint32_t *word);

/* Counts a registration of [start, end), or no more. The caller looks into the log after it has added one. Any thread. */
void weft_unmap_wakeup_add(uint64_t start, uint64_t end);
void weft_unmap_wakeup_remove(uint64_t start, uint64_t end);
/* After [start, end) was appended to the log: wakes the helpers if a registration is there. Any thread, also within malloc;
 * async-signal-safe. */
void weft_unmap_wakeup_report(uint64_t start, uint64_t end);

#endif
