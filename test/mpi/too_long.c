/* np: 2 3 : a count whose product with size or extent overflows is MPI_ERR_COUNT in every call, C and large-count forms; nothing is sent */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#define COUNT(call) CHECK((code = (call)) == MPI_ERR_COUNT, "%s returned %d", #call, code)
#define LARGE(call) CHECK((code = (call)) == MPI_ERR_VALUE_TOO_LARGE, "%s returned %d", #call, code)

static int rank, size, code;
static double d[4], e[4];
static const MPI_Comm world = MPI_COMM_WORLD;

/* n elements of t exceed 2^62 bytes in size or extent; the narrow form is called too if n is an int. */
static void messages(MPI_Count n, MPI_Datatype t)
{
    MPI_Request req;
    int to = (rank + 1) % size;
    COUNT(MPI_Send_c(d, n, t, to, 0, world));
    COUNT(MPI_Ssend_c(d, n, t, to, 0, world));
    COUNT(MPI_Rsend_c(d, n, t, to, 0, world));
    COUNT(MPI_Isend_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Issend_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Irsend_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Send_init_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Ssend_init_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Rsend_init_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Recv_c(d, n, t, to, 0, world, MPI_STATUS_IGNORE));
    COUNT(MPI_Irecv_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Recv_init_c(d, n, t, to, 0, world, &req));
    COUNT(MPI_Sendrecv_c(d, n, t, to, 0, e, 1, MPI_DOUBLE, to, 0, world, MPI_STATUS_IGNORE));
    COUNT(MPI_Sendrecv_c(d, 1, MPI_DOUBLE, to, 0, e, n, t, to, 0, world, MPI_STATUS_IGNORE));
    COUNT(MPI_Sendrecv_replace_c(d, n, t, to, 0, to, 0, world, MPI_STATUS_IGNORE));
    if (n != (int)n)
        return;
    COUNT(MPI_Send(d, (int)n, t, to, 0, world));
    COUNT(MPI_Isend(d, (int)n, t, to, 0, world, &req));
    COUNT(MPI_Recv(d, (int)n, t, to, 0, world, MPI_STATUS_IGNORE));
    COUNT(MPI_Irecv(d, (int)n, t, to, 0, world, &req));
    COUNT(MPI_Send_init(d, (int)n, t, to, 0, world, &req));
    COUNT(MPI_Sendrecv(d, (int)n, t, to, 0, e, 1, MPI_DOUBLE, to, 0, world, MPI_STATUS_IGNORE));
}

static void packing(MPI_Count n, MPI_Datatype t)
{
    MPI_Count position = 0;
    char capacity[8];
    COUNT(MPI_Pack_c(d, n, t, capacity, 8, &position, world));
    COUNT(MPI_Unpack_c(capacity, 8, &position, d, n, t, world));
    CHECK(position == 0);
}

/* Reductions are called only if t is a basic type. */
static void collectives(MPI_Count n, MPI_Datatype t)
{
    MPI_Request req;
    const MPI_Info no = MPI_INFO_NULL;
    COUNT(MPI_Bcast_c(d, n, t, 0, world));
    COUNT(MPI_Ibcast_c(d, n, t, 0, world, &req));
    COUNT(MPI_Bcast_init_c(d, n, t, 0, world, no, &req));
    COUNT(MPI_Gather_c(d, n, t, e, n, t, rank, world));
    COUNT(MPI_Igather_c(d, n, t, e, n, t, rank, world, &req));
    COUNT(MPI_Gather_init_c(d, n, t, e, n, t, rank, world, no, &req));
    COUNT(MPI_Scatter_c(d, n, t, e, n, t, rank, world));
    COUNT(MPI_Iscatter_c(d, n, t, e, n, t, rank, world, &req));
    COUNT(MPI_Scatter_init_c(d, n, t, e, n, t, rank, world, no, &req));
    COUNT(MPI_Allgather_c(d, n, t, e, n, t, world));
    COUNT(MPI_Iallgather_c(d, n, t, e, n, t, world, &req));
    COUNT(MPI_Allgather_init_c(d, n, t, e, n, t, world, no, &req));
    COUNT(MPI_Alltoall_c(d, n, t, e, n, t, world));
    COUNT(MPI_Ialltoall_c(d, n, t, e, n, t, world, &req));
    COUNT(MPI_Alltoall_init_c(d, n, t, e, n, t, world, no, &req));
    COUNT(MPI_Allgather_c(MPI_IN_PLACE, 0, t, e, n, t, world));
    COUNT(MPI_Alltoall_c(MPI_IN_PLACE, -1, t, e, n, t, world));
}

