/* SPDX-License-Identifier: BSD-3-Clause
 * overlap: which part of a nonblocking operation is hidden behind 1 ms in which the program calls no MPI: Iallreduce (sum of doubles),
 * Ibcast, or Isend and Irecv of all pairs. The millisecond is computing, or (rows "... free") a sleep, which leaves the rank's CPU free.
 * Each iteration measures the operation alone, the millisecond alone, and both; overlap = (alone + millisecond - both) / the shorter of
 * the two, in percent; below zero: both together take longer than one after the other.
 */
#include "buffer.h"
#include "check.h"

#include <string.h>
#include <time.h>

enum
{
    TAG = 1,
    TRIALS = 20,
    COMPUTE_NS = 1000000
};

enum operation
{
    REDUCE,
    BCAST,
    EXCHANGE
};

static const char *const variants[] = {"reduce", "bcast", "send", "reduce free", "bcast free", "send free", NULL};

static enum operation operation_of(const bench_case *c)
{
    return (enum operation)(c->variant % 3);
}

static size_t memory(const bench_case *c)
{
    return bench_buffer_memory(c, (size_t)c->bytes + BENCH_GUARD, (size_t)c->bytes + BENCH_GUARD);
}

static long loops; /* of work() in COMPUTE_NS */

static void work(long n)
{
    volatile double sum = 0;

    for (long i = 0; i < n; i++) {
        sum = sum * 0.5 + 1;
    }
}

/* The fastest of some trials: what the loop takes when nothing else has the CPU. */
static void calibrate_work(void)
{
    double best = 1;

    for (int i = 0; i < TRIALS; i++) {
        double start = bench_seconds(), passed;
        work(100000);
        passed = bench_seconds() - start;
        best = passed < best ? passed : best;
    }
    loops = (long)(COMPUTE_NS * 1e-9 / best * 100000);
}

static void compute(const bench_case *c)
{
    struct timespec ms = {0, COMPUTE_NS};

    if (c->variant < 3) {
        work(loops);
    } else {
        nanosleep(&ms, NULL);
    }
}

static int open_overlap(bench_case *c)
{
    calibrate_work();
    if (bench_buffer_requests(c, 2)) {
        return -1;
    }
    return bench_buffer_open(c, (size_t)c->bytes + BENCH_GUARD, (size_t)c->bytes + BENCH_GUARD);
}

static void begin(bench_case *c)
{
    unsigned char *out = bench_buffer_next(&c->out), *in = bench_buffer_next(&c->in);
    int to = c->partner < 0 ? MPI_PROC_NULL : c->partner, n = (int)c->bytes;

    c->requests[0] = c->requests[1] = MPI_REQUEST_NULL;
    switch (operation_of(c)) {
    case REDUCE:
        MPI_Iallreduce(out, in, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, c->requests);
        break;
    case BCAST:
        MPI_Ibcast(out, n, MPI_BYTE, 0, MPI_COMM_WORLD, c->requests);
        break;
    default:
        MPI_Irecv(in, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &c->requests[0]);
        MPI_Isend(out, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &c->requests[1]);
    }
}

static double run_once(bench_case *c, bool operates, bool computes)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (operates) {
        begin(c);
    }
    if (computes) {
        compute(c);
    }
    if (operates) {
        MPI_Waitall(2, c->requests, MPI_STATUSES_IGNORE);
    }
    return MPI_Wtime() - start;
}

static double run_overlap(bench_case *c, long iterations)
{
    double start = MPI_Wtime(), local[3] = {0, 0, 0}, all[3], shorter;

    memset(c->out.base, 0, c->out.slot_bytes * c->out.slots); /* finite values */
    for (long i = 0; i < iterations; i++) {
        local[0] += run_once(c, true, false);
        local[1] += run_once(c, false, true);
        local[2] += run_once(c, true, true);
    }
    MPI_Allreduce(local, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    shorter = all[0] < all[1] ? all[0] : all[1];
    c->percent = 100 * (all[0] + all[1] - all[2]) / shorter;
    return MPI_Wtime() - start;
}

static void check_reduce(bench_case *c, int round)
{
    double *out = (double *)(void *)c->out.base, *in = (double *)(void *)c->in.base, ranks = (double)c->ranks * (c->ranks + 1) / 2;
    long n = c->bytes / (long)sizeof(double);

    for (long i = 0; i < n; i++) {
        out[i] = (double)(c->rank + 1) * (double)((i * 7 + round) % 1009 + 1);
    }
    begin(c);
    compute(c);
    MPI_Waitall(2, c->requests, MPI_STATUSES_IGNORE);
    for (long i = 0; i < n; i++) {
        if (in[i] != (double)((i * 7 + round) % 1009 + 1) * ranks) {
            bench_check_fail(c, "round %d: element %ld of %ld is %.17g", round, i, n, in[i]);
            break;
        }
    }
}

static void check_overlap(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;

    c->out.at = c->in.at = 0; /* the slot that begin() takes */
    if (operation_of(c) == REDUCE) {
        check_reduce(c, round);
        return;
    }
    bench_check_blank(c->in.base, n);
    bench_check_blank(c->out.base, n);
    if (operation_of(c) == BCAST) {
        if (!c->rank) {
            bench_check_fill(c->out.base, n, bench_check_seed(0, 0, round, 0));
        }
    } else if (c->partner >= 0) {
        bench_check_fill(c->out.base, n, bench_check_seed(c->rank, c->partner, round, 0));
    }
    begin(c);
    compute(c);
    MPI_Waitall(2, c->requests, MPI_STATUSES_IGNORE);
    if (operation_of(c) == BCAST) {
        bench_check_message(c, c->out.base, n, 0, 0, round, 0);
    } else if (c->partner >= 0) {
        bench_check_message(c, c->in.base, n, c->partner, c->rank, round, 0);
    }
}

const bench_test bench_overlap = {
    .name = "overlap", .help = "part of a nonblocking operation that 1 ms without calls of MPI hides; higher is better",
    .figure = BENCH_PERCENT, .min_bytes = 65536, .max_bytes = 4 << 20, .unit_bytes = sizeof(double), .variants = variants,
    .memory = memory, .open = open_overlap, .run = run_overlap, .check = check_overlap, .close = bench_buffer_close,
};
