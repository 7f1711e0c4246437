/* np: 2 3 : wrong arguments of graphs give the right class and a text with argument and value; one wrong member makes all fail */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static int rank, size;
static MPI_Comm world, comm;

static void graphs(void)
{
    int index[4] = {1, 2, 2, 2}, edges[2] = {1, 0}, falling[2] = {2, 1}, negative[2] = {-1, 0}, far[2] = {1, 2}, below[2] = {-1, 0}, r;
    int own[2] = {rank ? -7 : 1, 2};
    BAD(MPI_Graph_create(world, -1, index, edges, 0, &comm), MPI_ERR_ARG, "nnodes is -1");
    CHECK(comm == MPI_COMM_NULL);
    BAD(MPI_Graph_create(world, 4, index, edges, 1, &comm), MPI_ERR_ARG, "nnodes is 4", "larger than the communicator");
    BAD(MPI_Graph_create(world, 2, falling, edges, 0, &comm), MPI_ERR_ARG, "index[1] is 1", "less than 2");
    BAD(MPI_Graph_create(world, 2, negative, edges, 1, &comm), MPI_ERR_ARG, "index[0] is -1");
    BAD(MPI_Graph_create(world, 2, index, far, 0, &comm), MPI_ERR_RANK, "edges[1] is 2", "0..1");
    BAD(MPI_Graph_create(world, 2, index, below, 0, &comm), MPI_ERR_RANK, "edges[0] is -1");
    BAD(MPI_Graph_create(world, 2, index, NULL, 0, &comm), MPI_ERR_ARG, "edges is NULL", "2 edges");
    BAD(MPI_Graph_create(world, 2, NULL, edges, 0, &comm), MPI_ERR_ARG, "indx is NULL");
    BAD(MPI_Graph_create(world, 2, index, edges, 0, NULL), MPI_ERR_ARG, "comm_graph is NULL");
    for (int reorder = 0; reorder < 2; reorder++) {
        if (rank)
            BAD(MPI_Graph_create(world, 2, own, edges, reorder, &comm), MPI_ERR_ARG, "index[0] is -7");
        else
            BAD(MPI_Graph_create(world, 2, own, edges, reorder, &comm), MPI_ERR_OTHER, "another member");
        CHECK(comm == MPI_COMM_NULL);
    }
    BAD(MPI_Graph_map(world, 2, index, far, &r), MPI_ERR_RANK, "edges[1] is 2");
    BAD(MPI_Graph_map(world, 9, index, edges, &r), MPI_ERR_ARG, "nnodes is 9");
}

