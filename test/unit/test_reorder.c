/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_reorder: the order of ranks that topo_reorder computes: a permutation, never worse than the identity, equal when computed again, as
 * good as the best blocks where these are known. With the argument "table" it prints the table of docs/topologies.md instead.
 */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/topo.h"
#include "mpi/topo_reorder.h"

#define RANKS_MAX 4096
static uint32_t node[RANKS_MAX], sockets[RANKS_MAX], order[RANKS_MAX], again[RANKS_MAX];
static unsigned long long state = 3;

static uint32_t below(uint32_t limit)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % limit;
}

/* Ranks in blocks of `per_node`, or dealt out to the nodes one by one; each node's first half on socket 0. */
static void place_ranks(uint32_t nodes, uint32_t per_node, bool by_node)
{
    for (uint32_t i = 0; i < nodes * per_node; i++) {
        uint32_t local = by_node ? i / nodes : i % per_node;
        node[i] = by_node ? i % nodes : i / per_node;
        sockets[i] = local < (per_node + 1) / 2 ? 0 : 1;
    }
}

static void check(const weft_topo_graph *graph, uint64_t before[2], uint64_t after[2])
{
    static bool seen[RANKS_MAX];
    bool is_permutation = true;
    memset(seen, 0, sizeof seen);
    CU_ASSERT_EQUAL_FATAL(weft_reorder_compute(graph, node, sockets, order), 0);
    CU_ASSERT_EQUAL_FATAL(weft_reorder_compute(graph, node, sockets, again), 0);
    CU_ASSERT(!memcmp(order, again, graph->count * sizeof *order));
    for (uint32_t v = 0; v < graph->count; v++) {
        is_permutation &= order[v] < graph->count && !seen[order[v] % RANKS_MAX];
        seen[order[v] % RANKS_MAX] = true;
    }
    CU_ASSERT(is_permutation);
    weft_reorder_cost(graph, node, sockets, NULL, before);
    weft_reorder_cost(graph, node, sockets, order, after);
    CU_ASSERT(after[0] < before[0] || (after[0] == before[0] && after[1] <= before[1]));
}

static void grid(int ndims, const int *dims, const int *periods, uint64_t before[2], uint64_t after[2])
{
    weft_topo_graph graph;
    CU_ASSERT_EQUAL_FATAL(weft_topo_graph_of_grid(ndims, dims, periods, &graph), 0);
    check(&graph, before, after);
    weft_topo_graph_free(&graph);
}

/* Messages between nodes in one exchange with all neighbors: each edge of a cut counts twice. */
static void known_grids_reach_the_best_blocks(void)
{
    static const int none[3] = {0, 0, 0}, all[3] = {1, 1, 1};
    uint64_t before[2], after[2];
    place_ranks(4, 16, false);
    grid(2, (const int[]){8, 8}, none, before, after); /* strips of 2 x 8 become blocks of 4 x 4, halves of 2 x 4 */
    CU_ASSERT(before[0] == 48 && after[0] == 32 && after[1] == 32);
    grid(2, (const int[]){8, 8}, all, before, after);
    CU_ASSERT(before[0] == 64 && after[0] == 64);
    place_ranks(8, 8, true);
    grid(3, (const int[]){4, 4, 4}, none, before, after); /* cubes of 2 x 2 x 2 */
    CU_ASSERT(before[0] > after[0] && after[0] == 96 && after[1] == 64);
    place_ranks(1, 16, true);
    grid(2, (const int[]){4, 4}, none, before, after); /* one node: only sockets count */
    CU_ASSERT(after[0] == 0 && after[1] == 8);
    place_ranks(16, 1, false);
    grid(2, (const int[]){4, 4}, all, before, after); /* a node for each */
    CU_ASSERT(!memcmp(before, after, sizeof before));
}

static void random_grids_are_never_worse(void)
{
    uint64_t before[2], after[2];
    for (int i = 0; i < 150; i++) {
        int ndims = 1 + (int)below(4), dims[4], periods[4];
        uint32_t count = 1 + below(i % 10 ? 120 : 600), nodes = 1 + below(9);
        weft_dims_balance(count, ndims, dims);
        for (int d = 0; d < ndims; d++)
            periods[d] = (int)below(2);
        for (uint32_t k = 0; k < count; k++) { /* nodes of any sizes, ranks anywhere */
            node[k] = below(3) ? below(nodes) * 7 : 0;
            sockets[k] = below(3);
        }
        grid(ndims, dims, periods, before, after);
    }
}

