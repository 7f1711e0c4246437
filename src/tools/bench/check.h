/* SPDX-License-Identifier: BSD-3-Clause
 * Patterns for --check: a message's bytes follow from who sends it to whom, in which round and slot, so that a message that
 * went astray, came twice, came short or was overwritten cannot look right.
 */
#ifndef WEFT_TOOLS_BENCH_CHECK_H
#define WEFT_TOOLS_BENCH_CHECK_H

#include "bench.h"

enum
{
    BENCH_GUARD = 64,   /* bytes behind a slot that nobody may write */
    BENCH_ROUNDS = 4    /* validated rounds before the timed ones, and again after them */
};

uint64_t bench_check_seed(int from, int to, int round, long slot);

void bench_check_fill(unsigned char *at, size_t bytes, uint64_t seed);

/* Marks a receive slot and its guard, so that a byte that never arrives is seen. Room: bytes + BENCH_GUARD. */
void bench_check_blank(unsigned char *at, size_t bytes);

/* Looks at every byte of a message and of its guard; tells what differs and where. */
void bench_check_message(bench_case *c, const unsigned char *at, size_t bytes, int from, int to, int round, long slot);

/* Looks at source, tag and length of a status. */
void bench_check_status(bench_case *c, const MPI_Status *status, int from, int tag, long bytes, int round);

/* Counts a failure; the first of a case on each rank is told on stderr. */
void bench_check_fail(bench_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes between validated slots. */
static inline size_t bench_check_stride(long bytes)
{
    return (size_t)((bytes + 63) / 64 * 64 + BENCH_GUARD);
}

#endif
