/* np: 1 2 3 4 6 8 : distributed graphs: edges named by any process reach both their ends, weights, reordering, duplicates, examples */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { MANY = 4000 };

static int rank, size;

typedef struct edge {
    int source, dest, weight;
} edge;

static int by_value(const void *a, const void *b) { return memcmp(a, b, sizeof(edge)); }

/* Compares this process's neighbors with those edges of all[count] that touch node `me`, in any order. */
static void expect(MPI_Comm comm, const edge *all, int count, int is_weighted)
{
    static edge want[2][MANY], got[2][MANY];
    static int ranks[2][MANY], weights[2][MANY];
    int n[2] = {0, 0}, degree[2], weighted = -1, me, status;
    OK(MPI_Topo_test(comm, &status));
    CHECK(status == MPI_DIST_GRAPH);
    OK(MPI_Comm_rank(comm, &me));
    for (int i = 0; i < count; i++) {
        if (all[i].dest == me)
            want[0][n[0]++] = all[i];
        if (all[i].source == me)
            want[1][n[1]++] = all[i];
    }
    OK(MPI_Dist_graph_neighbors_count(comm, &degree[0], &degree[1], &weighted));
    CHECK(degree[0] == n[0] && degree[1] == n[1], "node %d has degrees %d, %d instead of %d, %d", me, degree[0], degree[1], n[0], n[1]);
    CHECK(weighted == is_weighted);
    memset(weights, -1, sizeof weights);
    OK(MPI_Dist_graph_neighbors(comm, MANY, ranks[0], weights[0], MANY, ranks[1], weights[1]));
    for (int side = 0; side < 2; side++) {
        CHECK(is_weighted || weights[side][0] == -1, "weights are written for a graph without");
        for (int i = 0; i < n[side]; i++)
            got[side][i] = (edge){side ? me : ranks[side][i], side ? ranks[side][i] : me, is_weighted ? weights[side][i] : 1};
        qsort(want[side], (size_t)n[side], sizeof(edge), by_value);
        qsort(got[side], (size_t)n[side], sizeof(edge), by_value);
        for (int i = 0; i < n[side]; i++)
            CHECK(!memcmp(&got[side][i], &want[side][i], sizeof(edge)), "edge %d of node %d: %d to %d, %d", i, me, got[side][i].source,
                  got[side][i].dest, got[side][i].weight);
    }
    if (n[0] > 1) { /* only the first part of the list, and the same sequence again */
        int first[2] = {-1, -1};
        OK(MPI_Dist_graph_neighbors(comm, 1, first, MPI_UNWEIGHTED, 0, NULL, MPI_WEIGHTS_EMPTY));
        CHECK(first[0] == ranks[0][0] && first[1] == -1);
    }
}

static void check_and_free(MPI_Comm comm, const edge *all, int count, int is_weighted, int reorder)
{
    int n, r, result;
    MPI_Comm dup;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &r));
    OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
    CHECK(n == size && (reorder ? result != MPI_UNEQUAL : r == rank && result == MPI_CONGRUENT));
    expect(comm, all, count, is_weighted);
    OK(MPI_Comm_dup(comm, &dup));
    OK(MPI_Comm_free(&comm));
    expect(dup, all, count, is_weighted);
    OK(MPI_Comm_free(&dup));
}

/* Random edges. Each is named by a random process (MPI_Dist_graph_create), then by both its ends (adjacent). */
static void random_graph(uint64_t seed, int count, int is_weighted, int reorder)
{
    static edge all[MANY];
    static int sources[MANY], degrees[MANY], dests[MANY], weights[MANY], out[MANY], out_weights[MANY];
    int n = 0, edges = 0, in = 0, outs = 0;
    MPI_Comm comm;
    for (int i = 0; i < count; i++) {
        all[i] = (edge){(int)(check_random(&seed) % (unsigned)size), (int)(check_random(&seed) % (unsigned)size), 1};
        if (is_weighted)
            all[i].weight = (int)(check_random(&seed) % 1000);
        if ((int)(check_random(&seed) % (unsigned)size) != rank)
            continue;
        if (n && sources[n - 1] == all[i].source)
            degrees[n - 1]++;
        else {
            sources[n] = all[i].source;
            degrees[n++] = 1;
        }
        dests[edges] = all[i].dest;
        weights[edges++] = all[i].weight;
    }
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, dests, is_weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, reorder,
                             &comm));
    check_and_free(comm, all, count, is_weighted && count, reorder);
    for (int i = 0; i < count; i++) {
        if (all[i].dest == rank) {
            sources[in] = all[i].source;
            weights[in++] = all[i].weight;
        }
        if (all[i].source == rank) {
            out[outs] = all[i].dest;
            out_weights[outs++] = all[i].weight;
        }
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, is_weighted ? weights : MPI_UNWEIGHTED, outs, out,
                                      is_weighted ? out_weights : MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &comm));
    check_and_free(comm, all, count, is_weighted && count, reorder);
}

