/* SPDX-License-Identifier: BSD-3-Clause
 * buffer: memory of a case: rotating arenas and the array of requests.
 */
#ifndef WEFT_TOOLS_BENCH_BUFFER_H
#define WEFT_TOOLS_BENCH_BUFFER_H

#include "bench.h"

/* Allocates c->out and c->in with slots of out_bytes and in_bytes, page-aligned, every page written. 0, or -1 out of memory. */
int bench_buffer_open(bench_case *c, size_t out_bytes, size_t in_bytes);

/* Bytes that bench_buffer_open() would allocate. */
size_t bench_buffer_memory(const bench_case *c, size_t out_bytes, size_t in_bytes);

/* Allocates c->requests for n requests. 0, or -1 out of memory. */
int bench_buffer_requests(bench_case *c, long n);

/* With --check, allocates c->check_out, c->check_in for `messages` of c->bytes with guards, and c->check_statuses. 0, or -1 out of memory.
 * Called in open(): main.c reduces its result over all ranks, so no rank waits for messages of one that has no memory. */
int bench_buffer_validation(bench_case *c, int messages);

/* Frees all of the above. */
void bench_buffer_close(bench_case *c);

/* Returns the next slot; always the same one without --rotate. */
static inline unsigned char *bench_buffer_next(bench_arena *a)
{
    unsigned char *slot = a->base + a->at * a->slot_bytes;

    if (++a->at >= a->slots) {
        a->at = 0;
    }
    return slot;
}

#endif
