/* SPDX-License-Identifier: BSD-3-Clause
 * options: command line of weft-bench.
 */
#ifndef WEFT_TOOLS_BENCH_OPTIONS_H
#define WEFT_TOOLS_BENCH_OPTIONS_H

#include "bench.h"

#include <stdio.h>

/* Parses argv into o, starting from the defaults. 0, or -1 with the error in `why`. `all` ends with NULL. */
int bench_options_parse(bench_options *o, int argc, char **argv, const bench_test *const *all, char *why, size_t why_bytes);

/* Prints the usage text. */
void bench_options_help(FILE *to);

/* Prints the tests' names and help texts. */
void bench_options_list(FILE *to, const bench_test *const *all);

/* Fills in the sizes of test t in bytes: those of --sizes, else doubling from min_bytes to max_bytes. Returns their number. */
int bench_options_sizes(const bench_options *o, const bench_test *t, long sizes[BENCH_SIZES_MAX]);

#endif
