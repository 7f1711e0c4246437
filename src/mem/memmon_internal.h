/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_internal: the monitor's state, for memmon.c and memmon_selftest.c only.
 */
#ifndef WEFT_MEM_MEMMON_INTERNAL_H
#define WEFT_MEM_MEMMON_INTERNAL_H

#include <pthread.h>

#include "mem/memhooks.h"
#include "mem/memmon.h"
#include "mem/memmon_uffd.h"
#include "mem/proc_maps.h"
#include "mem/ranges.h"

/* Capacity (ranges) of the table of tracked ranges; adjacent ones are merged. A full table is emptied and refilled on demand. */
#define WEFT_MEMMON_RANGES_MAX 4096

/* How a self-test changes a tracked mapping. */
enum weft_trial {
    WEFT_TRIAL_MUNMAP, WEFT_TRIAL_FIXED, WEFT_TRIAL_MREMAP, WEFT_TRIAL_MADVISE, WEFT_TRIAL_SYSCALL, /* libc's functions */
    WEFT_TRIAL_RAW, WEFT_TRIAL_RAW_MREMAP, WEFT_TRIAL_RAW_MADVISE,                                  /* inline system calls */
    WEFT_TRIAL_FREE, WEFT_TRIAL_TRIM,                                                               /* within malloc */
    WEFT_TRIAL_LAST
};
typedef struct weft_trials {
    uint32_t tried, seen; /* bits 1 << enum weft_trial; not tried: the allocator kept the memory, or has no such call */
} weft_trials;

struct weft_memmon {
    weft_inval_log *log;
    bool has_hooks;           /* libc is patched, and the self-test passed */
    _Atomic bool trusts_hooks; /* memhooks alone suffices to keep registrations: not with WEFT_REGCACHE_MONITOR=strict, nor once the
                               * program has closed the userfaultfd that saw the system calls which are not libc's */
    bool trusts_sysv;         /* SysV memory, too: another process that has it attached may discard it (MADV_REMOVE) unseen */
    bool has_uffd;            /* userfaultfd is in use */
    _Atomic bool is_lost;      /* the program closed its descriptor: nothing is tracked by it any more */
    _Atomic bool is_late;      /* the last sync timed out: the next does not wait */
    bool is_forgotten;         /* in a child after fork */
    const char *is_single;     /* __libc_single_threaded; NULL: libc has none */
    weft_uffd uffd;
    weft_trials uffd_trials, hooks_trials;
    char uffd_why[192], hooks_why[256]; /* why not in use */
    pthread_mutex_t lock;      /* guards the members below */
    int maps;                  /* fd of /proc/self/maps; -1: none */
    weft_fd_id maps_id;        /* of its file */
    uint64_t cursor;           /* position in the log up to which `tracked` is valid */
    weft_ranges tracked;       /* tracked ranges */
};

/* Self-tests of one source, while the other one is silent: change scratch memory and check that the log shows it. `tracked` must be
 * empty. */
void weft_memmon_selftest_uffd(weft_memmon *mon);
void weft_memmon_selftest_hooks(weft_memmon *mon);
/* Writes the names of these bits to text, comma-separated. */
void weft_memmon_trials_text(uint32_t trials, char *text, size_t capacity);

#endif
