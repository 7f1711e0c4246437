/* np: 1 2 : a program defines MPI_Send, MPI_Recv, MPI_Allreduce and MPI_Barrier, and calls the library's as PMPI_X */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int sends, receives, reductions, barriers;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    receives++;
    return PMPI_Recv(buf, count, datatype, source, tag, comm, status);
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    reductions++;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    barriers++;
    return PMPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    int rank, size, got = -1, sum = 0, local;
    MPI_Comm other;
    check_start(&argc, &argv, &rank, &size);
    local = rank + 1;
    if (size == 2) {
        if (rank == 0)
            OK(MPI_Send(&local, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(rank == 0 || got == 1, "got %d", got);
        CHECK(sends == (rank == 0) && receives == (rank == 1), "%d sends, %d receives", sends, receives);
    }
    OK(MPI_Allreduce(&local, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size + 1) / 2, "sum %d", sum);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* PMPI_X never calls the program's MPI_X, and no other function of the library does. */
    OK(PMPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_free(&other));
    CHECK(reductions == 1 && barriers == 1, "%d reductions, %d barriers", reductions, barriers);
    OK(MPI_Finalize());
    return 0;
}
