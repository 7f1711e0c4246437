/* SPDX-License-Identifier: BSD-3-Clause
 * report: output of weft-bench: OSU-style tables or one JSON object.
 */
#ifndef WEFT_TOOLS_BENCH_REPORT_H
#define WEFT_TOOLS_BENCH_REPORT_H

#include "timing.h"

/* Called on rank 0 only. first: nothing was printed before at this level (for JSON's commas). */
void bench_report_open(const bench_options *o, int ranks);
void bench_report_test(const bench_options *o, const bench_test *t, int ranks, bool first);
void bench_report_row(const bench_case *c, const bench_result *r, int failures, bool first);
void bench_report_left_out(const bench_case *c, const char *why, bool first);
void bench_report_test_end(const bench_options *o);
/* no_memory: rows left out because memory ran out. */
void bench_report_close(const bench_options *o, int failures, int no_memory);

#endif
