/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_fixture: shared by the tests of memmon: memory, reports since a cursor, a second run of the same program with another monitor.
 */
#ifndef WEFT_TEST_UNIT_MEMMON_FIXTURE_H
#define WEFT_TEST_UNIT_MEMMON_FIXTURE_H

#include "mem/memmon_internal.h"

#define MIB ((size_t)1 << 20)

/* Counts entries read by weft_inval_log_read that overlap `wanted`. */
typedef struct overlap {
    weft_range wanted;
    int times, emptied;
} overlap;
void see(void *arg, weft_range range);

/* Of the process's memmon. */
uint64_t now_cursor(void);
/* True if it was reported, in all entries as discarded (or as gone). */
bool is_reported(uint64_t *cursor, const void *addr, size_t bytes, bool is_emptied);
bool is_covered(const void *addr, size_t bytes);
/* Mapped and written. */
char *fresh(size_t bytes);

/* Prints the lines of weft_memmon_describe and counts them in an int. */
void say(void *arg, const char *text);

/* userfaultfd returns EPERM from now on, as under the filter of a container; /dev/userfaultfd too. */
bool refuse_userfaultfd(bool and_device);
/* Runs this program again with WEFT_TEST_MONITOR and WEFT_REGCACHE_MONITOR set to `monitor`, a value of the knob; or "refused": auto, and
 * the kernel refuses userfaultfd; "device": the call is refused, the device is not; "strict-refused"; "no-code": memhooks, and the kernel
 * refuses to make memory executable; "allocator": memhooks. preload: a library to preload, or "". */
void run_again(const char *monitor, const char *preload);

/* Runs the added tests; returns the program's exit code. */
int run_tests(void);

#endif
