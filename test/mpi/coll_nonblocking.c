/* np: 1 2 3 4 8 : nonblocking and persistent collectives, overlapping, several outstanding, waited for in another order */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

/* All eight at once on one communicator, with messages and a blocking collective in between. */
static void all_at_once(int n, int turn)
{
    size_t bytes = (size_t)n * (size_t)size * sizeof(int);
    enum { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, BARRIER, KINDS };
    int *from[KINDS], *to[KINDS], root = turn % size, sum = -1, value = -1;
    MPI_Request reqs[KINDS];
    for (int k = 0; k < KINDS; k++) {
        from[k] = malloc(bytes + 4);
        to[k] = malloc(bytes + 4);
        for (int i = 0; i < n * size; i++) {
            from[k][i] = rank * 10000 + i + k;
            to[k][i] = k == BCAST && rank == root ? from[k][i] : -1;
        }
    }
    OK(MPI_Ibcast(to[BCAST], n, MPI_INT, root, MPI_COMM_WORLD, &reqs[BCAST]));
    OK(MPI_Ireduce(from[REDUCE], to[REDUCE], n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &reqs[REDUCE]));
    OK(MPI_Iallreduce(from[ALLREDUCE], to[ALLREDUCE], n, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &reqs[ALLREDUCE]));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)); /* a blocking one in between */
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Igather(from[GATHER], n, MPI_INT, to[GATHER], n, MPI_INT, root, MPI_COMM_WORLD, &reqs[GATHER]));
    OK(MPI_Iscatter(from[SCATTER], n, MPI_INT, to[SCATTER], n, MPI_INT, root, MPI_COMM_WORLD, &reqs[SCATTER]));
    OK(MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % size, 0, &value, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(value == turn);
    OK(MPI_Iallgather(from[ALLGATHER], n, MPI_INT, to[ALLGATHER], n, MPI_INT, MPI_COMM_WORLD, &reqs[ALLGATHER]));
    OK(MPI_Ialltoall(from[ALLTOALL], n, MPI_INT, to[ALLTOALL], n, MPI_INT, MPI_COMM_WORLD, &reqs[ALLTOALL]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &reqs[BARRIER]));
    if (turn % 3 == 0) {
        OK(MPI_Waitall(KINDS, reqs, MPI_STATUSES_IGNORE));
    } else if (turn % 3 == 1) { /* a different order on each rank */
        for (int k = 0; k < KINDS; k++)
            OK(MPI_Wait(&reqs[(k * 3 + rank) % KINDS], MPI_STATUS_IGNORE));
    } else {
        for (int left = KINDS, index; left; left--) {
            OK(MPI_Waitany(KINDS, reqs, &index, MPI_STATUS_IGNORE));
            CHECK(index != MPI_UNDEFINED);
        }
    }
    for (int i = 0; i < n; i++) {
        CHECK(to[BCAST][i] == root * 10000 + i + BCAST, "bcast of %d: item %d", n, i);
        if (rank == root)
            CHECK(to[REDUCE][i] == size * (size - 1) / 2 * 10000 + size * (i + REDUCE), "reduce of %d: item %d", n, i);
        CHECK(to[ALLREDUCE][i] == (size - 1) * 10000 + i + ALLREDUCE, "allreduce of %d: item %d", n, i);
        CHECK(to[SCATTER][i] == root * 10000 + rank * n + i + SCATTER, "scatter of %d: item %d", n, i);
    }
    for (int i = 0; i < n * size; i++) {
        if (rank == root)
            CHECK(to[GATHER][i] == i / n * 10000 + i % n + GATHER, "gather of %d: item %d", n, i);
        CHECK(to[ALLGATHER][i] == i / n * 10000 + i % n + ALLGATHER, "allgather of %d: item %d", n, i);
        CHECK(to[ALLTOALL][i] == i / n * 10000 + rank * n + i % n + ALLTOALL, "alltoall of %d: item %d", n, i);
    }
    for (int k = 0; k < KINDS; k++) {
        free(from[k]);
        free(to[k]);
    }
}