static void random_graphs_are_never_worse(void)
{
    static int edges[3 * 5000];
    for (int i = 0; i < 150; i++) {
        uint64_t before[2], after[2], count = below(i % 10 ? 400 : 5000);
        uint32_t vertices = 1 + below(200);
        weft_topo_graph graph;
        for (uint64_t e = 0; e < count; e++) {
            edges[3 * e] = (int)below(vertices);
            edges[3 * e + 1] = i % 2 ? (int)below(vertices) : (int)((uint32_t)edges[3 * e] + below(9)) % (int)vertices;
            edges[3 * e + 2] = i % 3 ? (int)below(50) : 2147483647;
        }
        for (uint32_t k = 0; k < vertices; k++) {
            node[k] = below(1 + (uint32_t)i % 8);
            sockets[k] = below(2);
        }
        CU_ASSERT_EQUAL_FATAL(weft_topo_graph_of_edges(vertices, edges, count, &graph), 0);
        check(&graph, before, after);
        weft_topo_graph_free(&graph);
    }
}

/* Pairs that talk, spread over the nodes by the map, come together. */
static void scattered_cliques_are_gathered(void)
{
    static int edges[3 * 16 * 6];
    uint64_t before[2], after[2], count = 0;
    weft_topo_graph graph;
    for (int c = 0; c < 16; c++) /* clique c: ranks c, c + 16, c + 32, c + 48 */
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < a; b++, count++) {
                edges[3 * count] = c + 16 * a;
                edges[3 * count + 1] = c + 16 * b;
                edges[3 * count + 2] = 5;
            }
    place_ranks(4, 16, false);
    CU_ASSERT_EQUAL_FATAL(weft_topo_graph_of_edges(64, edges, count, &graph), 0);
    check(&graph, before, after);
    CU_ASSERT(before[0] == 2 * 5 * 96 && after[0] == 0 && after[1] == 0);
    weft_topo_graph_free(&graph);
}

static void large_jobs_take_little_time(void)
{
    static const int periods[3] = {1, 1, 1};
    uint64_t before[2], after[2];
    clock_t begin;
    double seconds;
    place_ranks(64, 64, true);
    begin = clock();
    grid(3, (const int[]){16, 16, 16}, periods, before, after);
    seconds = (double)(clock() - begin) / CLOCKS_PER_SEC / 2;
    printf("\n  4,096 ranks on 64 nodes: %.0f ms, %llu -> %llu messages between nodes ", seconds * 1e3, (unsigned long long)before[0],
           (unsigned long long)after[0]);
    CU_ASSERT(seconds < 2);
}

static void print_row(int ndims, uint32_t nodes, uint32_t per_node, bool by_node)
{
    static const int none[3] = {0, 0, 0};
    int dims[3];
    char shape[32];
    uint64_t before[2], after[2];
    weft_topo_graph graph;
    weft_dims_balance(nodes * per_node, ndims, dims);
    snprintf(shape, sizeof shape, ndims == 2 ? "%d x %d" : "%d x %d x %d", dims[0], dims[1], dims[ndims - 1]);
    place_ranks(nodes, per_node, by_node);
    if (weft_topo_graph_of_grid(ndims, dims, none, &graph) || weft_reorder_compute(&graph, node, sockets, order))
        exit(1);
    weft_reorder_cost(&graph, node, sockets, NULL, before);
    weft_reorder_cost(&graph, node, sockets, order, after);
    printf("| %s | %u x %u | %s | %llu | %llu | %llu | %llu |\n", shape, nodes, per_node, by_node ? "node" : "slot",
           (unsigned long long)before[0], (unsigned long long)after[0], (unsigned long long)before[1], (unsigned long long)after[1]);
    weft_topo_graph_free(&graph);
}

static int print_table(void)
{
    static const uint32_t jobs[][2] = {{2, 8}, {2, 32}, {3, 16}, {4, 16}, {4, 64}, {6, 24}, {8, 8}, {8, 64}};
    for (int ndims = 2; ndims <= 3; ndims++)
        for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++)
            for (int by_node = 0; by_node < 2; by_node++)
                print_row(ndims, jobs[i][0], jobs[i][1], by_node);
    return 0;
}

int main(int argc, char **argv)
{
    CU_pSuite suite;
    unsigned failed;
    if (argc > 1 && !strcmp(argv[1], "table"))
        return print_table();
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("reorder", NULL, NULL);
    CU_add_test(suite, "known-grids-reach-the-best-blocks", known_grids_reach_the_best_blocks);
    CU_add_test(suite, "random-grids-are-never-worse", random_grids_are_never_worse);
    CU_add_test(suite, "random-graphs-are-never-worse", random_graphs_are_never_worse);
    CU_add_test(suite, "scattered-cliques-are-gathered", scattered_cliques_are_gathered);
    CU_add_test(suite, "large-jobs-take-little-time", large_jobs_take_little_time);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
