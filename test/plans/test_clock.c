/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_clock: holds every choice within 1.2 of the best algorithm, as the clock says, to 65,536 ranks, for each operation, on nodes of one
 * and of several ranks, over two networks. `test_clock -v` prints each time and cost, -q stops at 64 ranks; -t prints only
 * the table of docs/collectives.md.
 */
#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define WORST 1.2
#define MEMORY_MAX ((uint64_t)1 << 33) /* bytes of all blocks of a rank */

static bool is_verbose;
static double worst = 1;
static uint64_t calls;

static bool is_of_blocks(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_GATHER || kind == WEFT_COLL_SCATTER || kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL;
}

static const weft_coll_rule *chosen_for(const weft_coll_query *query)
{
    size_t count;
    return weft_coll_select_rules(query->kind, &count) + weft_coll_select_class(query, weft_coll_class_of(query->bytes));
}

/* How many times the best one's time `choice` takes. */
static double compare(const weft_coll_query *query, const weft_coll_rule *choice, const weft_coll_rule **best_rule)
{
    size_t count;
    const weft_coll_rule *rules = weft_coll_select_rules(query->kind, &count);
    double best = INFINITY, chosen = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double cost = weft_coll_rule_cost(&rules[i], query), time;
        if (!rules[i].algorithm || isinf(cost))
            continue;
        time = clock_time(query, &rules[i]);
        if (is_verbose)
            printf("%-14s %5u ranks %5u nodes %10llu B  %-18s clock %12.0f cost %12.0f %5.2f\n", weft_coll_name(query->kind), query->ranks,
                   query->nodes, (unsigned long long)query->bytes, rules[i].name, time, cost, cost / time);
        if (time < 0 && &rules[i] == choice)
            return 1; /* not known */
        if (time < 0)
            continue;
        if (time < best) {
            best = time;
            *best_rule = &rules[i];
        }
        if (&rules[i] == choice)
            chosen = time;
    }
    return isinf(best) || best <= 0 ? 1 : chosen / best;
}

static void try(weft_coll_query *query)
{
    const weft_coll_rule *choice = chosen_for(query), *best = NULL;
    double factor;

    if (is_of_blocks(query->kind) && query->bytes * query->ranks > MEMORY_MAX)
        return;
    if ((query->kind == WEFT_COLL_REDUCE_SCATTER || query->kind == WEFT_COLL_ALLGATHERV) && query->bytes < query->ranks) /* empty blocks */
        return;
    factor = compare(query, choice, &best);
    calls++;
    if (factor > worst)
        worst = factor;
    if (factor > WORST)
        fprintf(stderr, "%s of %llu bytes, %u ranks on %u nodes%s: %s takes %.2f times as long as %s\n", weft_coll_name(query->kind),
                (unsigned long long)query->bytes, query->ranks, query->nodes, query->has & WEFT_NEED_ORDER ? ", in order" : "",
                choice->name, factor, best->name);
    CU_ASSERT(factor <= WORST);
}

static const struct size {
    uint32_t ranks, nodes;
} sizes[] = {{16, 16}, {17, 17}, {24, 24}, {33, 33}, {64, 64}, {256, 256}, {1024, 1024}, {4096, 4096}, {65536, 65536},
           {32, 4}, {64, 4}, {128, 32}, {256, 16}, {1024, 64}, {4096, 256}};

static const uint64_t lengths[] = {8, 1000, 16384, 200000, 4000000};

static void try_all(const weft_coll_params *params, uint32_t ranks_max)
{
    for (int kind = 0; kind < WEFT_COLL_LAST; kind++) {
        size_t count, is_op = kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_ALLREDUCE || kind >= WEFT_COLL_SCAN;
        size_t length_count = kind == WEFT_COLL_BARRIER ? 1 : sizeof lengths / sizeof *lengths;
        weft_coll_select_rules(kind, &count);
        if (count < 2 || kind == WEFT_COLL_ALLTOALLV || kind == WEFT_COLL_ALLTOALLW) /* no member knows the bytes of these */
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t l = 0; sizes[s].ranks <= ranks_max && l < length_count; l++)
                for (size_t op = 0; op <= is_op; op++) {
                    uint32_t ranks = sizes[s].ranks;
                    weft_coll_query query = {.kind = kind, .ranks = ranks, .nodes = sizes[s].nodes, .bytes = lengths[l],
                                             .params = params, .latency_bytes = weft_coll_link_bytes(&params->net)};
                    if (op == 1 && ranks > 256) /* in order: the same algorithms, but for few */
                        continue;
                    query.has = (query.nodes < ranks ? WEFT_NEED_NODES : 0) |
                                weft_coll_order_of(ranks, !op);
                    try(&query);
                }
    }
}

#ifdef __SANITIZE_ADDRESS__ /* takes ten times as long */
#define QUICK true
#else
#define QUICK false
#endif
static bool is_quick = QUICK;

static void test_fast_network(void) { try_all(&weft_coll_params_default, is_quick ? 64 : 65536); }

static void test_slow_network(void)
{
    weft_coll_params params = weft_coll_params_default;

    params.net = weft_coll_link_of(20000, 2000, &params.net);
    try_all(&params, is_quick ? 64 : 4096);
}