static void reductions(MPI_Count n)
{
    MPI_Request req;
    const MPI_Info no = MPI_INFO_NULL;
    COUNT(MPI_Reduce_c(d, e, n, MPI_DOUBLE, MPI_SUM, 0, world));
    COUNT(MPI_Ireduce_c(d, e, n, MPI_DOUBLE, MPI_SUM, 0, world, &req));
    COUNT(MPI_Reduce_init_c(d, e, n, MPI_DOUBLE, MPI_SUM, 0, world, no, &req));
    COUNT(MPI_Allreduce_c(d, e, n, MPI_DOUBLE, MPI_SUM, world));
    COUNT(MPI_Iallreduce_c(d, e, n, MPI_DOUBLE, MPI_SUM, world, &req));
    COUNT(MPI_Allreduce_init_c(d, e, n, MPI_DOUBLE, MPI_SUM, world, no, &req));
    COUNT(MPI_Allreduce_c(MPI_IN_PLACE, e, n, MPI_DOUBLE, MPI_SUM, world));
    COUNT(MPI_Reduce_local_c(d, e, n, MPI_DOUBLE, MPI_SUM));
}

int main(int argc, char **argv)
{
    MPI_Datatype big, wide, none, again;
    MPI_Count bytes, block = (MPI_Count)1 << 59; /* doubles: the most that a buffer may hold, too many for two ranks */
    int flag = 1;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_BYTE, &big));
    OK(MPI_Type_create_hvector_c(2, 1, (MPI_Count)1 << 40, MPI_BYTE, &wide)); /* 2 bytes in 2^40 + 1 */
    OK(MPI_Type_contiguous_c(0, MPI_BYTE, &none));
    OK(MPI_Type_commit(&big));
    OK(MPI_Type_commit(&wide));
    OK(MPI_Type_commit(&none));
    for (int i = 0; i < 3; i++) {
        static const MPI_Count counts[] = {(MPI_Count)1 << 61, INT64_MAX, INT64_MAX / 8 + 1};
        messages(counts[i], MPI_DOUBLE);
        packing(counts[i], MPI_DOUBLE);
        collectives(counts[i], MPI_DOUBLE);
        reductions(counts[i]);
    }
    messages(1 << 23, big); /* 2^63 bytes, by an int */
    messages(1 << 24, big);
    messages(INT32_MAX, wide);
    packing(1 << 23, big);
    collectives(1 << 24, big);
    collectives(INT32_MAX, wide);
    COUNT(MPI_Send_c(d, -1, MPI_DOUBLE, 0, 0, world));
    COUNT(MPI_Allreduce_c(d, e, INT64_MIN, MPI_DOUBLE, MPI_SUM, world));
    /* n for each rank */
    COUNT(MPI_Allgather_c(d, block, MPI_DOUBLE, e, block, MPI_DOUBLE, world));
    COUNT(MPI_Alltoall_c(d, block, MPI_DOUBLE, e, block, MPI_DOUBLE, world));
    COUNT(MPI_Gather_c(d, block, MPI_DOUBLE, e, block, MPI_DOUBLE, rank, world));
    COUNT(MPI_Scatter_c(d, block, MPI_DOUBLE, e, block, MPI_DOUBLE, rank, world));
    /* values that a type or an int cannot hold */
    LARGE(MPI_Type_contiguous_c(INT64_MAX, MPI_DOUBLE, &again));
    LARGE(MPI_Type_contiguous_c((MPI_Count)1 << 40, big, &again));
    LARGE(MPI_Type_vector_c((MPI_Count)1 << 40, 1, (MPI_Count)1 << 40, MPI_DOUBLE, &again));
    LARGE(MPI_Type_create_hvector_c(3, 1, (MPI_Count)1 << 62, MPI_DOUBLE, &again));
    LARGE(MPI_Pack_size_c(INT64_MAX, MPI_DOUBLE, world, &bytes));
    /* count 0 is valid with any type */
    OK(MPI_Sendrecv_c(d, INT64_MAX, none, (rank + 1) % size, 5, e, INT64_MAX, none, (rank + size - 1) % size, 5, world,
                      MPI_STATUS_IGNORE));
    OK(MPI_Bcast_c(d, (MPI_Count)1 << 62, none, 0, world));
    OK(MPI_Barrier(world));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Type_free(&big));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&none));
    OK(MPI_Finalize());
    return 0;
}
