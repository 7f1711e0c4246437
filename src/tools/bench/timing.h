/* SPDX-License-Identifier: BSD-3-Clause
 * Samples of a case: how many iterations, how many samples, and least, median, most out of them.
 */
#ifndef WEFT_TOOLS_BENCH_TIMING_H
#define WEFT_TOOLS_BENCH_TIMING_H

#include "bench.h"

typedef struct bench_result
{
    double min, median, max; /* of the figure's unit; least is the smallest number, not the best */
    long iterations;            /* of each sample */
    int samples;
} bench_result;

/* Warms up, finds the iteration count, takes the samples. Collective over the world; the result is valid on rank 0. */
void bench_timing_run(bench_case *c, bench_result *out);

#endif