/* The order of an adjacent graph's lists is kept, for the node: after reordering, for the process that has its rank. */
static void keeps_order(int reorder)
{
    int sources[3], weights[3] = {30, 10, 20}, got[3], got_weights[3], me;
    MPI_Comm comm;
    for (int i = 0; i < 3; i++) {
        sources[i] = (rank + 2 * i + 1) % size;
        weights[i] += 100 * rank;
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, weights, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, reorder, &comm));
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Dist_graph_neighbors(comm, 3, got, got_weights, 0, NULL, NULL));
    for (int i = 0; i < 3; i++)
        CHECK(got[i] == (me + 2 * i + 1) % size && got_weights[i] == weights[i] + 100 * (me - rank));
    OK(MPI_Comm_free(&comm));
}

/* The standard's graph of four nodes: each process names its edges, or rank 0 all. */
static void example_four(void)
{
    static const edge all[] = {{0, 1, 1}, {0, 3, 1}, {1, 0, 1}, {2, 3, 1}, {3, 0, 1}, {3, 2, 1}};
    static const int counts[] = {2, 1, 1, 2}, dests[4][2] = {{1, 3}, {0}, {3}, {0, 2}}, ones[] = {1, 1, 1, 1, 1, 1};
    static const int sources[] = {0, 1, 2, 3}, flat[] = {1, 3, 0, 3, 0, 2};
    MPI_Comm four, comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < 4 ? 0 : MPI_UNDEFINED, 0, &four));
    if (size < 4 || four == MPI_COMM_NULL) {
        if (four != MPI_COMM_NULL)
            OK(MPI_Comm_free(&four));
        return;
    }
    OK(MPI_Dist_graph_create(four, 1, &rank, &counts[rank], dests[rank], ones, MPI_INFO_NULL, 0, &comm));
    expect(comm, all, 6, 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create(four, rank ? 0 : 4, sources, counts, flat, rank ? MPI_WEIGHTS_EMPTY : ones, MPI_INFO_NULL, 0, &comm));
    expect(comm, all, 6, 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create(four, rank ? 0 : 4, sources, counts, flat, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    expect(comm, all, 6, 0);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create_adjacent(four, counts[rank], dests[rank], ones, counts[rank], dests[rank], ones, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &(int){0}, &(int){0}, &(int){0}));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&four));
}

/* The standard's torus with diagonals, of which each process names its eight edges. */
static void example_torus(void)
{
    int dims[2] = {0, 0}, destinations[8], weights[8], degree = 8, count = 0;
    static edge all[8 * 8];
    MPI_Comm comm;
    OK(MPI_Dims_create(size, 2, dims));
    for (int r = 0; r < size; r++) {
        int p = dims[0], q = dims[1], y = r / p, x = r % p;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                if (!dx && !dy)
                    continue;
                all[count] = (edge){r, p * ((y + dy + q) % q) + (x + dx + p) % p, dx && dy ? 1 : 2};
                if (r == rank) {
                    destinations[count % 8] = all[count].dest;
                    weights[count % 8] = all[count].weight;
                }
                count++;
            }
    }
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, destinations, weights, MPI_INFO_NULL, 1, &comm));
    check_and_free(comm, all, count, 1, 1);
}

static void no_edges(void)
{
    MPI_Comm comm;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    check_and_free(comm, NULL, 0, 0, 0);
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &comm));
    check_and_free(comm, NULL, 0, 1, 1);
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm));
    check_and_free(comm, NULL, 0, 1, 0);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    no_edges();
    example_four();
    example_torus();
    for (int reorder = 0; reorder < 2; reorder++) {
        keeps_order(reorder);
        for (int weighted = 0; weighted < 2; weighted++)
            for (int i = 0; i < 8; i++)
                random_graph((uint64_t)i + 1, i < 6 ? i * i * 3 + 1 : i == 6 ? 1000 : MANY, weighted, reorder);
    }
    OK(MPI_Finalize());
    return 0;
}
