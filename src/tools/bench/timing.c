/* SPDX-License-Identifier: BSD-3-Clause
 * timing: see timing.h. Rank 0 decides by its clock and broadcasts the decision: iteration and sample counts are equal on all ranks.
 */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

double bench_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Seconds of one iteration, averaged over the measuring ranks. */
static double sample(bench_case *c, long iterations)
{
    bool active = !c->test->pairs || (c->partner >= 0 && c->is_leader);
    double local[2] = {0, active}, all[2] = {0, 0};

    MPI_Barrier(MPI_COMM_WORLD);
    if (!c->test->pairs || c->partner >= 0) {
        double s = c->test->run(c, iterations);
        local[0] = active ? s : 0;
    }
    MPI_Allreduce(local, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all[0] / all[1] / (double)iterations;
}

/* Finds the iterations for a sample of `want` seconds; its runs are also the warm-up. */
static long calibrate(bench_case *c, double want)
{
    long n = 1, next = 1;
    double start = bench_seconds();

    do {
        double one;
        n = next;
        one = sample(c, n);
        if (one * (double)n < want / 2 && bench_seconds() - start < 8 * want) {
            double fit = one > 0 ? want / one : 1e9;
            next = fit > 16.0 * (double)n ? 16 * n : fit < 2.0 * (double)n ? 2 * n : (long)fit;
        } else {
            double fit = one > 0 ? want / one : 1;
            n = fit < 1 ? 1 : fit > 1e9 ? 1000000000 : (long)fit;
            next = -n;
        }
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    } while (next > 0);
    return -next;
}

static double figure(const bench_case *c, double seconds)
{
    switch (c->test->figure) {
    case BENCH_GB_PER_S:
        return c->payload / seconds * 1e-9;
    case BENCH_MILLIONS_PER_S:
        return c->payload / seconds * 1e-6;
    case BENCH_PERCENT:
        return c->percent;
    default:
        return seconds * c->share * 1e6;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_timing_run(bench_case *c, bench_result *out)
{
    const bench_options *o = c->options;
    double figures[BENCH_SAMPLES_MAX], row = (double)o->row_ms * 1e-3, start;
    long n = o->iterations;
    int taken = 0, more = 1;

    if (!n) {
        n = calibrate(c, row / (double)o->samples);
    } else {
        sample(c, n / 10 + 1);
    }
    start = bench_seconds();
    while (more) {
        figures[taken++] = figure(c, sample(c, n));
        /* On oversubscribed CPUs a sample takes far longer than its figure: at least three samples, then row_ms limits too. */
        more = taken < o->samples && (taken < 3 || o->iterations || bench_seconds() - start < 2 * row);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    qsort(figures, (size_t)taken, sizeof figures[0], ascending);
    out->min = figures[0];
    out->max = figures[taken - 1];
    out->median = taken % 2 ? figures[taken / 2] : (figures[taken / 2 - 1] + figures[taken / 2]) / 2;
    out->iterations = n;
    out->samples = taken;
}
