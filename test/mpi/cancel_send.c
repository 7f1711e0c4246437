/* np: 2 3 : a cancelled send completes without its receive, by any completing call; it is either cancelled or received */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { LONG = 65536, MANY = 600, TOLD = 5, DATA = 6 };

static int rank, size;
static int *values;

static int is_cancelled(MPI_Status *status)
{
    int flag;
    OK(MPI_Test_cancelled(status, &flag));
    return flag;
}

/* The receiver confirms that no message is left. */
static void nothing_came(void)
{
    int flag = 0;
    if (rank == 1) {
        OK(MPI_Recv(&flag, 1, MPI_INT, 0, TOLD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Iprobe(MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a cancelled message is there");
    } else if (rank == 0) {
        OK(MPI_Send(&flag, 1, MPI_INT, 1, TOLD, MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void one_at_a_time(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag, index, count;
    for (int how = 0; how < 8 && rank == 0; how++) {
        OK(how % 2 ? MPI_Issend(values, how > 4 ? 0 : 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request)
                   : MPI_Isend(values, LONG, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Cancel(&request)); /* a second cancel has no effect */
        flag = how > 3;
        while (!flag) {
            if (how == 0)
                OK(MPI_Test(&request, &flag, &status));
            else if (how == 1)
                OK(MPI_Testall(1, &request, &flag, &status));
            else if (how == 2)
                OK(MPI_Testany(1, &request, &index, &flag, &status));
            else
                OK(MPI_Request_get_status(request, &flag, &status));
        }
        if (how == 3 || how == 4)
            OK(MPI_Wait(&request, &status));
        else if (how == 5)
            OK(MPI_Waitall(1, &request, &status));
        else if (how == 6)
            OK(MPI_Waitany(1, &request, &index, &status));
        else if (how == 7)
            OK(MPI_Waitsome(1, &request, &count, &index, &status));
        CHECK(is_cancelled(&status) && request == MPI_REQUEST_NULL, "way %d", how);
    }
    nothing_came();
}

/* A cancelled persistent send may be started again, and is then received. */
static void persistent(void)
{
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        OK(MPI_Send_init(values, LONG, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        for (int i = 0; i < 3; i++) {
            OK(MPI_Start(&request));
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            CHECK(is_cancelled(&status));
        }
        OK(MPI_Send(values, 1, MPI_INT, 1, TOLD, MPI_COMM_WORLD));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, &status));
        CHECK(!is_cancelled(&status));
        OK(MPI_Request_free(&request));
    } else if (rank == 1) {
        OK(MPI_Recv(values, 1, MPI_INT, 0, TOLD, MPI_COMM_WORLD, &status));
        OK(MPI_Recv(values, LONG, MPI_INT, 0, DATA, MPI_COMM_WORLD, &status));
        CHECK(values[LONG - 1] == LONG - 1);
    }
    nothing_came();
}

/* More than the receiver's credit: some are announced, the rest waits at the sender. Every third is not cancelled, and is received. */
static void many(void)
{
    static MPI_Request requests[MANY];
    static int kept[MANY];
    MPI_Status status;
    if (rank == 0) {
        for (int i = 0; i < MANY; i++) {
            kept[i] = i;
            OK(i % 2 ? MPI_Issend(&kept[i], 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &requests[i])
                     : MPI_Isend(&values[i], LONG, MPI_INT, 1, DATA, MPI_COMM_WORLD, &requests[i]));
        }
        for (int i = MANY - 1; i >= 0; i--)
            if (i % 3)
                OK(MPI_Cancel(&requests[i]));
        for (int i = 0; i < MANY; i++)
            if (i % 3) {
                OK(MPI_Wait(&requests[i], &status));
                CHECK(is_cancelled(&status), "send %d", i);
            }
        OK(MPI_Send(kept, 1, MPI_INT, 1, TOLD, MPI_COMM_WORLD));
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Recv(kept, 1, MPI_INT, 0, TOLD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < MANY; i += 3) {
            OK(MPI_Recv(values, LONG, MPI_INT, 0, DATA, MPI_COMM_WORLD, &status));
            CHECK(values[0] == i, "%d in place of %d", values[0], i);
        }
    }
    nothing_came();
}

/* The receive races with the cancel: both sides report the same outcome. */
static void race(void)
{
    int gone, flag;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < 200; i++) {
        if (rank == 0) {
            values[0] = i;
            OK(MPI_Isend(values, LONG, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
            for (int k = i % 7; k > 0; k--)
                OK(MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            gone = is_cancelled(&status);
            OK(MPI_Send(&gone, 1, MPI_INT, 1, TOLD, MPI_COMM_WORLD));
        } else if (rank == 1) {
            OK(MPI_Irecv(values, LONG, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
            OK(MPI_Recv(&gone, 1, MPI_INT, 0, TOLD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (gone)
                OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            CHECK(is_cancelled(&status) == gone, "round %d", i);
            CHECK(gone || values[0] == i, "round %d", i);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* a receive must not match the next round's message */
    }
    nothing_came();
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    values = malloc((LONG + MANY) * sizeof *values);
    for (int i = 0; i < LONG + MANY; i++)
        values[i] = i;
    one_at_a_time();
    persistent();
    many();
    race();
    free(values);
    OK(MPI_Finalize());
    return 0;
}
