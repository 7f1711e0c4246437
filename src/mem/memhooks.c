/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memhooks: see memhooks.h. before_call() runs in any thread, anywhere in libc (also with malloc's lock held), in signal handlers, in a
 * child after fork or vfork: it loads, appends to the log, at most asks the kernel for the heap's end or to wake a helper thread
 * (unmap_wakeup), and calls nothing of libc.
 *
 * Order. A range is watched while the program has passed it to MPI, before a registration of it is kept. The program may change its
 * mapping only after that operation has ended, so before_call() sees it watched, and the log has the range before the kernel changes
 * anything. Whoever uses the address afterwards learned of that from the kernel (a mapping that returned it) or from the program, so a
 * look-up for the new use, in any thread, reads the log after the append, and drops the registration. Hence no question to the kernel is
 * needed, however many threads there are. A report of a change that the kernel then refuses does no harm.
 *
 * Case by case:
 *     munmap, remap_file_pages   the range
 *     mmap with MAP_FIXED        the range that is replaced. Without it, and with MAP_FIXED_NOREPLACE, nothing is
 *     mremap                     the target, if it is fixed; the old range if it may move, else what is cut off its end
 *     madvise                    advice that discards pages: the mapping stays, the pages do not. mprotect keeps the pages
 *     brk                        from the new end to the old one
 *     shmdt, shmat(SHM_REMAP)    all from the address on: the length is not given. Both are rare
 *     process_madvise            all, if it discards: its vectors may lie in memory that cannot be read
 */
#include "mem/memhooks.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/raw_thread.h"
#include "base/status.h"
#include "mem/syscall_patch.h"
#include "mem/unmap_wakeup.h"

/* Not in all headers. */
#define DONTNEED_LOCKED 24 /* MADV_DONTNEED_LOCKED, since Linux 5.18 */
#define GUARD_INSTALL 102  /* MADV_GUARD_INSTALL, since 6.13 */
#define DONTUNMAP 4        /* MREMAP_DONTUNMAP, since 5.7 */
#define PROCESS_MADVISE 440 /* a system call that has the same number everywhere, since 5.10 */

static _Atomic(weft_inval_log *) log_in_use;
static uint64_t page_mask; /* bytes of a page - 1; set before the first hook */

/* -- what is watched: a bit for each granule; granules that are 64 GiB apart share one -- */

#define GRANULE_SHIFT 16
#define GRANULES ((uint64_t)1 << 20)
static _Atomic uint64_t watched[GRANULES / 64];

/* The granules from *at to `last` that share a word: the word's index and their bits; advances *at behind them. False: none is left. */
static inline bool next_word(uint64_t *at, uint64_t last, uint64_t *word, uint64_t *bits)
{
    uint64_t first = *at, stop = last < (first | 63) ? last : first | 63;

    if (first > last)
        return false;
    *word = first / 64 % (GRANULES / 64);
    *bits = UINT64_MAX >> (63 - (stop - first)) << first % 64;
    *at = stop + 1;
    return true;
}

void weft_memhooks_watch(uint64_t start, uint64_t end)
{
    uint64_t at = start >> GRANULE_SHIFT, last = (end - 1) >> GRANULE_SHIFT, word, bits;

    if (start >= end)
        return;
    if (last - at >= GRANULES)
        last = at + GRANULES - 1;
    while (next_word(&at, last, &word, &bits))
        atomic_fetch_or_explicit(&watched[word], bits, memory_order_seq_cst);
}

static WEFT_BARE bool is_watched(uint64_t start, uint64_t end)
{
    uint64_t at = start >> GRANULE_SHIFT, last = (end - 1) >> GRANULE_SHIFT, word, bits;

    if (last - at >= GRANULES)
        return true;
    while (next_word(&at, last, &word, &bits))
        if (atomic_load_explicit(&watched[word], memory_order_acquire) & bits)
            return true;
    return false;
}

/* -- reports -- */

static WEFT_BARE void report(uint64_t start, uint64_t end, uint64_t flag)
{
    weft_inval_log *log = atomic_load_explicit(&log_in_use, memory_order_acquire);

    if (!log || start >= end || !is_watched(start, end))
        return;
    weft_inval_log_append(log, start | flag, end);
    weft_unmap_wakeup_report(start, end);
}

/* Whole pages; up to the end of the address space if the end wraps around. */
static WEFT_BARE void report_pages(long addr, long bytes, uint64_t flag)
{
    uint64_t first = (uint64_t)addr, start = first & ~page_mask, end = (first + (uint64_t)bytes + page_mask) & ~page_mask;

    if (bytes)
        report(start, end < start || (uint64_t)bytes > UINT64_MAX - first ? UINT64_MAX : end, flag);
}

static WEFT_BARE void before_mremap(const long *a)
{
    uint64_t old = (uint64_t)a[0], old_bytes = (uint64_t)a[1], new_bytes = (uint64_t)a[2];
    bool is_fixed = a[3] & MREMAP_FIXED, may_move = is_fixed || ((a[3] & MREMAP_MAYMOVE) && (new_bytes > old_bytes || (a[3] & DONTUNMAP)));

    if (is_fixed)
        report_pages(a[4], a[2], 0);
    if (may_move)
        report_pages(a[0], a[1], 0);
    else if (new_bytes < old_bytes)
        report((old + new_bytes + page_mask) & ~page_mask, (old + old_bytes + page_mask) & ~page_mask, 0);
}

static bool is_discarding(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE || advice == DONTNEED_LOCKED ||
           advice == GUARD_INSTALL;
}

static WEFT_BARE void before_call(long number, const long *a)
{
    switch (number) {
    case SYS_munmap:
    case SYS_remap_file_pages:
        report_pages(a[0], a[1], 0);
        return;
    case SYS_mmap:
        if (a[3] & MAP_FIXED)
            report_pages(a[0], a[1], 0);
        return;
    case SYS_mremap:
        before_mremap(a);
        return;
    case SYS_madvise:
        if (is_discarding((int)a[2]))
            report_pages(a[0], a[1], WEFT_INVAL_LOG_DISCARDED);
        return;
    case SYS_brk:
        if (a[0])
            report(((uint64_t)a[0] + page_mask) & ~page_mask, (uint64_t)weft_raw_syscall(SYS_brk, 0, 0, 0, 0), 0);
        return;
    case SYS_shmat:
        if ((a[2] & SHM_REMAP) && a[1])
            report((uint64_t)a[1] & ~page_mask, UINT64_MAX, 0);
        return;
    case SYS_shmdt:
        report((uint64_t)a[0] & ~page_mask, UINT64_MAX, 0);
        return;
    case PROCESS_MADVISE:
        if (is_discarding((int)a[3]))
            report(0, UINT64_MAX, 0);
        return;
    default:
        return;
    }
}

int weft_memhooks_install(char *why, size_t capacity)
{
    /* The last two are not in every libc. */
    static const long numbers[] = {SYS_munmap, SYS_mmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_shmat, SYS_shmdt,
                                   SYS_remap_file_pages, PROCESS_MADVISE};

    if (WEFT_IS_SANITIZED) {
        snprintf(why, capacity, "not in a build with a sanitizer");
        return WEFT_E_UNSUPPORTED;
    }
    page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    return weft_syscall_patch(numbers, (int)weft_count(numbers), (int)weft_count(numbers) - 2, before_call, why, capacity);
}

void weft_memhooks_report_to(weft_inval_log *log) { atomic_store_explicit(&log_in_use, log, memory_order_release); }
