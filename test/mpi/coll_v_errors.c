/* np: 1 2 : wrong arguments of collectives with counts by rank, scans, reduce-scatters; what is not significant is not read */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_forms.h"
#include "expect.h"

static int rank, size, minus[2] = {-1, -1}, ones[2] = {1, 1}, twos[2] = {2, 2}, displs[2] = {0, 2};
static long out[8], in[8];
static MPI_Comm comm;
static MPI_Datatype loose, types[2] = {MPI_LONG, MPI_LONG};
static MPI_Request request;

/* All members fail in the entry, so no message is sent. */
static void arrays(void)
{
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, in, minus, displs, MPI_LONG, comm), MPI_ERR_COUNT, "Allgatherv", "recvcounts[0] is -1");
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, in, NULL, displs, MPI_LONG, comm), MPI_ERR_ARG, "recvcounts");
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, in, ones, NULL, MPI_LONG, comm), MPI_ERR_ARG, "displs");
    BAD(MPI_Iallgatherv(out, 1, MPI_LONG, in, minus, displs, MPI_LONG, comm, &request), MPI_ERR_COUNT, "recvcounts[0] is -1");
    BAD(MPI_Allgatherv_init(out, -1, MPI_LONG, in, ones, displs, MPI_LONG, comm, MPI_INFO_NULL, &request), MPI_ERR_COUNT, "sendcount");
    BAD(MPI_Alltoallv(out, minus, displs, MPI_LONG, in, ones, displs, MPI_LONG, comm), MPI_ERR_COUNT, "sendcounts[0] is -1");
    BAD(MPI_Alltoallv(out, ones, NULL, MPI_LONG, in, ones, displs, MPI_LONG, comm), MPI_ERR_ARG, "sdispls");
    BAD(MPI_Alltoallv(out, ones, displs, MPI_LONG, in, ones, NULL, MPI_LONG, comm), MPI_ERR_ARG, "rdispls");
    BAD(MPI_Reduce_scatter(out, in, minus, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT, "recvcounts[0] is -1");
    BAD(MPI_Reduce_scatter(out, in, NULL, MPI_LONG, MPI_SUM, comm), MPI_ERR_ARG, "recvcounts");
    BAD(MPI_Reduce_scatter_block(out, in, -1, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT, "recvcount", "-1");
    BAD(MPI_Gatherv(out, 1, MPI_LONG, in, ones, displs, MPI_LONG, size, comm), MPI_ERR_ROOT, "root");
    BAD(MPI_Scatterv(out, ones, displs, MPI_LONG, in, -1, MPI_LONG, 0, comm), MPI_ERR_COUNT, "recvcount");
    if (rank == 0) {
        BAD(MPI_Gatherv(out, 1, MPI_LONG, in, minus, displs, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_COUNT, "recvcounts[0]");
        BAD(MPI_Gatherv(out, 1, MPI_LONG, in, ones, NULL, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_ARG, "displs");
        BAD(MPI_Scatterv(out, NULL, displs, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_ARG, "sendcounts");
        BAD(MPI_Scatterv(out, ones, NULL, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_ARG, "displs");
    }
}

static void types_and_ops(void)
{
    MPI_Datatype none[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}, uncommitted[2] = {loose, loose};
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, in, ones, displs, loose, comm), MPI_ERR_TYPE, "recvtype", "commit");
    BAD(MPI_Alltoallv(out, ones, displs, MPI_DATATYPE_NULL, in, ones, displs, MPI_LONG, comm), MPI_ERR_TYPE, "sendtype");
    BAD(MPI_Alltoallw(out, ones, displs, none, in, ones, displs, types, comm), MPI_ERR_TYPE, "sendtypes[0]");
    BAD(MPI_Alltoallw(out, ones, displs, types, in, ones, displs, uncommitted, comm), MPI_ERR_TYPE, "recvtypes[0]", "commit");
    BAD(MPI_Alltoallw(out, ones, displs, NULL, in, ones, displs, types, comm), MPI_ERR_ARG, "sendtypes");
    BAD(MPI_Scan(out, in, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP, "MPI_BAND");
    BAD(MPI_Exscan(out, in, 1, MPI_LONG, MPI_OP_NULL, comm), MPI_ERR_OP, "op");
    BAD(MPI_Reduce_scatter(out, in, ones, MPI_DOUBLE, MPI_BOR, comm), MPI_ERR_OP, "MPI_BOR");
    BAD(MPI_Reduce_scatter_block(out, in, 1, MPI_FLOAT, MPI_BXOR, comm), MPI_ERR_OP, "MPI_BXOR");
}

static void buffers(void)
{
    MPI_Count many[2] = {(MPI_Count)1 << 60, (MPI_Count)1 << 60};
    MPI_Aint far[2] = {0, 0};
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, MPI_IN_PLACE, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "recvbuf", "MPI_IN_PLACE");
    BAD(MPI_Allgatherv(out, 1, MPI_LONG, NULL, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Allgatherv(NULL, 1, MPI_LONG, in, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "sendbuf");
    BAD(MPI_Alltoallv(NULL, ones, displs, MPI_LONG, in, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Alltoallv(in, ones, displs, MPI_LONG, in, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    BAD(MPI_Alltoallv_c(out, many, far, MPI_LONG, in, many, far, MPI_LONG, comm), MPI_ERR_COUNT, "counts");
    BAD(MPI_Alltoallv(out, ones, displs, MPI_LONG, MPI_IN_PLACE, ones, displs, MPI_LONG, comm), MPI_ERR_BUFFER, "recvbuf");
    BAD(MPI_Scan(NULL, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "sendbuf");
    BAD(MPI_Scan(out, MPI_IN_PLACE, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "recvbuf");
    BAD(MPI_Scan(in, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    BAD(MPI_Reduce_scatter(NULL, in, ones, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Reduce_scatter(out, NULL, ones, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Reduce_scatter(in, in, ones, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    BAD(MPI_Reduce_scatter(out, MPI_IN_PLACE, ones, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "recvbuf");
    BAD(MPI_Reduce_scatter_block(NULL, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER, "sendbuf");
    BAD(MPI_Reduce_scatter_block_c(out, in, (MPI_Count)1 << 60, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT, "recvcount");
    BAD(MPI_Reduce_scatter_c(out, in, many, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT, "recvcounts");
    /* a block of a rank for itself, of another length */
    BAD(MPI_Gatherv(out, 2, MPI_LONG, in, ones, displs, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_TRUNCATE, "16 bytes", "8");
    BAD(MPI_Gatherv(out, 1, MPI_LONG, in, twos, displs, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_COUNT, "8 bytes", "16");
    BAD(MPI_Scatterv(out, twos, displs, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_TRUNCATE, "16 bytes", "8");
    BAD(MPI_Scatterv(MPI_IN_PLACE, ones, displs, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_SELF), MPI_ERR_BUFFER, "sendbuf");
    if (size > 1 && rank == 1)
        BAD(MPI_Gatherv(MPI_IN_PLACE, 1, MPI_LONG, in, ones, displs, MPI_LONG, 0, comm), MPI_ERR_BUFFER, "sendbuf");
}

/* What is not significant is not read. */
static void insignificant(void)
{
    int is_root = rank == 0;
    OK(MPI_Gatherv(out, 1, MPI_LONG, is_root ? in : NULL, is_root ? ones : NULL, is_root ? displs : NULL,
                   is_root ? MPI_LONG : MPI_DATATYPE_NULL, 0, comm));
    OK(MPI_Scatterv(is_root ? out : NULL, is_root ? ones : NULL, is_root ? displs : NULL, is_root ? MPI_LONG : MPI_DATATYPE_NULL, in, 1,
                    MPI_LONG, 0, comm));
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, ones, displs, MPI_LONG, comm));
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, ones, displs, types, comm));
    OK(MPI_Allgatherv(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, in, ones, displs, MPI_LONG, comm));
    OK(MPI_Gatherv(is_root ? MPI_IN_PLACE : out, 1, is_root ? MPI_DATATYPE_NULL : MPI_LONG, in, ones, displs, MPI_LONG, 0, comm));
    OK(MPI_Exscan(out, is_root ? out : in, 1, MPI_LONG, MPI_SUM, comm));
    ones[0] = 0; /* rank 0 has an empty block, which may lie anywhere */
    OK(MPI_Reduce_scatter(out, is_root ? out : in, ones, MPI_LONG, MPI_SUM, comm));
    ones[0] = 1;
    OK(MPI_Allgatherv(NULL, 0, MPI_LONG, NULL, (int[]){0, 0}, displs, MPI_LONG, comm));
}

static void intercommunicators(void)
{
    where w;
    if (size < 2)
        return;
    w = inter_of(rank, size);
    OK(MPI_Comm_set_errhandler(w.comm, MPI_ERRORS_RETURN));
    BAD(MPI_Scan(out, in, 1, MPI_LONG, MPI_SUM, w.comm), MPI_ERR_COMM, "intercommunicator");
    BAD(MPI_Exscan(out, in, 1, MPI_LONG, MPI_SUM, w.comm), MPI_ERR_COMM, "intercommunicator");
    BAD(MPI_Iexscan(out, in, 1, MPI_LONG, MPI_SUM, w.comm, &request), MPI_ERR_COMM, "intercommunicator");
    BAD(MPI_Allgatherv(MPI_IN_PLACE, 1, MPI_LONG, in, ones, displs, MPI_LONG, w.comm), MPI_ERR_BUFFER, "intercommunicator");
    BAD(MPI_Alltoallw(MPI_IN_PLACE, ones, displs, types, in, ones, displs, types, w.comm), MPI_ERR_BUFFER, "intercommunicator");
    BAD(MPI_Reduce_scatter(MPI_IN_PLACE, in, ones, MPI_LONG, MPI_SUM, w.comm), MPI_ERR_BUFFER, "intercommunicator");
    OK(MPI_Comm_free(&w.comm));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_contiguous(2, MPI_LONG, &loose));
    arrays();
    types_and_ops();
    buffers();
    insignificant();
    intercommunicators();
    OK(MPI_Type_free(&loose));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