/* Many outstanding of one kind. */
static void outstanding(void)
{
    enum { MANY = 300 };
    int values[MANY], sums[MANY];
    MPI_Request reqs[MANY];
    for (int i = 0; i < MANY; i++) {
        values[i] = rank + i;
        OK(MPI_Iallreduce(&values[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &reqs[i]));
    }
    for (int i = MANY - 1; i >= 0; i--)
        OK(MPI_Wait(&reqs[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++)
        CHECK(sums[i] == size * (size - 1) / 2 + size * i, "number %d: %d", i, sums[i]);
}

/* The barrier must not end before the last rank enters: rank 0 enters once the others have reported that they still wait. */
static void barrier(void)
{
    MPI_Request req;
    int flag = 0;
    for (int i = 1; rank == 0 && i < size; i++)
        OK(MPI_Recv(&flag, 1, MPI_INT, i, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &req));
    if (rank) {
        for (int i = 0; i < 100 && !flag; i++)
            OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "the barrier ended before rank 0 came");
        OK(MPI_Send(&flag, 1, MPI_INT, 0, 50, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

static void persistent(int n)
{
    enum { BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, BARRIER, KINDS };
    MPI_Request reqs[KINDS];
    int *from = malloc((size_t)n * (size_t)size * sizeof(int)), *to[KINDS];
    for (int k = 0; k < KINDS; k++)
        to[k] = malloc((size_t)n * (size_t)size * sizeof(int));
    OK(MPI_Bcast_init(to[BCAST], n, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[BCAST]));
    OK(MPI_Reduce_init(from, to[REDUCE], n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[REDUCE]));
    OK(MPI_Allreduce_init(from, to[ALLREDUCE], n, MPI_INT, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[ALLREDUCE]));
    OK(MPI_Allgather_init(from, n, MPI_INT, to[ALLGATHER], n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[ALLGATHER]));
    OK(MPI_Alltoall_init(from, n, MPI_INT, to[ALLTOALL], n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[ALLTOALL]));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[BARRIER]));
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < n * size; i++) {
            from[i] = rank * 10000 + turn * 7 + i;
            for (int k = 0; k < KINDS; k++)
                to[k][i] = -1;
        }
        for (int i = 0; rank == size - 1 && i < n; i++)
            to[BCAST][i] = turn + i;
        OK(MPI_Startall(KINDS, reqs));
        if (turn % 2)
            OK(MPI_Waitall(KINDS, reqs, MPI_STATUSES_IGNORE));
        else
            for (int k = KINDS - 1; k >= 0; k--)
                OK(MPI_Wait(&reqs[k], MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++) {
            CHECK(reqs[0] != MPI_REQUEST_NULL && to[BCAST][i] == turn + i, "turn %d: bcast item %d is %d", turn, i, to[BCAST][i]);
            CHECK(to[ALLREDUCE][i] == turn * 7 + i, "turn %d: allreduce item %d is %d", turn, i, to[ALLREDUCE][i]);
            if (rank == 0)
                CHECK(to[REDUCE][i] == size * (size - 1) / 2 * 10000 + size * (turn * 7 + i), "turn %d: reduce item %d", turn, i);
        }
        for (int i = 0; i < n * size; i++) {
            CHECK(to[ALLGATHER][i] == i / n * 10000 + turn * 7 + i % n, "turn %d: allgather item %d is %d", turn, i,
                  to[ALLGATHER][i]);
            CHECK(to[ALLTOALL][i] == i / n * 10000 + turn * 7 + rank * n + i % n, "turn %d: alltoall item %d", turn, i);
        }
    }
    for (int k = 0; k < KINDS; k++) {
        OK(MPI_Request_free(&reqs[k]));
        free(to[k]);
    }
    free(from);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 16, 1000, 30000};
    check_start(&argc, &argv, &rank, &size);
    for (int k = 0; k < 4; k++)
        for (int turn = 0; turn < 6; turn++)
            all_at_once(lengths[k], turn);
    outstanding();
    barrier();
    for (int k = 0; k < 4; k++)
        persistent(lengths[k]);
    OK(MPI_Finalize());
    return 0;
}
