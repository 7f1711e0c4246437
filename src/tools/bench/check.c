/* SPDX-License-Identifier: BSD-3-Clause
 * check: see check.h. Patterns and verification for --check.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum
{
    BLANK = 0xEE
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

uint64_t bench_check_seed(int from, int to, int round, long slot)
{
    return mix((uint64_t)(from + 1) << 48 ^ (uint64_t)(to + 1) << 32 ^ (uint64_t)(round + 1) << 20 ^ (uint64_t)slot);
}

static void word(unsigned char out[8], uint64_t seed, size_t index)
{
    uint64_t w = mix(seed + index * 0x9e3779b97f4a7c15u);

    memcpy(out, &w, 8);
}

void bench_check_fill(unsigned char *at, size_t bytes, uint64_t seed)
{
    unsigned char w[8];

    for (size_t i = 0; i < bytes; i += 8) {
        word(w, seed, i / 8);
        memcpy(at + i, w, bytes - i < 8 ? bytes - i : 8);
    }
}

void bench_check_blank(unsigned char *at, size_t bytes)
{
    memset(at, BLANK, bytes + BENCH_GUARD);
}

void bench_check_fail(bench_case *c, const char *format, ...)
{
    char text[400];
    va_list args;

    if (c->failures++) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "weft-bench: WRONG: %s%s%s, %ld bytes, rank %d: %s\n", c->test->name, c->test->variants ? " " : "",
            c->test->variants ? c->test->variants[c->variant] : "", c->bytes, c->rank, text);
}

void bench_check_message(bench_case *c, const unsigned char *at, size_t bytes, int from, int to, int round, long slot)
{
    uint64_t seed = bench_check_seed(from, to, round, slot);
    size_t wrong = 0, first = 0;
    unsigned char w[8], expected = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0) {
            word(w, seed, i / 8);
        }
        if (at[i] != w[i % 8] && !wrong++) {
            first = i;
            expected = w[i % 8];
        }
    }
    if (wrong) {
        bench_check_fail(c, "round %d, message %ld from rank %d: byte %zu of %zu is 0x%02x, expected 0x%02x (%zu bytes differ)",
                         round, slot, from, first, bytes, at[first], expected, wrong);
    }
    for (size_t i = bytes; i < bytes + BENCH_GUARD; i++) {
        if (at[i] != BLANK) {
            bench_check_fail(c, "round %d, message %ld from rank %d: byte %zu behind the end of a buffer of %zu was overwritten",
                             round, slot, from, i - bytes, bytes);
            return;
        }
    }
}

void bench_check_status(bench_case *c, const MPI_Status *status, int from, int tag, long bytes, int round)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (status->MPI_SOURCE != from || status->MPI_TAG != tag || count != bytes) {
        bench_check_fail(c, "round %d: the status says source %d, tag %d, %d bytes; sent were source %d, tag %d, %ld bytes",
                         round, status->MPI_SOURCE, status->MPI_TAG, count, from, tag, bytes);
    }
}
