/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch_ears: what the tests of the watch share: memory, what was told of it since a cursor, and the same program once more with the
 * interposer preloaded.
 */
#ifndef WEFT_TEST_WATCH_EARS_H
#define WEFT_TEST_WATCH_EARS_H

#include "mem/memmon_internal.h"

#define MIB ((size_t)1 << 20)

/* Counts, by weft_inval_log_read, what overlaps `wanted`. */
typedef struct overlap {
    weft_range wanted;
    int times, emptied;
} overlap;
void see(void *arg, weft_range range);

/* Of the process's watch. */
uint64_t now_cursor(void);
/* Was something told of it, and all of that as thrown away (or as gone)? */
bool is_told(uint64_t *cursor, const void *addr, size_t bytes, bool is_emptied);
bool is_covered(const void *addr, size_t bytes);
/* Mapped and written to. */
char *fresh(size_t bytes);

/* Prints the lines of weft_memmon_describe and counts them in an int. */
void say(void *arg, const char *text);

/* userfaultfd answers EPERM from now on, as under the filter of a container; /dev/userfaultfd too. */
bool refuse_userfaultfd(bool and_device);
/* Runs this program again with the library preloaded; WEFT_TEST_PRELOADED is `watch` there: a value of the knob pin_watch, or
 * "refused": auto, and the kernel refuses userfaultfd, or "device": the call is refused, the device is not. */
void run_again(const char *watch);

/* Runs what was added; the program's exit code. */
int run_tests(void);

#endif
