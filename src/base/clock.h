/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock: monotonic time. Nothing in the library decides by wall-clock time.
 */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some fixed point of this machine's boot; about 20 ns a call. */
static inline uint64_t weft_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The earlier of two deadlines; 0 is none. */
static inline uint64_t weft_clock_earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

#endif