/* Where the clock takes one rank for all, all ranks give the same. */
static void test_one_for_all(void)
{
    static const struct {
        enum weft_coll_kind kind;
        const char *name;
    } rows[] = {{WEFT_COLL_ALLREDUCE, "doubling"}, {WEFT_COLL_ALLREDUCE, "ring"}, {WEFT_COLL_ALLGATHER, "Bruck"},
                {WEFT_COLL_ALLTOALL, "Bruck"}, {WEFT_COLL_ALLTOALL, "pairwise"}, {WEFT_COLL_BARRIER, "dissemination"},
                {WEFT_COLL_ALLREDUCE, "Rabenseifner"}, {WEFT_COLL_ALLGATHER, "multiplying 4"}, {WEFT_COLL_ALLGATHER, "neighbour exchange"},
                {WEFT_COLL_REDUCE_SCATTER_BLOCK, "halving"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t bytes = 64; bytes < 10000000; bytes *= 20) {
            weft_coll_query query = {.kind = rows[i].kind, .ranks = 64, .nodes = 64, .bytes = bytes,
                                     .has = WEFT_NEED_COMMUTATIVE, .params = &weft_coll_params_default, .latency_bytes = 16384};
            size_t count;
            const weft_coll_rule *rule = weft_coll_select_rules(rows[i].kind, &count);
            double one, all;
            while (strcmp(rule->name, rows[i].name))
                rule++;
            one = clock_time_all(&query, rule, true);
            all = clock_time_all(&query, rule, false);
            if (is_verbose)
                printf("%s %s %llu B: one %.0f all %.0f\n", weft_coll_name(rows[i].kind), rows[i].name, (unsigned long long)bytes, one,
                       all);
            CU_ASSERT(one > 0 && fabs(one - all) < 0.02 * all);
        }
}

/* A wrong cost is found: with the parameters of another machine the choice is far from the best. */
static void test_can_fail(void)
{
    weft_coll_params false_params = weft_coll_params_default;
    weft_coll_query query = {.kind = WEFT_COLL_ALLREDUCE, .ranks = 64, .nodes = 64, .bytes = 4000000, .has = WEFT_NEED_COMMUTATIVE,
                             .params = &false_params, .latency_bytes = weft_coll_link_bytes(&weft_coll_params_default.net)};
    const weft_coll_rule *choice, *best = NULL;

    false_params.net = (weft_coll_link){.latency_ns = 100000000, .overhead_ns = 25000000, .mbyte_per_s = 12500};
    choice = chosen_for(&query);
    query.params = &weft_coll_params_default;
    CU_ASSERT(compare(&query, choice, &best) > WORST);
}

/* ---- the table of docs/collectives.md ---- */

static void print_cell(const weft_coll_query *query)
{
    const weft_coll_rule *choice = chosen_for(query);
    double time = is_of_blocks(query->kind) && query->bytes * query->ranks > MEMORY_MAX ? -1 : clock_time(query, choice);

    if (time < 0)
        printf(" %s |", choice->name);
    else
        printf(" %s %.3g us |", choice->name, time / 1000);
}

static void print_table(void)
{
    static const enum weft_coll_kind kinds[] = {WEFT_COLL_BARRIER, WEFT_COLL_BCAST, WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE,
                                                WEFT_COLL_GATHER, WEFT_COLL_ALLGATHER, WEFT_COLL_ALLTOALL, WEFT_COLL_SCAN,
                                                WEFT_COLL_REDUCE_SCATTER_BLOCK};
    static const uint32_t ranks[] = {16, 256, 4096, 65536};
    static const uint64_t bytes[] = {8, 16384, 1000000};

    printf("| operation | bytes | 16 ranks | 256 | 4,096 | 65,536 | 256 on 16 nodes |\n|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t l = 0; l < sizeof bytes / sizeof *bytes && (l == 0 || kinds[k] != WEFT_COLL_BARRIER); l++) {
            weft_coll_query query = {.kind = kinds[k], .bytes = kinds[k] == WEFT_COLL_BARRIER ? 0 : bytes[l],
                                     .params = &weft_coll_params_default, .has = WEFT_NEED_COMMUTATIVE,
                                     .latency_bytes = weft_coll_link_bytes(&weft_coll_params_default.net)};
            printf("| %s | %llu |", weft_coll_name(kinds[k]), (unsigned long long)query.bytes);
            for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
                query.ranks = query.nodes = ranks[r];
                print_cell(&query);
            }
            query.ranks = 256;
            query.nodes = 16;
            query.has |= WEFT_NEED_NODES;
            print_cell(&query);
            printf("\n");
        }
}

int main(int argc, char **argv)
{
    CU_pSuite suite;
    unsigned failed;

    is_verbose = argc > 1 && !strcmp(argv[1], "-v");
    is_quick = is_quick || (argc > 1 && !strcmp(argv[1], "-q"));
    if (argc > 1 && !strcmp(argv[1], "-t")) {
        print_table();
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("clock", NULL, NULL);
    CU_add_test(suite, "one rank for all, where all do the same", test_one_for_all);
    CU_add_test(suite, "each choice is near the best: a fast network", test_fast_network);
    CU_add_test(suite, "each choice is near the best: a slow network", test_slow_network);
    CU_add_test(suite, "a wrong cost is found", test_can_fail);
    CU_basic_run_tests();
    printf("%llu calls, worst %.2f times the best, %llu steps\n", (unsigned long long)calls, worst, (unsigned long long)clock_steps);
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
