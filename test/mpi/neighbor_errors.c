/* np: 2 : wrong arguments of neighborhood collectives give the right class and a text with argument and value */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static int out[8], in[8], rank, size;

static void no_topology(void)
{
    const int zero[1] = {0};
    MPI_Request r = MPI_REQUEST_NULL;
    BAD(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY, "no virtual topology", "Cart_create");
    BAD(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &r), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    CHECK(r == MPI_REQUEST_NULL);
    BAD(MPI_Neighbor_alltoallv_init(out, zero, zero, MPI_INT, in, zero, zero, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r),
        MPI_ERR_TOPOLOGY, "no virtual topology");
    BAD(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM, "comm");
}

static void arguments(MPI_Comm grid)
{
    const int one[2] = {1, 1}, at[2] = {0, 1}, negative[2] = {1, -3};
    const MPI_Aint bytes[2] = {0, 4};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT}, null_type[2] = {MPI_INT, MPI_DATATYPE_NULL};
    MPI_Datatype pair;
    BAD(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, grid), MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE");
    BAD(MPI_Neighbor_alltoall(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, grid), MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
    BAD(MPI_Neighbor_alltoallv(MPI_IN_PLACE, one, at, MPI_INT, in, one, at, MPI_INT, grid), MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE");
    BAD(MPI_Neighbor_allgather(out, -1, MPI_INT, in, 1, MPI_INT, grid), MPI_ERR_COUNT, "sendcount is -1");
    BAD(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, -2, MPI_INT, grid), MPI_ERR_COUNT, "recvcount is -2");
    BAD(MPI_Neighbor_allgather(NULL, 1, MPI_INT, in, 1, MPI_INT, grid), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Neighbor_alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, grid), MPI_ERR_TYPE, "sendtype", "MPI_DATATYPE_NULL");
    BAD(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, negative, at, MPI_INT, grid), MPI_ERR_COUNT, "recvcounts[1] is -3");
    BAD(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, one, NULL, MPI_INT, grid), MPI_ERR_ARG, "displs is NULL");
    BAD(MPI_Neighbor_alltoallv(out, negative, at, MPI_INT, in, one, at, MPI_INT, grid), MPI_ERR_COUNT, "sendcounts[1] is -3");
    BAD(MPI_Neighbor_alltoallw(out, one, bytes, null_type, in, one, bytes, types, grid), MPI_ERR_TYPE, "sendtypes[1]", "MPI_DATATYPE_NULL");
    BAD(MPI_Neighbor_alltoallw(out, one, bytes, types, in, one, NULL, types, grid), MPI_ERR_ARG, "rdispls is NULL");
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    BAD(MPI_Neighbor_alltoall(out, 1, pair, in, 2, MPI_INT, grid), MPI_ERR_TYPE, "sendtype", "not committed");
    OK(MPI_Type_free(&pair));
}

/* A block longer than the receiver's is truncated there; the sender's call succeeds. */
static void truncated(MPI_Comm grid)
{
    const int sent[2] = {rank ? 1 : 2, 1}, at[2] = {0, 4}, one[2] = {1, 1};
    int code = MPI_Neighbor_alltoallv(out, sent, at, MPI_INT, in, one, at, MPI_INT, grid);
    if (rank)
        BAD(code, MPI_ERR_TRUNCATE, "8 bytes");
    else
        CHECK(!code, "code %d", code);
}

int main(int argc, char **argv)
{
    int periods = 1;
    MPI_Comm grid;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    no_topology();
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &grid));
    OK(MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN));
    arguments(grid);
    truncated(grid);
    OK(MPI_Comm_free(&grid));
    OK(MPI_Finalize());
    return 0;
}
