/* SPDX-License-Identifier: BSD-3-Clause
 * timing: iteration count, samples, and minimum, median and maximum of a case.
 */
#ifndef WEFT_TOOLS_BENCH_TIMING_H
#define WEFT_TOOLS_BENCH_TIMING_H

#include "bench.h"

typedef struct bench_result
{
    double min, median, max; /* in the test's unit; min is the smallest number, not the best */
    long iterations;            /* per sample */
    int samples;
} bench_result;

/* Warms up, finds the iteration count, takes the samples. Collective over MPI_COMM_WORLD; *out is valid on rank 0. */
void bench_timing_run(bench_case *c, bench_result *out);

#endif
