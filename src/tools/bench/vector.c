/* SPDX-License-Identifier: BSD-3-Clause
 * vector: strided data: windows of vectors of doubles, blocks and gaps of equal length, strided on both sides.
 */
#include "buffer.h"
#include "check.h"

#include <string.h>

enum
{
    TAG_DATA = 1,
    TAG_BACK = 2,
    VECTOR_WINDOW = 16, /* at most this many vectors in flight, as they are large */
    DOUBLE = sizeof(double)
};

static const char *const variants[] = {"8192x1", "8192x8", "1024x64", NULL};
static const int shapes[][2] = {{8192, 1}, {8192, 8}, {1024, 64}};

static size_t payload_bytes(const bench_case *c)
{
    return (size_t)shapes[c->variant][0] * (size_t)shapes[c->variant][1] * DOUBLE;
}

static size_t memory(const bench_case *c)
{
    size_t extent = 2 * payload_bytes(c) + BENCH_GUARD;

    return bench_buffer_memory(c, extent, extent);
}

static int window(const bench_case *c)
{
    return c->options->window < VECTOR_WINDOW ? (int)c->options->window : VECTOR_WINDOW;
}

static int vector_open(bench_case *c)
{
    const int *shape = shapes[c->variant];
    size_t extent = 2 * payload_bytes(c) + BENCH_GUARD;

    c->bytes = (long)payload_bytes(c);
    c->payload = (double)c->bytes * window(c) * (c->ranks / 2);
    MPI_Type_vector(shape[0], shape[1], 2 * shape[1], MPI_DOUBLE, &c->type);
    MPI_Type_commit(&c->type);
    if (bench_buffer_requests(c, window(c))) {
        return -1;
    }
    return bench_buffer_open(c, extent, extent);
}

static double vector_run(bench_case *c, long iterations)
{
    int n = window(c), to = c->partner;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        if (c->is_leader) {
            for (int w = 0; w < n; w++) {
                MPI_Isend(bench_buffer_next(&c->out), 1, c->type, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(n, c->requests, MPI_STATUSES_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int w = 0; w < n; w++) {
                MPI_Irecv(bench_buffer_next(&c->in), 1, c->type, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(n, c->requests, MPI_STATUSES_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

/* Verifies the blocks (the sender's pattern at the same offset) and the gaps (untouched). */
static void vector_verify(bench_case *c, const unsigned char *in, unsigned char *expected, int round)
{
    const int *shape = shapes[c->variant];
    size_t block = (size_t)shape[1] * DOUBLE, extent = 2 * payload_bytes(c);

    bench_check_fill(expected, extent, bench_check_seed(c->partner, c->rank, round, 0));
    for (size_t b = 0; b < (size_t)shape[0]; b++) {
        memset(expected + b * 2 * block + block, 0xEE, block);
    }
    memset(expected + extent, 0xEE, BENCH_GUARD);
    for (size_t i = 0; i < extent + BENCH_GUARD; i++) {
        if (in[i] != expected[i]) {
            bench_check_fail(c, "round %d: byte %zu (block %zu, %s) is 0x%02x, expected 0x%02x", round, i, i / (2 * block),
                             i % (2 * block) < block ? "inside" : "in the gap", in[i], expected[i]);
            return;
        }
    }
}

static void vector_check(bench_case *c, int round)
{
    size_t extent = 2 * payload_bytes(c);

    if (c->is_leader) {
        bench_check_fill(c->out.base, extent, bench_check_seed(c->rank, c->partner, round, 0));
        MPI_Send(c->out.base, 1, c->type, c->partner, TAG_DATA, MPI_COMM_WORLD);
        return;
    }
    bench_check_blank(c->in.base, extent);
    MPI_Recv(c->in.base, 1, c->type, c->partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    vector_verify(c, c->in.base, c->out.base, round);
}

static void vector_close(bench_case *c)
{
    MPI_Type_free(&c->type);
    bench_buffer_close(c);
}

const bench_test bench_vector = {
    .name = "vector", .help = "windows of vectors of doubles (blocks x length), strided at sender and receiver",
    .figure = BENCH_GB_PER_S,
    .pairs = true, .variants = variants,
    .memory = memory, .open = vector_open, .run = vector_run, .check = vector_check, .close = vector_close,
};
