/* SPDX-License-Identifier: BSD-3-Clause
 * coll: tests of all ranks: barrier, allreduce (sum of doubles), bcast, alltoall (bytes to each rank).
 * The root of bcast rotates, so that each call depends on the previous one: with a fixed root calls would be pipelined.
 */
#include "buffer.h"
#include "check.h"

#include <string.h>
#include <time.h>

static size_t memory_none(const bench_case *c)
{
    (void)c;
    return 0;
}

static size_t memory_one(const bench_case *c)
{
    return bench_buffer_memory(c, (size_t)c->bytes + BENCH_GUARD, (size_t)c->bytes + BENCH_GUARD);
}

static size_t memory_all(const bench_case *c)
{
    size_t bytes = bench_check_stride(c->bytes) * (size_t)c->ranks;

    return bench_buffer_memory(c, bytes, bytes);
}

static int open_none(bench_case *c)
{
    (void)c;
    return 0;
}

static int open_one(bench_case *c)
{
    return bench_buffer_open(c, (size_t)c->bytes + BENCH_GUARD, (size_t)c->bytes + BENCH_GUARD);
}

static int open_all(bench_case *c)
{
    size_t bytes = bench_check_stride(c->bytes) * (size_t)c->ranks;

    return bench_buffer_open(c, bytes, bytes);
}

static double run_barrier(bench_case *c, long iterations)
{
    double start = MPI_Wtime();

    (void)c;
    for (long i = 0; i < iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

/* One rank, another each round, enters late; no rank may leave earlier. Times are compared on one host only (no common clock). */
static void check_barrier(bench_case *c, int round)
{
    char local[MPI_MAX_PROCESSOR_NAME] = "", first[MPI_MAX_PROCESSOR_NAME] = "";
    struct timespec nap = {0, 2000000};
    double times[2], max[2];
    int n = 0, elsewhere, anywhere = 0;

    MPI_Get_processor_name(local, &n);
    memcpy(first, local, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    elsewhere = strcmp(first, local) != 0;
    MPI_Allreduce(&elsewhere, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (round % c->ranks == c->rank) {
        nanosleep(&nap, NULL);
    }
    times[0] = bench_seconds();
    MPI_Barrier(MPI_COMM_WORLD);
    times[1] = -bench_seconds();
    MPI_Allreduce(times, max, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!anywhere && -max[1] < max[0]) {
        bench_check_fail(c, "round %d: a rank left the barrier %.1f us before the last one entered", round,
                         (max[0] + max[1]) * 1e6);
    }
}

static double run_allreduce(bench_case *c, long iterations)
{
    int n = (int)(c->bytes / (long)sizeof(double));
    double start;

    memset(c->out.base, 0, c->out.slot_bytes * c->out.slots); /* finite values in every round */
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        MPI_Allreduce(bench_buffer_next(&c->out), bench_buffer_next(&c->in), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

/* Integers, so that the sum is exact in any order. */
static double term(int rank, int round, long i)
{
    return (double)(rank + 1) * (double)((i * 7 + round) % 1009 + 1);
}

static void check_allreduce(bench_case *c, int round)
{
    long n = c->bytes / (long)sizeof(double);
    double *out = (double *)(void *)c->out.base, *in = (double *)(void *)c->in.base;
    double ranks = (double)c->ranks * (c->ranks + 1) / 2;

    for (long i = 0; i < n; i++) {
        out[i] = term(c->rank, round, i);
    }
    bench_check_blank(c->in.base, (size_t)c->bytes);
    MPI_Allreduce(out, in, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < n; i++) {
        if (in[i] != term(0, round, i) * ranks) {
            bench_check_fail(c, "round %d: element %ld of %ld is %.17g, expected %.17g", round, i, n, in[i],
                             term(0, round, i) * ranks);
            break;
        }
        if (out[i] != term(c->rank, round, i)) {
            bench_check_fail(c, "round %d: element %ld of the send buffer was changed", round, i);
            break;
        }
    }
    for (size_t i = 0; i < BENCH_GUARD; i++) {
        if (c->in.base[(size_t)c->bytes + i] != 0xEE) {
            bench_check_fail(c, "round %d: byte %zu behind the result was overwritten", round, i);
            break;
        }
    }
}

static double run_bcast(bench_case *c, long iterations)
{
    int n = (int)c->bytes, root = 0;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        MPI_Bcast(bench_buffer_next(&c->out), n, MPI_BYTE, root, MPI_COMM_WORLD);
        root = root + 1 == c->ranks ? 0 : root + 1;
    }
    return MPI_Wtime() - start;
}

static void check_bcast(bench_case *c, int round)
{
    int root = round % c->ranks;

    bench_check_blank(c->out.base, (size_t)c->bytes);
    if (c->rank == root) {
        bench_check_fill(c->out.base, (size_t)c->bytes, bench_check_seed(root, 0, round, 0));
    }
    MPI_Bcast(c->out.base, (int)c->bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    bench_check_message(c, c->out.base, (size_t)c->bytes, root, 0, round, 0);
}

static double run_alltoall(bench_case *c, long iterations)
{
    int n = (int)c->bytes;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        MPI_Alltoall(bench_buffer_next(&c->out), n, MPI_BYTE, bench_buffer_next(&c->in), n, MPI_BYTE, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

static void check_alltoall(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;

    for (int r = 0; r < c->ranks; r++) {
        bench_check_fill(c->out.base + (size_t)r * n, n, bench_check_seed(c->rank, r, round, 0));
    }
    bench_check_blank(c->in.base, n * (size_t)c->ranks);
    MPI_Alltoall(c->out.base, (int)n, MPI_BYTE, c->in.base, (int)n, MPI_BYTE, MPI_COMM_WORLD);
    /* From the last to the first: a verified block is blanked and becomes the guard of the one before it. */
    for (int r = c->ranks - 1; r >= 0; r--) {
        bench_check_message(c, c->in.base + (size_t)r * n, n, r, c->rank, round, 0);
        bench_check_blank(c->in.base + (size_t)r * n, n);
    }
}

const bench_test bench_barrier = {
    .name = "barrier", .help = "MPI_Barrier",
    .figure = BENCH_MICROSECONDS,
    .memory = memory_none, .open = open_none, .run = run_barrier, .check = check_barrier, .close = bench_buffer_close,
};

const bench_test bench_allreduce = {
    .name = "allreduce", .help = "MPI_Allreduce, sum of doubles",
    .figure = BENCH_MICROSECONDS,
    .min_bytes = 8, .max_bytes = 1 << 20, .unit_bytes = sizeof(double),
    .memory = memory_one, .open = open_one, .run = run_allreduce, .check = check_allreduce, .close = bench_buffer_close,
};

const bench_test bench_bcast = {
    .name = "bcast", .help = "MPI_Bcast, the root rotates over all ranks",
    .figure = BENCH_MICROSECONDS,
    .min_bytes = 1, .max_bytes = 1 << 20, .unit_bytes = 1, .empty = true,
    .memory = memory_one, .open = open_one, .run = run_bcast, .check = check_bcast, .close = bench_buffer_close,
};

const bench_test bench_alltoall = {
    .name = "alltoall", .help = "MPI_Alltoall; the size is that of one block",
    .figure = BENCH_MICROSECONDS,
    .min_bytes = 1, .max_bytes = 1 << 20, .unit_bytes = 1, .empty = true,
    .memory = memory_all, .open = open_all, .run = run_alltoall, .check = check_alltoall, .close = bench_buffer_close,
};
