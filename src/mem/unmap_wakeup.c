/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unmap_wakeup: see unmap_wakeup.h. weft_unmap_wakeup_report() and _raise() run where memhooks' before_call() does: they call nothing of
 * libc.
 */
#include "mem/unmap_wakeup.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/macros.h"
#include "base/raw_thread.h"

#define GRANULE_SHIFT 16
#define GRANULES ((uint64_t)1 << 20)
#define SATURATED UINT16_MAX /* a count that stays: wakes needlessly */
#define WORDS 8

static _Atomic uint16_t counts[GRANULES]; /* registrations; only pages with counts use memory */
static struct {
    _Alignas(WEFT_LINE) _Atomic uint32_t word;
    _Atomic uint32_t users;
} wakeups[WORDS];
static _Atomic uint32_t next_word;

_Atomic uint32_t *weft_unmap_wakeup_open(void)
{
    uint32_t i = atomic_fetch_add_explicit(&next_word, 1, memory_order_relaxed) % WORDS;

    atomic_fetch_add_explicit(&wakeups[i].users, 1, memory_order_seq_cst);
    return &wakeups[i].word;
}

void weft_unmap_wakeup_close(_Atomic uint32_t *word)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (&wakeups[i].word == word)
            atomic_fetch_sub_explicit(&wakeups[i].users, 1, memory_order_relaxed);
}

WEFT_BARE void weft_unmap_wakeup_raise(_Atomic uint32_t *word)
{
    atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
    weft_raw_syscall(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0);
}

static void change(uint64_t granule, bool is_more)
{
    _Atomic uint16_t *count = &counts[granule % GRANULES];
    uint16_t now = atomic_load_explicit(count, memory_order_relaxed);

    while (now != SATURATED && !atomic_compare_exchange_weak_explicit(count, &now, (uint16_t)(is_more ? now + 1 : now - 1),
                                                                      memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void change_all(uint64_t start, uint64_t end, bool is_more)
{
    for (uint64_t at = start >> GRANULE_SHIFT; start < end && at <= (end - 1) >> GRANULE_SHIFT; at++)
        change(at, is_more);
}

void weft_unmap_wakeup_add(uint64_t start, uint64_t end)
{
    change_all(start, end, true);
    atomic_thread_fence(memory_order_seq_cst);
}

void weft_unmap_wakeup_remove(uint64_t start, uint64_t end) { change_all(start, end, false); }

static WEFT_BARE bool is_registered(uint64_t start, uint64_t end)
{
    uint64_t first = start >> GRANULE_SHIFT, last = (end - 1) >> GRANULE_SHIFT;

    for (uint64_t at = first; at <= last && at - first < GRANULES; at++)
        if (atomic_load_explicit(&counts[at % GRANULES], memory_order_relaxed))
            return true;
    return false;
}

WEFT_BARE void weft_unmap_wakeup_report(uint64_t start, uint64_t end)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (start >= end || !is_registered(start, end))
        return;
    for (uint32_t i = 0; i < WORDS; i++)
        if (atomic_load_explicit(&wakeups[i].users, memory_order_relaxed))
            weft_unmap_wakeup_raise(&wakeups[i].word);
}
