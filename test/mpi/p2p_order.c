/* np: 2 3 4 : matching: order per sender, tags out of order, wildcards, thousands posted and thousands unexpected */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { MANY = 5000 };

static int rank, size;

/* Messages of one rank are received in order, also by wildcards. */
static void keep_order(void)
{
    int each = 500;
    if (rank) {
        for (int i = 0; i < each; i++) {
            int value[2] = {rank, i};
            OK(MPI_Send(value, 2, MPI_INT, 0, i % 7, MPI_COMM_WORLD));
        }
        return;
    }
    int *next = calloc((size_t)size, sizeof *next);
    for (int i = 0; i < each * (size - 1); i++) {
        int value[2];
        MPI_Status status;
        OK(MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_SOURCE == value[0] && status.MPI_TAG == value[1] % 7);
        CHECK(value[1] == next[value[0]], "from %d: %d came, %d was due", value[0], value[1], next[value[0]]);
        next[value[0]]++;
    }
    free(next);
}

/* Tags received in another order than sent: all are unexpected. Isend, since MPI guarantees no buffers: beyond the credits only the
 * announcement of a message is sent. */
static void unexpected(void)
{
    int value, first = -1;
    if (rank == 1) {
        int *values = malloc(MANY * sizeof *values);
        MPI_Request *reqs = malloc(MANY * sizeof *reqs);
        for (int i = 0; i < MANY; i++) {
            values[i] = i;
            OK(MPI_Isend(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &reqs[i]));
        }
        OK(MPI_Send(&first, 1, MPI_INT, 0, MANY, MPI_COMM_WORLD));
        OK(MPI_Waitall(MANY, reqs, MPI_STATUSES_IGNORE));
        free(values);
        free(reqs);
    } else if (rank == 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, 1, MANY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == -1);
        for (int i = 0; i < MANY; i++) {
            int tag = (int)((long)i * 1237 % MANY); /* 1237 and 5000 are coprime: every tag once */
            OK(MPI_Recv(&value, 1, MPI_INT, i % 2 ? 1 : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(value == tag, "tag %d brought %d", tag, value);
        }
    }
}

/* Thousands of posted receives, matched in reverse order. */
static void posted(void)
{
    int *values = malloc(MANY * sizeof *values), go = 1;
    MPI_Request *reqs = malloc(MANY * sizeof *reqs);
    MPI_Status *statuses = malloc(MANY * sizeof *statuses);
    if (rank == 0) {
        for (int i = 0; i < MANY; i++)
            OK(MPI_Irecv(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &reqs[i]));
        OK(MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Waitall(MANY, reqs, statuses));
        for (int i = 0; i < MANY; i++)
            CHECK(values[i] == 3 * i && statuses[i].MPI_TAG == i && reqs[i] == MPI_REQUEST_NULL, "receive %d got %d", i,
                  values[i]);
    } else if (rank == 1) {
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = MANY - 1; i >= 0; i--) {
            int value = 3 * i;
            OK(MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
        }
    }
    free(values);
    free(reqs);
    free(statuses);
}

/* A wildcard receive posted between two exact ones matches by post order. */
static void wildcard_order(void)
{
    int got[4] = {-1, -1, -1, -1};
    MPI_Request reqs[4];
    if (rank == 0) {
        OK(MPI_Irecv(&got[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[1]));
        OK(MPI_Irecv(&got[2], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &reqs[2]));
        OK(MPI_Irecv(&got[3], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[3]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1)
        for (int i = 0; i < 4; i++)
            OK(MPI_Send(&i, 1, MPI_INT, 0, i < 3 ? 5 : 6, MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; i++)
            CHECK(got[i] == i, "receive %d got message %d", i, got[i]);
    }
}

/* Small after large with one tag: a rendezvous must not be overtaken. */
static void no_overtaking(void)
{
    enum { LARGE = 1 << 20 };
    unsigned char *buf = calloc(1, LARGE);
    MPI_Status status;
    int count;
    for (int turn = 0; turn < 6; turn++) {
        if (rank == 1) {
            MPI_Request req;
            check_fill(buf, LARGE, (unsigned)turn);
            OK(MPI_Isend(buf, LARGE, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &req));
            OK(MPI_Send(buf, 4, MPI_BYTE, 0, 9, MPI_COMM_WORLD));
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        } else if (rank == 0) {
            OK(MPI_Recv(buf, LARGE, MPI_BYTE, turn % 2 ? 1 : MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == LARGE && check_wrong(buf, LARGE, (unsigned)turn) == LARGE, "turn %d: %d bytes came first", turn,
                  count);
            OK(MPI_Recv(buf, LARGE, MPI_BYTE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == 4);
        }
    }
    free(buf);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    keep_order();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unexpected();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    posted();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    wildcard_order();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    no_overtaking();
    OK(MPI_Finalize());
    return 0;
}
