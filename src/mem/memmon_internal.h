/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_internal: what a watch is made of, for memmon.c and its self-tests (memmon_selftest.c) only.
 */
#ifndef WEFT_MEM_MEMMON_INTERNAL_H
#define WEFT_MEM_MEMMON_INTERNAL_H

#include <pthread.h>

#include "mem/memhooks.h"
#include "mem/memmon_uffd.h"
#include "mem/proc_maps.h"
#include "mem/ranges.h"

/* Covered ranges that are remembered; touching ones are one. When it is full all are forgotten and found again as they are asked
 * for. */
#define WEFT_MEMMON_TEXT_BYTES 4096

/* What a self-test changes under a watched mapping. */
enum weft_trial {
    WEFT_TRIAL_MUNMAP, WEFT_TRIAL_FIXED, WEFT_TRIAL_MREMAP, WEFT_TRIAL_MADVISE, WEFT_TRIAL_SYSCALL, /* by libc's functions */
    WEFT_TRIAL_RAW, WEFT_TRIAL_RAW_MREMAP, WEFT_TRIAL_RAW_MADVISE,                                  /* past libc */
    WEFT_TRIAL_FREE, WEFT_TRIAL_TRIM,                                                               /* within malloc */
    WEFT_TRIAL_LAST
};
typedef struct weft_trials {
    uint32_t tried, seen; /* bits 1 << enum weft_trial; not tried: this allocator kept the memory, or has no such call */
} weft_trials;

struct weft_memmon {
    weft_inval_log *news;
    weft_memhooks *preload;     /* NULL: not loaded, or excluded */
    bool trusts_preload;       /* the user named it: it may cover what it saw. Else it only brings news earlier */
    bool has_fault;            /* userfaultfd is in force */
    bool is_forgotten;         /* a child after fork */
    const char *is_single;     /* libc's word that there is one thread; NULL: this libc has none */
    weft_uffd fault;
    weft_trials fault_trials, preload_trials;
    char fault_why[192], preload_why[192]; /* why not in force */
    pthread_mutex_t lock;      /* of what follows */
    int maps;
    uint64_t cursor;           /* the news that the table below has heeded */
    weft_ranges covered;
};

/* Each changes memory of its own and looks whether news of it came. The watch's table is not used yet. */
void weft_memmon_try_fault(weft_memmon *watch);
void weft_memmon_try_preload(weft_memmon *watch);
/* "munmap, mremap" of these bits. */
void weft_memmon_name_trials(uint32_t trials, char *text, size_t room);

#endif
