/* np: 1 2 4 5 8 : graphs: creation, queries, neighbors, reordering, more processes than nodes, none; the standard's examples */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

/* Degrees, neighbors and the whole graph come back as they were passed. */
static void queries(MPI_Comm graph, int nnodes, const int *index, const int *edges)
{
    int status, n, count, got_index[64], got_edges[256];
    OK(MPI_Topo_test(graph, &status));
    CHECK(status == MPI_GRAPH);
    OK(MPI_Graphdims_get(graph, &n, &count));
    CHECK(n == nnodes && count == index[nnodes - 1]);
    OK(MPI_Graph_get(graph, 64, 256, got_index, got_edges));
    CHECK(!memcmp(got_index, index, (size_t)n * sizeof *index) && !memcmp(got_edges, edges, (size_t)count * sizeof *edges));
    for (int v = 0; v < n; v++) {
        int begin = v ? index[v - 1] : 0;
        OK(MPI_Graph_neighbors_count(graph, v, &count));
        CHECK(count == index[v] - begin);
        OK(MPI_Graph_neighbors(graph, v, 256, got_edges));
        CHECK(!memcmp(got_edges, edges + begin, (size_t)count * sizeof *edges));
    }
}

static void create(int nnodes, const int *index, const int *edges)
{
    for (int reorder = 0; reorder < 2; reorder++) {
        MPI_Comm graph, dup;
        int n, r, sum;
        OK(MPI_Graph_map(MPI_COMM_WORLD, nnodes, index, edges, &r));
        CHECK(r == MPI_UNDEFINED || (r >= 0 && r < nnodes));
        OK(MPI_Graph_create(MPI_COMM_WORLD, nnodes, index, edges, reorder, &graph));
        if (!reorder)
            CHECK((graph == MPI_COMM_NULL) == (rank >= nnodes));
        if (graph == MPI_COMM_NULL)
            continue;
        OK(MPI_Comm_size(graph, &n));
        OK(MPI_Comm_rank(graph, &r));
        CHECK(n == nnodes && (reorder || r == rank));
        queries(graph, nnodes, index, edges);
        OK(MPI_Comm_dup(graph, &dup));
        OK(MPI_Comm_free(&graph));
        queries(dup, nnodes, index, edges);
        OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, dup));
        CHECK(sum == n * (n - 1) / 2);
        OK(MPI_Comm_free(&dup));
    }
}

/* The adjacency matrices of the standard's examples (8.5.3 and 8.5.5), the second with edges named several times. */
static void examples(void)
{
    static const int index[] = {2, 3, 4, 6}, edges[] = {1, 3, 0, 3, 0, 2};
    static const int many_index[] = {3, 5, 6, 9}, many_edges[] = {1, 1, 3, 0, 0, 3, 0, 2, 2};
    if (size < 4)
        return;
    create(4, index, edges);
    create(4, many_index, many_edges);
}

/* Exchange, shuffle and unshuffle of a shuffle-exchange network (8.5.5): a value comes from the neighbor of the inverse permutation. */
static void example_shuffle(int bits)
{
    int nodes = 1 << bits, index[8], edges[24], neighbors[3], me;
    float a;
    MPI_Comm comm;
    for (int v = 0; v < nodes; v++) {
        index[v] = 3 * (v + 1);
        edges[3 * v] = v ^ 1;
        edges[3 * v + 1] = (v << 1 | v >> (bits - 1)) & (nodes - 1);
        edges[3 * v + 2] = v >> 1 | (v & 1) << (bits - 1);
    }
    create(nodes, index, edges);
    OK(MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 1, &comm));
    if (comm == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Graph_neighbors(comm, me, 3, neighbors));
    CHECK(neighbors[0] == edges[3 * me] && neighbors[1] == edges[3 * me + 1] && neighbors[2] == edges[3 * me + 2]);
    for (int way = 0; way < 3; way++) {
        int from = way == 0 ? 0 : 3 - way;
        a = (float)me;
        OK(MPI_Sendrecv_replace(&a, 1, MPI_FLOAT, neighbors[way], 0, neighbors[from], 0, comm, MPI_STATUS_IGNORE));
        CHECK(a == (float)neighbors[from]);
    }
    OK(MPI_Comm_free(&comm));
}

static void edges_of_the_family(void)
{
    static const int none[] = {0, 0, 0, 0, 0, 0, 0, 0};
    int loop_index[8], loop_edges[16];
    MPI_Comm graph = MPI_COMM_WORLD;
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &graph));
    CHECK(graph == MPI_COMM_NULL);
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 1, &graph));
    CHECK(graph == MPI_COMM_NULL);
    create(size, none, loop_edges); /* nodes without neighbors */
    for (int v = 0; v < size; v++) { /* a node is its own neighbor, and that of the next; not symmetric */
        loop_index[v] = 2 * (v + 1);
        loop_edges[2 * v] = v;
        loop_edges[2 * v + 1] = (v + 1) % size;
    }
    create(size, loop_index, loop_edges);
    OK(MPI_Graph_create(MPI_COMM_SELF, 1, none, NULL, 0, &graph));
    OK(MPI_Graph_get(graph, 1, 0, loop_index, NULL));
    CHECK(loop_index[0] == 0);
    OK(MPI_Comm_free(&graph));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    examples();
    for (int bits = 1; bits <= 3 && 1 << bits <= size; bits++)
        example_shuffle(bits);
    edges_of_the_family();
    OK(MPI_Finalize());
    return 0;
}
