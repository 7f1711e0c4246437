/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_selftest: checks that a monitor source reports the changes it should, on scratch memory. Called once by memmon, at the first
 * registration. A seccomp filter, another allocator or a library that intercepts munmap may each disable a source silently.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_thread.h"
#include "mem/memmon_internal.h"

#define TRIAL_BYTES ((size_t)64 << 10)
#define FREE_BYTES ((size_t)64 << 20)  /* above any mmap threshold of glibc */
#define TRIM_BYTES ((size_t)100 << 10) /* below it; malloc_trim can return a whole page of it */
#define TRIM_HEAP ((size_t)4 << 20)    /* largest heap tested: malloc_trim walks all of it */

typedef struct trial_range {
    weft_range wanted;
    bool is_logged;
} trial_range;

static void on_range(void *arg, weft_range range)
{
    trial_range *h = arg;
    if ((range.start & ~WEFT_INVAL_LOG_DISCARDED) < h->wanted.end && range.end > h->wanted.start)
        h->is_logged = true;
}

static bool is_in_log(weft_memmon *mon, uint64_t *cursor, uint64_t start, uint64_t end)
{
    trial_range h = {{start, end}, false};
    bool is_whole = weft_inval_log_read(mon->log, cursor, on_range, &h);
    return h.is_logged || !is_whole; /* after an overrun readers drop everything, this range too */
}

/* Inline system call: only the kernel sees it. */
static long raw(long number, const void *p, long a, long b, long c, const void *d)
{
    return weft_raw_syscall6(number, (long)p, a, b, c, (long)d, 0);
}
static void raw_unmap(const void *p) { raw(SYS_munmap, p, TRIAL_BYTES, 0, 0, NULL); }

/* True: the mapping still exists. */
static bool change(enum weft_trial trial, char *p)
{
    switch (trial) {
    case WEFT_TRIAL_MUNMAP:
        munmap(p, TRIAL_BYTES);
        return false;
    case WEFT_TRIAL_SYSCALL:
        syscall(SYS_munmap, p, TRIAL_BYTES);
        return false;
    case WEFT_TRIAL_FIXED:
        (void)!mmap(p, TRIAL_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        return true;
    case WEFT_TRIAL_MREMAP:
    case WEFT_TRIAL_RAW_MREMAP: {
        char *to = mmap(NULL, TRIAL_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
        if (to == MAP_FAILED)
            return true;
        if (trial == WEFT_TRIAL_MREMAP)
            (void)!mremap(p, TRIAL_BYTES, TRIAL_BYTES, flags, to);
        else
            raw(SYS_mremap, p, TRIAL_BYTES, TRIAL_BYTES, flags, to);
        raw_unmap(to);
        return false;
    }
    case WEFT_TRIAL_MADVISE:
        madvise(p, TRIAL_BYTES, MADV_DONTNEED);
        return true;
    case WEFT_TRIAL_RAW_MADVISE:
        raw(SYS_madvise, p, TRIAL_BYTES, MADV_DONTNEED, 0, NULL);
        return true;
    default:
        raw_unmap(p);
        return false;
    }
}

/* The source under test: userfaultfd, if `trials` are its own, or memhooks. The whole mapping: the kernel may have merged the test's with
 * a neighbour. */
static bool watch_mapping(weft_memmon *mon, uint64_t addr, const weft_trials *trials)
{
    weft_mapping mapping;

    if (!weft_proc_maps_find(mon->maps, addr, &mapping))
        return false;
    if (trials == &mon->uffd_trials)
        return weft_uffd_register(&mon->uffd, mapping.start, mapping.end);
    weft_memhooks_watch(mapping.start, mapping.end);
    return true;
}

/* One trial on a new mapping. */
static void try_mapping(weft_memmon *mon, enum weft_trial trial, weft_trials *trials)
{
    char *p = mmap(NULL, TRIAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t start = (uint64_t)(uintptr_t)p, cursor;

    if (p == MAP_FAILED)
        return;
    memset(p, 1, 4096);
    trials->tried |= 1u << trial;
    if (!watch_mapping(mon, start, trials)) {
        raw_unmap(p);
        return;
    }
    cursor = atomic_load(&mon->log->next);
    bool is_there = change(trial, p);
    if (is_in_log(mon, &cursor, start, start + TRIAL_BYTES))
        trials->seen |= 1u << trial;
    if (is_there) /* after the check: this unmap would be reported too */
        munmap(p, TRIAL_BYTES);
}

static void try_free(weft_memmon *mon, weft_trials *trials)
{
    weft_mapping after;
    char *volatile block = malloc(FREE_BYTES);
    uint64_t inside = (uint64_t)(uintptr_t)block + FREE_BYTES / 2, cursor;

    if (!block || !watch_mapping(mon, inside, trials)) {
        free(block);
        return;
    }
    cursor = atomic_load(&mon->log->next);
    free(block);
    if (weft_proc_maps_find(mon->maps, inside, &after))
        return; /* another allocator keeps the mapping */
    trials->tried |= 1u << WEFT_TRIAL_FREE;
    if (is_in_log(mon, &cursor, inside, inside + 1))
        trials->seen |= 1u << WEFT_TRIAL_FREE;
}

static void try_trim(weft_memmon *mon, weft_trials *trials)
{
    weft_mapping heap;
    uint64_t top = (uint64_t)(uintptr_t)sbrk(0), cursor;

    if (!mon->is_single || !*mon->is_single)
        return; /* other threads may move the heap's end */
    if (!weft_proc_maps_find(mon->maps, top - 1, &heap) || heap.end - heap.start > TRIM_HEAP)
        return;
    void *volatile block = malloc(TRIM_BYTES);
    top = (uint64_t)(uintptr_t)sbrk(0);
    if (!block || !watch_mapping(mon, top - 1, trials)) {
        free(block);
        return;
    }
    cursor = atomic_load(&mon->log->next);
    free(block);
    malloc_trim(0);
    uint64_t left = (uint64_t)(uintptr_t)sbrk(0);
    if (left >= top)
        return; /* the top of the heap was not free, or the allocator is not glibc's */
    trials->tried |= 1u << WEFT_TRIAL_TRIM;
    if (is_in_log(mon, &cursor, left, top))
        trials->seen |= 1u << WEFT_TRIAL_TRIM;
}

static void try_all(weft_memmon *mon, weft_trials *trials)
{
    for (enum weft_trial trial = WEFT_TRIAL_MUNMAP; trial <= WEFT_TRIAL_RAW_MADVISE; trial++)
        try_mapping(mon, trial, trials);
    try_free(mon, trials);
    try_trim(mon, trials);
}

void weft_memmon_selftest_uffd(weft_memmon *mon)
{
    weft_memhooks_report_to(NULL);
    try_all(mon, &mon->uffd_trials);
    weft_memhooks_report_to(mon->has_hooks ? mon->log : NULL);
}

void weft_memmon_selftest_hooks(weft_memmon *mon)
{
    weft_memhooks_report_to(mon->log);
    try_all(mon, &mon->hooks_trials);
}

void weft_memmon_trials_text(uint32_t trials, char *text, size_t capacity)
{
    static const char *const names[WEFT_TRIAL_LAST] = {
        "munmap", "mmap over it", "mremap", "madvise", "syscall(munmap)", "inline munmap", "inline mremap", "inline madvise",
        "free of a large block", "malloc_trim"};
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < WEFT_TRIAL_LAST && used < capacity; i++)
        if (trials >> i & 1)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", names[i]);
}
