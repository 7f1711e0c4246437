/* SPDX-License-Identifier: BSD-3-Clause
 * The command line of weft-bench.
 */
#ifndef WEFT_TOOLS_BENCH_OPTIONS_H
#define WEFT_TOOLS_BENCH_OPTIONS_H

#include "bench.h"

#include <stdio.h>

/* Reads argv into o (defaults first). 0, or -1 with what is wrong in `why`. `all` ends with NULL. */
int bench_options_parse(bench_options *o, int argc, char **argv, const bench_test *const *all, char *why, size_t why_bytes);

void bench_options_help(FILE *to);

/* Test names with a sentence each. */
void bench_options_list(FILE *to, const bench_test *const *all);

/* The sizes of test t in bytes: those asked for, or the test's own, doubled from least to most. Returns how many. */
int bench_options_sizes(const bench_options *o, const bench_test *t, long sizes[BENCH_SIZES_MAX]);

#endif
