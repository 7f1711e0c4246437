/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock: monotonic time. The library must not use wall-clock time for decisions. Any thread.
 */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC: comparable between processes of a host, not between hosts. */
static inline uint64_t weft_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The earlier of two deadlines; 0: no deadline. */
static inline uint64_t weft_clock_earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

#endif
