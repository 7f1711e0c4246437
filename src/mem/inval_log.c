/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inval_log: lock-free ring of changed ranges. Compiled into the library and into libweft-memhooks.so.
 * Writers may run inside malloc, in a signal handler or in a thread unknown to libc, so they never wait. If the slot's last
 * writer is still storing, or a later writer has used the slot, the writer advances `next` by a round: readers then find an overrun.
 * Invariant: a read that returns true has seen the range of every ticket since its cursor.
 */
#include "mem/inval_log.h"

#include <sched.h>
#include <time.h>

#include "base/raw_thread.h"

#define STORING ((uint64_t)1 << 63) /* flag in a turn: its writer is between its first and its last store */

WEFT_BARE void weft_inval_log_append(weft_inval_log *log, uint64_t start, uint64_t end)
{
    uint64_t ticket = atomic_fetch_add_explicit(&log->next, 1, memory_order_acq_rel);
    weft_inval_log_slot *slot = &log->slots[ticket % WEFT_INVAL_LOG_CAPACITY];
    uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);

    if ((turn & STORING) || turn > ticket ||
        !atomic_compare_exchange_strong_explicit(&slot->turn, &turn, STORING | (ticket + 1), memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        atomic_fetch_add_explicit(&log->next, WEFT_INVAL_LOG_CAPACITY, memory_order_acq_rel);
        return;
    }
    /* Release, pairs with read_slot(): a reader that loads them under the old turn then loads a changed turn. */
    atomic_store_explicit(&slot->start, start, memory_order_release);
    atomic_store_explicit(&slot->end, end, memory_order_release);
    atomic_store_explicit(&slot->turn, ticket + 1, memory_order_release);
}

/* Backs off for the n-th time in a row for a writer that is storing and may need this CPU. False: give up. */
static bool wait_a_little(unsigned n)
{
    if (n < 64)
        weft_cpu_relax();
    else if (n < 256)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); /* a real-time thread must leave the CPU to others */
    return n < 512;
}

/* Reads one slot. False: it was overwritten, or its writer was interrupted. */
static bool read_slot(const weft_inval_log *log, uint64_t ticket, weft_range *range)
{
    const weft_inval_log_slot *slot = &log->slots[ticket % WEFT_INVAL_LOG_CAPACITY];

    for (unsigned n = 0;; n++) {
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn == ticket + 1) {
            range->start = atomic_load_explicit(&slot->start, memory_order_acquire);
            range->end = atomic_load_explicit(&slot->end, memory_order_acquire);
            return atomic_load_explicit(&slot->turn, memory_order_relaxed) == turn;
        }
        if ((turn & ~STORING) > ticket + 1 || !wait_a_little(n) ||
            atomic_load_explicit(&log->next, memory_order_acquire) - ticket > WEFT_INVAL_LOG_CAPACITY)
            return false;
    }
}

bool weft_inval_log_read(const weft_inval_log *log, uint64_t *cursor, void (*each)(void *arg, weft_range range), void *arg)
{
    uint32_t busy = atomic_load_explicit(&log->busy, memory_order_acquire);

    /* Odd: the listener is reading events. Once `busy` changed, every event whose effect may be visible here is in the log. Waits
     * without limit: the listener makes no blocking system call meanwhile. */
    for (unsigned n = 0; (busy & 1) && atomic_load_explicit(&log->busy, memory_order_acquire) == busy; n++)
        wait_a_little(n);

    uint64_t next = atomic_load_explicit(&log->next, memory_order_acquire);
    while (*cursor != next) {
        weft_range range;
        if (next - *cursor > WEFT_INVAL_LOG_CAPACITY || !read_slot(log, *cursor, &range)) {
            *cursor = atomic_load_explicit(&log->next, memory_order_acquire);
            return false;
        }
        *cursor += 1;
        each(arg, range);
    }
    return true;
}
