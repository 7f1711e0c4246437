/* SPDX-License-Identifier: BSD-3-Clause
 * buffer: see buffer.h. Writes every page once, so that no test measures page faults.
 */
#include "buffer.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum
{
    PAGE = 4096
};

static size_t arena_slot(size_t bytes)
{
    return bytes ? (bytes + PAGE - 1) / PAGE * PAGE : PAGE;
}

static size_t arena_slots(const bench_case *c, size_t bytes)
{
    size_t rotate = (size_t)c->options->rotate_bytes;
    size_t slots = (rotate + arena_slot(bytes) - 1) / arena_slot(bytes);

    return slots ? slots : 1;
}

static int arena_open(bench_arena *a, const bench_case *c, size_t bytes)
{
    a->slot_bytes = arena_slot(bytes);
    a->slots = arena_slots(c, bytes);
    a->at = 0;
    a->base = aligned_alloc(PAGE, a->slot_bytes * a->slots);
    if (!a->base) {
        return -1;
    }
    memset(a->base, 0x11, a->slot_bytes * a->slots);
    return 0;
}

size_t bench_buffer_memory(const bench_case *c, size_t out_bytes, size_t in_bytes)
{
    return arena_slot(out_bytes) * arena_slots(c, out_bytes) + arena_slot(in_bytes) * arena_slots(c, in_bytes);
}

int bench_buffer_open(bench_case *c, size_t out_bytes, size_t in_bytes)
{
    if (arena_open(&c->out, c, out_bytes)) {
        return -1;
    }
    return arena_open(&c->in, c, in_bytes);
}

int bench_buffer_requests(bench_case *c, long n)
{
    c->requests = malloc((size_t)n * sizeof *c->requests);
    return c->requests ? 0 : -1;
}

int bench_buffer_validation(bench_case *c, int messages)
{
    size_t bytes = bench_check_stride(c->bytes) * (size_t)messages;

    if (!c->options->check) {
        return 0;
    }
    c->check_out = malloc(bytes);
    c->check_in = malloc(bytes);
    c->check_statuses = calloc((size_t)messages, sizeof *c->check_statuses);
    return c->check_out && c->check_in && c->check_statuses ? 0 : -1;
}

void bench_buffer_close(bench_case *c)
{
    free(c->check_out);
    free(c->check_in);
    free(c->check_statuses);
    free(c->out.base);
    free(c->in.base);
    free(c->requests);
    c->out.base = NULL;
    c->in.base = NULL;
    c->requests = NULL;
    c->check_out = NULL;
    c->check_in = NULL;
    c->check_statuses = NULL;
}
