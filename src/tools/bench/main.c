/* SPDX-License-Identifier: BSD-3-Clause
 * main: weft-bench, a benchmark of any MPI by its public API. Table of tests, loop over tests, variants and sizes.
 * Invariant: all ranks run the same path here; a condition of one rank (out of memory, wrong data) is reduced over all before it is
 * used.
 */
#include "buffer.h"
#include "check.h"
#include "options.h"
#include "report.h"

#include <stdio.h>

static const bench_test *const plain_tests[] = {
    &bench_latency, &bench_bandwidth,  &bench_bibw,   &bench_exchange, &bench_rate,
    &bench_posted,  &bench_unexpected, &bench_vector, &bench_shapes,   &bench_overlap,
    &bench_put,     &bench_get,        &bench_accumulate, &bench_fetch_and_op, &bench_compare_and_swap,
    &bench_put_bandwidth, &bench_get_bandwidth, &bench_put_rate, &bench_get_rate, &bench_put_notify, NULL,
};

/* Lists all tests, collective ones last; `to` has room for BENCH_TESTS_MAX + 1. */
static void tests_list(const bench_test **to)
{
    int n = 0;

    for (int i = 0; plain_tests[i] && n < BENCH_TESTS_MAX; i++) {
        to[n++] = plain_tests[i];
    }
    for (const bench_test *t = bench_collectives; t->name && n < BENCH_TESTS_MAX; t++) {
        to[n++] = t;
    }
    to[n] = NULL;
}

/* Returns the maximum of `local` over all ranks. Collective. */
static int max_of_ranks(int local)
{
    int max = 0;

    MPI_Allreduce(&local, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return max;
}

static void check_rounds(bench_case *c, int from)
{
    if (!c->options->check || (c->test->pairs && c->partner < 0)) {
        return;
    }
    for (int round = from; round < from + BENCH_ROUNDS; round++) {
        c->test->check(c, round);
    }
}

/* Rows that failed, on all ranks; equal on each. */
typedef struct totals
{
    int wrong;     /* failed validations */
    int no_memory; /* rows left out because memory ran out on a rank */
} totals;

/* Runs one row. */
static void case_run(bench_case *c, bool first, totals *to)
{
    bool active = !c->test->pairs || c->partner >= 0;
    bench_result result = {0};
    int failures = 0, rank;
    char why[64];

    if (max_of_ranks(c->test->memory(c) > (size_t)c->options->memory_bytes)) {
        if (!c->rank) {
            bench_report_left_out(c, "more memory than --memory allows", first);
        }
        return;
    }
    rank = max_of_ranks(active && c->test->open(c) ? c->rank + 1 : 0) - 1;
    if (rank >= 0) {
        if (active) {
            c->test->close(c);
        }
        if (!c->rank) {
            snprintf(why, sizeof why, "out of memory on rank %d", rank);
            bench_report_left_out(c, why, first);
        }
        to->no_memory++;
        return;
    }
    check_rounds(c, 0);
    bench_timing_run(c, &result);
    check_rounds(c, BENCH_ROUNDS);
    if (active) {
        c->test->close(c);
    }
    MPI_Allreduce(&c->failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!c->rank) {
        bench_report_row(c, &result, failures, first);
    }
    to->wrong += failures;
}

static void test_run(const bench_options *o, const bench_test *t, int rank, int ranks, bool first, totals *to)
{
    static const char *const plain[] = {"", NULL};
    const char *const *variants = t->variants ? t->variants : plain;
    long sizes[BENCH_SIZES_MAX];
    int count = bench_options_sizes(o, t, sizes);
    int half = ranks / 2;

    if (!rank) {
        bench_report_test(o, t, ranks, first);
    }
    for (int v = 0; variants[v]; v++) {
        for (int i = 0; i < count; i++) {
            bench_case c = {.options = o, .test = t, .rank = rank, .ranks = ranks, .bytes = sizes[i], .variant = v, .share = 1,
                            .type = MPI_DATATYPE_NULL};
            c.is_leader = rank < half;
            c.partner = rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
            case_run(&c, v + i == 0, to);
        }
    }
    if (!rank) {
        bench_report_test_end(o);
    }
}

/* Runs the selected tests; returns the program's exit code. */
static int tests_run(const bench_options *o, int rank, int ranks)
{
    totals all = {0, 0};
    bool first = true;

    if (!rank) {
        bench_report_open(o, ranks);
    }
    for (int i = 0; i < o->tests_count; i++) {
        if (o->tests[i]->pairs && ranks < 2) {
            if (!rank) {
                fprintf(stderr, "weft-bench: %s needs 2 ranks, left out: mpirun -n 2 weft-bench %s\n",
                        o->tests[i]->name, o->tests[i]->name);
            }
            continue;
        }
        test_run(o, o->tests[i], rank, ranks, first, &all);
        first = false;
    }
    if (!rank) {
        bench_report_close(o, all.wrong, all.no_memory);
    }
    return all.wrong || all.no_memory ? 1 : first ? 2 : 0;
}

int main(int argc, char **argv)
{
    const bench_test *all_tests[BENCH_TESTS_MAX + 1];
    bench_options options;
    char why[256] = "";
    int rank, ranks, code = 0;

    tests_list(all_tests);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (bench_options_parse(&options, argc, argv, all_tests, why, sizeof why)) {
        if (!rank) {
            fprintf(stderr, "weft-bench: %s\n", why);
        }
        code = 2;
    } else if (options.help || options.list) {
        if (!rank && options.help) {
            bench_options_help(stdout);
        }
        if (!rank && options.list) {
            bench_options_list(stdout, all_tests);
        }
    } else {
        code = tests_run(&options, rank, ranks);
    }
    MPI_Finalize();
    return code;
}
