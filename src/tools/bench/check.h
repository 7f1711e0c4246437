/* SPDX-License-Identifier: BSD-3-Clause
 * check: data validation for --check. A message's bytes depend on sender, receiver, round and slot, which detects misrouted,
 * duplicated, truncated and overwritten messages.
 */
#ifndef WEFT_TOOLS_BENCH_CHECK_H
#define WEFT_TOOLS_BENCH_CHECK_H

#include "bench.h"

enum
{
    BENCH_GUARD = 64,   /* bytes behind a slot that must stay unwritten */
    BENCH_ROUNDS = 4    /* validated rounds before the timed ones, and again after them */
};

/* Seed of a message's pattern. */
uint64_t bench_check_seed(int from, int to, int round, long slot);

/* Writes the pattern of a seed. */
void bench_check_fill(unsigned char *at, size_t bytes, uint64_t seed);

/* Blanks a receive slot and its guard, so that missing bytes are detected. Capacity at `at`: bytes + BENCH_GUARD. */
void bench_check_blank(unsigned char *at, size_t bytes);

/* Verifies every byte of a message and of its guard; reports the first difference. */
void bench_check_message(bench_case *c, const unsigned char *at, size_t bytes, int from, int to, int round, long slot);

/* Verifies source, tag and length of a status. */
void bench_check_status(bench_case *c, const MPI_Status *status, int from, int tag, long bytes, int round);

/* Counts a failure; prints the first of a case on each rank to stderr. */
void bench_check_fail(bench_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Distance of validated slots in bytes, with guard. */
static inline size_t bench_check_stride(long bytes)
{
    return (size_t)((bytes + 63) / 64 * 64 + BENCH_GUARD);
}

#endif
