/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a case: arenas that rotate, and room for requests.
 */
#ifndef WEFT_TOOLS_BENCH_BUFFER_H
#define WEFT_TOOLS_BENCH_BUFFER_H

#include "bench.h"

/* Opens c->out (out_bytes a slot) and c->in (in_bytes a slot), page-aligned and touched. 0 or -1 (out of memory). */
int bench_buffer_open(bench_case *c, size_t out_bytes, size_t in_bytes);

/* Bytes that bench_buffer_open would take. */
size_t bench_buffer_memory(const bench_case *c, size_t out_bytes, size_t in_bytes);

/* Room for n requests in c->requests. 0 or -1. */
int bench_buffer_requests(bench_case *c, long n);

void bench_buffer_close(bench_case *c);

/* The next slot; the same one every time without --rotate. */
static inline unsigned char *bench_buffer_next(bench_arena *a)
{
    unsigned char *slot = a->base + a->at * a->slot_bytes;

    if (++a->at >= a->slots) {
        a->at = 0;
    }
    return slot;
}

#endif