static void graph_queries(void)
{
    int index[2] = {1, 2}, edges[2] = {1, 0}, a[2], b[2];
    OK(MPI_Graph_create(world, 2, index, edges, 0, &comm));
    if (comm == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    BAD(MPI_Graph_get(comm, 1, 2, a, b), MPI_ERR_ARG, "maxindex is 1", "2 nodes");
    BAD(MPI_Graph_get(comm, 2, 1, a, b), MPI_ERR_ARG, "maxedges is 1", "2 edges");
    BAD(MPI_Graph_get(comm, 2, 2, NULL, b), MPI_ERR_ARG, "indx is NULL");
    BAD(MPI_Graph_get(comm, 2, 2, a, NULL), MPI_ERR_ARG, "edges is NULL");
    BAD(MPI_Graph_neighbors_count(comm, 2, a), MPI_ERR_RANK, "rank is 2", "0..1");
    BAD(MPI_Graph_neighbors(comm, -1, 2, a), MPI_ERR_RANK, "rank is -1");
    BAD(MPI_Graph_neighbors(comm, 0, 0, a), MPI_ERR_ARG, "maxneighbors is 0", "1 neighbors");
    BAD(MPI_Graph_neighbors(comm, 0, 1, NULL), MPI_ERR_ARG, "neighbors is NULL");
    BAD(MPI_Cartdim_get(comm, a), MPI_ERR_TOPOLOGY, "MPI_CART", "MPI_GRAPH");
    BAD(MPI_Dist_graph_neighbors_count(comm, a, b, a), MPI_ERR_TOPOLOGY, "MPI_DIST_GRAPH", "MPI_GRAPH");
    OK(MPI_Comm_free(&comm));
}

static void without_a_graph(void)
{
    int a[2], b[2], c[2];
    BAD(MPI_Graphdims_get(world, a, b), MPI_ERR_TOPOLOGY, "MPI_GRAPH", "none");
    BAD(MPI_Graph_get(world, 2, 2, a, b), MPI_ERR_TOPOLOGY, "MPI_GRAPH");
    BAD(MPI_Graph_neighbors_count(world, 0, a), MPI_ERR_TOPOLOGY, "MPI_GRAPH");
    BAD(MPI_Graph_neighbors(world, 0, 2, a), MPI_ERR_TOPOLOGY, "MPI_GRAPH");
    BAD(MPI_Dist_graph_neighbors_count(world, a, b, c), MPI_ERR_TOPOLOGY, "MPI_DIST_GRAPH", "none");
    BAD(MPI_Dist_graph_neighbors(world, 2, a, b, 2, a, b), MPI_ERR_TOPOLOGY, "MPI_DIST_GRAPH");
}

/* Each call is wrong on all members. */
static void dist_graphs(void)
{
    int one[2] = {0, 1}, far[2] = {0, 3}, below[2] = {-1, 0}, weights[2] = {1, 1}, wrong[2] = {1, -5}, degrees[2] = {1, 1};
    int less[2] = {1, -1};
    const MPI_Info none = MPI_INFO_NULL;
    BAD(MPI_Dist_graph_create(world, -1, one, degrees, one, weights, none, 0, &comm), MPI_ERR_ARG, "n is -1");
    BAD(MPI_Dist_graph_create(world, 2, far, degrees, one, weights, none, 0, &comm), MPI_ERR_RANK, "sources[1] is 3");
    BAD(MPI_Dist_graph_create(world, 2, one, less, one, weights, none, 1, &comm), MPI_ERR_ARG, "degrees[1] is -1");
    BAD(MPI_Dist_graph_create(world, 2, one, degrees, below, weights, none, 0, &comm), MPI_ERR_RANK, "destinations[0] is -1");
    BAD(MPI_Dist_graph_create(world, 2, one, degrees, one, wrong, none, 0, &comm), MPI_ERR_ARG, "weights[1] is -5");
    BAD(MPI_Dist_graph_create(world, 2, one, degrees, one, NULL, none, 0, &comm), MPI_ERR_ARG, "weights is NULL", "2 edges");
    BAD(MPI_Dist_graph_create(world, 2, one, degrees, NULL, weights, none, 0, &comm), MPI_ERR_ARG, "destinations is NULL");
    BAD(MPI_Dist_graph_create(world, 2, NULL, degrees, one, weights, none, 0, &comm), MPI_ERR_ARG, "sources is NULL");
    BAD(MPI_Dist_graph_create(world, 2, one, NULL, one, weights, none, 0, &comm), MPI_ERR_ARG, "degrees is NULL");
    BAD(MPI_Dist_graph_create_adjacent(world, -1, one, weights, 1, one, weights, none, 0, &comm), MPI_ERR_ARG, "indegree is -1");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, one, weights, -2, one, weights, none, 0, &comm), MPI_ERR_ARG, "outdegree is -2");
    BAD(MPI_Dist_graph_create_adjacent(world, 2, far, weights, 1, one, weights, none, 1, &comm), MPI_ERR_RANK, "sources[1] is 3");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, one, weights, 2, below, weights, none, 0, &comm), MPI_ERR_RANK, "destinations[0] is -1");
    BAD(MPI_Dist_graph_create_adjacent(world, 2, one, wrong, 1, one, weights, none, 0, &comm), MPI_ERR_ARG, "sourceweights[1] is -5");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, one, MPI_WEIGHTS_EMPTY, 1, one, weights, none, 0, &comm), MPI_ERR_ARG,
        "sourceweights is MPI_WEIGHTS_EMPTY");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, one, weights, 1, one, NULL, none, 0, &comm), MPI_ERR_ARG, "destweights is NULL");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, one, MPI_UNWEIGHTED, 1, one, weights, none, 0, &comm), MPI_ERR_ARG,
        "sourceweights is MPI_UNWEIGHTED");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, NULL, weights, 1, one, weights, none, 0, &comm), MPI_ERR_ARG, "sources is NULL");
    BAD(MPI_Dist_graph_create(MPI_COMM_NULL, 0, one, degrees, one, weights, none, 0, &comm), MPI_ERR_COMM, "comm_old");
}

/* Only some members pass weights, or one member's rank is wrong. */
static void members_differ(void)
{
    int zero = 0, one = 1, wrong = rank ? 99 : 0;
    BAD(MPI_Dist_graph_create(world, 1, &zero, &one, &zero, rank ? &one : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm), MPI_ERR_ARG,
        "MPI_UNWEIGHTED", "not by all");
    BAD(MPI_Dist_graph_create_adjacent(world, 1, &zero, rank ? &one : MPI_UNWEIGHTED, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &comm),
        MPI_ERR_ARG, "MPI_UNWEIGHTED", "not by all");
    CHECK(comm == MPI_COMM_NULL);
    if (rank)
        BAD(MPI_Dist_graph_create(world, 1, &wrong, &one, &zero, &one, MPI_INFO_NULL, 1, &comm), MPI_ERR_RANK, "sources[0] is 99");
    else
        BAD(MPI_Dist_graph_create(world, 1, &wrong, &one, &zero, &one, MPI_INFO_NULL, 1, &comm), MPI_ERR_OTHER, "another member");
}

static void dist_queries(void)
{
    int zero = 0, one = 1, a[2], b[2];
    OK(MPI_Dist_graph_create(world, 1, &zero, &one, &zero, &one, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    BAD(MPI_Dist_graph_neighbors(comm, -1, a, b, 1, a, b), MPI_ERR_ARG, "maxindegree is -1");
    BAD(MPI_Dist_graph_neighbors(comm, 1, a, b, -1, a, b), MPI_ERR_ARG, "maxoutdegree is -1");
    BAD(MPI_Dist_graph_neighbors(comm, 1, NULL, b, 1, a, b), MPI_ERR_ARG, "sources is NULL");
    if (rank == 0)
        BAD(MPI_Dist_graph_neighbors(comm, 1, a, NULL, 1, a, b), MPI_ERR_ARG, "weights", "MPI_UNWEIGHTED");
    BAD(MPI_Dist_graph_neighbors_count(comm, NULL, a, b), MPI_ERR_ARG, "indegree is NULL");
    BAD(MPI_Graphdims_get(comm, a, b), MPI_ERR_TOPOLOGY, "MPI_GRAPH", "MPI_DIST_GRAPH");
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    graphs();
    graph_queries();
    without_a_graph();
    dist_graphs();
    members_differ();
    dist_queries();
    OK(MPI_Comm_free(&world));
    OK(MPI_Finalize());
    return 0;
}
