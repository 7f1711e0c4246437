/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lengths: see lengths.h.
 */
#include "fortran/lengths.h"

#include <mpi.h>

#include "fortran/runtime.h"

int weft_f_ranks(int number)
{
    MPI_Comm comm = weft_f_comm(number);
    int is_inter, ranks;
    if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) ||
        (is_inter ? PMPI_Comm_remote_size(comm, &ranks) : PMPI_Comm_size(comm, &ranks)))
        return 0;
    return ranks;
}

bool weft_f_is_root(int number, int root)
{
    MPI_Comm comm = weft_f_comm(number);
    int is_inter, rank;
    if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) || PMPI_Comm_rank(comm, &rank))
        return false;
    return root == (is_inter ? MPI_ROOT : rank);
}

/* The kind of topology; MPI_UNDEFINED: none. */
static int topology(MPI_Comm comm)
{
    int kind;
    return comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &kind) ? MPI_UNDEFINED : kind;
}

static int degree(MPI_Comm comm, bool is_in)
{
    int in = 0, out = 0, rank, is_weighted;
    switch (topology(comm)) {
    case MPI_CART:
        PMPI_Cartdim_get(comm, &in);
        return 2 * in;
    case MPI_GRAPH:
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &in);
        return in;
    case MPI_DIST_GRAPH:
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &is_weighted);
        return is_in ? in : out;
    default: return 0;
    }
}

int weft_f_in_degree(int comm) { return degree(weft_f_comm(comm), true); }

int weft_f_out_degree(int comm) { return degree(weft_f_comm(comm), false); }

int weft_f_dimensions(int number)
{
    MPI_Comm comm = weft_f_comm(number);
    int dims = 0;
    if (topology(comm) == MPI_CART)
        PMPI_Cartdim_get(comm, &dims);
    return dims;
}
