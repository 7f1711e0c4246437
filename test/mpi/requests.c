/* np: 2 3 4 : the wait and test families, IN_STATUS, null and inactive requests, persistent, cancel, free */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { N = 64, LARGE = 200000 };

static int rank, size;

static void check_empty(const MPI_Status *status)
{
    int count = -1, flag = 1;
    OK(MPI_Get_count(status, MPI_INT, &count));
    OK(MPI_Test_cancelled(status, &flag));
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && status->MPI_ERROR == MPI_SUCCESS &&
              count == 0 && !flag,
          "source %d tag %d error %d count %d", status->MPI_SOURCE, status->MPI_TAG, status->MPI_ERROR, count);
}

static void nothing(void)
{
    MPI_Request reqs[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int index = 5, flag = 0, count = 0, indices[3], value;
    memset(&status, 0x55, sizeof status);
    OK(MPI_Wait(&reqs[0], &status));
    check_empty(&status);
    memset(&status, 0x55, sizeof status);
    OK(MPI_Test(&reqs[0], &flag, &status));
    CHECK(flag);
    check_empty(&status);
    OK(MPI_Waitany(3, reqs, &index, &status));
    CHECK(index == MPI_UNDEFINED);
    check_empty(&status);
    OK(MPI_Testany(3, reqs, &index, &flag, &status));
    CHECK(index == MPI_UNDEFINED && flag);
    memset(statuses, 0x55, sizeof statuses);
    OK(MPI_Waitall(3, reqs, statuses));
    for (int i = 0; i < 3; i++)
        check_empty(&statuses[i]);
    flag = 0;
    OK(MPI_Testall(3, reqs, &flag, statuses));
    CHECK(flag);
    OK(MPI_Waitsome(3, reqs, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Testsome(3, reqs, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status));
    CHECK(flag);
    /* an inactive persistent request counts as null, and stays allocated */
    OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &reqs[1]));
    memset(&status, 0x55, sizeof status);
    OK(MPI_Wait(&reqs[1], &status));
    check_empty(&status);
    OK(MPI_Waitany(3, reqs, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED && reqs[1] != MPI_REQUEST_NULL);
    OK(MPI_Request_free(&reqs[1]));
    CHECK(reqs[1] == MPI_REQUEST_NULL);
}

/* Calls one family of completion functions; returns the number of requests that it has completed. seen: counts them by index. */
static int complete_some(int family, MPI_Request *reqs, int *seen)
{
    MPI_Status statuses[N], status;
    int index, flag, count, indices[N];
    switch (family) {
    case 0:
        OK(MPI_Waitany(N, reqs, &index, &status));
        CHECK(status.MPI_TAG == 100 + index && !seen[index]++ && reqs[index] == MPI_REQUEST_NULL);
        return 1;
    case 1:
        OK(MPI_Testany(N, reqs, &index, &flag, &status));
        if (flag)
            CHECK(index != MPI_UNDEFINED && status.MPI_TAG == 100 + index && !seen[index]++);
        return flag;
    case 2:
    case 3:
        if (family == 2)
            OK(MPI_Waitsome(N, reqs, &count, indices, statuses));
        else
            OK(MPI_Testsome(N, reqs, &count, indices, statuses));
        CHECK(count >= (family == 2));
        for (int i = 0; i < count; i++)
            CHECK(statuses[i].MPI_TAG == 100 + indices[i] && !seen[indices[i]]++);
        return count;
    case 4:
        OK(MPI_Testall(N, reqs, &flag, statuses));
        if (!flag)
            CHECK(reqs[0] != MPI_REQUEST_NULL && reqs[N - 1] != MPI_REQUEST_NULL, "testall took some");
        return flag ? N : 0;
    default:
        for (int i = 0; i < N; i++) {
            flag = 0;
            while (!flag)
                OK(MPI_Request_get_status(reqs[i], &flag, &status));
            CHECK(status.MPI_TAG == 100 + i && reqs[i] != MPI_REQUEST_NULL);
            OK(MPI_Test(&reqs[i], &flag, &statuses[i]));
            CHECK(flag && reqs[i] == MPI_REQUEST_NULL);
        }
        return N;
    }
}

/* Rank 1 sends N messages with tags backwards; rank 0 completes them by every family. */
static void families(void)
{
    int values[N], seen[N], go = 0;
    MPI_Request reqs[N];
    MPI_Status statuses[N], status;
    for (int family = 0; family < 6; family++) {
        int done = 0, index, flag, count, indices[N];
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1) {
            OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = N - 1; i >= 0; i--) {
                int value = family * 1000 + i;
                OK(MPI_Send(&value, 1, MPI_INT, 0, 100 + i, MPI_COMM_WORLD));
            }
        }
        if (rank)
            continue;
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < N; i++)
            OK(MPI_Irecv(&values[i], 1, MPI_INT, 1, 100 + i, MPI_COMM_WORLD, &reqs[i]));
        OK(MPI_Testany(N, reqs, &index, &flag, &status));
        CHECK(!flag && index == MPI_UNDEFINED);
        OK(MPI_Testsome(N, reqs, &count, indices, statuses));
        CHECK(count == 0);
        OK(MPI_Testall(N, reqs, &flag, statuses));
        CHECK(!flag);
        OK(MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        while (done < N)
            done += complete_some(family, reqs, seen);
        for (int i = 0; i < N; i++)
            CHECK(values[i] == family * 1000 + i && reqs[i] == MPI_REQUEST_NULL, "family %d: value %d is %d", family, i,
                  values[i]);
    }
}

/* Two of four receives are too short: MPI_ERR_IN_STATUS and an MPI_ERROR in each status, which is else not written. */
static void in_status(void)
{
    MPI_Request reqs[4];
    MPI_Status statuses[4];
    int values[4][2], outcount, indices[4], code, failed = 0, total = 0;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int some = 0; some < 2; some++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1)
            for (int i = 0; i < 4; i++)
                OK(MPI_Send(values, i % 2 ? 2 : 1, MPI_INT, 0, i, MPI_COMM_WORLD));
        if (rank)
            continue;
        for (int i = 0; i < 4; i++)
            OK(MPI_Irecv(values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &reqs[i]));
        if (!some) {
            memset(statuses, 0x33, sizeof statuses);
            code = MPI_Waitall(4, reqs, statuses);
            CHECK(code == MPI_ERR_IN_STATUS, "code %d", code);
            for (int i = 0; i < 4; i++)
                CHECK(statuses[i].MPI_ERROR == (i % 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS) && reqs[i] == MPI_REQUEST_NULL,
                      "status %d: error %d", i, statuses[i].MPI_ERROR);
            continue;
        }
        while (total < 4) {
            code = MPI_Waitsome(4, reqs, &outcount, indices, statuses);
            for (int i = 0; i < outcount; i++) {
                int bad = indices[i] % 2;
                failed += bad;
                CHECK(code == MPI_SUCCESS ? !bad : statuses[i].MPI_ERROR == (bad ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
            }
            CHECK(code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS, "code %d", code);
            total += outcount;
        }
        CHECK(failed == 2);
    }
    /* without errors MPI_ERROR is not written */
    if (rank == 0) {
        OK(MPI_Isend(values, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Irecv(values[1], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &reqs[1]));
        statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 4711;
        OK(MPI_Waitall(2, reqs, statuses));
        CHECK(statuses[0].MPI_ERROR == 4711 && statuses[1].MPI_ERROR == 4711);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

static void persistent(void)
{
    static const int lengths[] = {1, 1000, LARGE};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int sync = 0; sync < 2; sync++)
        for (int k = 0; k < 3; k++) {
            int n = lengths[k], *out = malloc((size_t)n * sizeof *out), *in = malloc((size_t)n * sizeof *in);
            MPI_Request reqs[2];
            MPI_Status statuses[2];
            if (sync)
                OK(MPI_Ssend_init(out, n, MPI_INT, right, 3, MPI_COMM_WORLD, &reqs[0]));
            else
                OK(MPI_Send_init(out, n, MPI_INT, right, 3, MPI_COMM_WORLD, &reqs[0]));
            OK(MPI_Recv_init(in, n, MPI_INT, left, 3, MPI_COMM_WORLD, &reqs[1]));
            for (int turn = 0; turn < 20; turn++) {
                int index;
                for (int i = 0; i < n; i++) {
                    out[i] = rank * 1000 + turn + i;
                    in[i] = -1;
                }
                OK(MPI_Startall(2, reqs));
                if (turn % 3 == 0) {
                    OK(MPI_Waitall(2, reqs, statuses));
                } else {
                    OK(MPI_Waitany(2, reqs, &index, &statuses[0]));
                    OK(MPI_Waitany(2, reqs, &index, &statuses[1]));
                    OK(MPI_Waitany(2, reqs, &index, &statuses[0]));
                    CHECK(index == MPI_UNDEFINED);
                }
                CHECK(reqs[0] != MPI_REQUEST_NULL && reqs[1] != MPI_REQUEST_NULL);
                for (int i = 0; i < n; i++)
                    CHECK(in[i] == left * 1000 + turn + i, "turn %d item %d: %d", turn, i, in[i]);
            }
            OK(MPI_Request_free(&reqs[0]));
            OK(MPI_Request_free(&reqs[1]));
            free(out);
            free(in);
        }
}

static void cancel(void)
{
    int value = 5, flag = 0, count;
    MPI_Request req;
    MPI_Status status;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* a matched receive completes normally */
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 79, &value, 1, MPI_INT, rank, 79, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 78, MPI_COMM_WORLD, &req));
    OK(MPI_Send(&rank, 1, MPI_INT, rank, 78, MPI_COMM_WORLD));
    flag = 0;
    while (!flag)
        OK(MPI_Request_get_status(req, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(!flag && count == 1 && value == rank);
    /* a cancelled receive matches no later message */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    value = -1;
    OK(MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 80, MPI_COMM_WORLD, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    int other = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + size - 1) % size, 80, &other, 1, MPI_INT, (rank + 1) % size, 80, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(value == -1 && other == (rank + 1) % size);
}

/* Requests freed in flight still deliver, also at finalize. */
static void forget(void)
{
    int *out = malloc(LARGE * sizeof *out), *in = malloc(LARGE * sizeof *in), right = (rank + 1) % size,
        left = (rank + size - 1) % size;
    MPI_Request req;
    for (int i = 0; i < LARGE; i++)
        out[i] = rank + i;
    for (int turn = 0; turn < 30; turn++) {
        int n = turn % 2 ? LARGE : 3;
        OK(MPI_Isend(out, n, MPI_INT, right, turn, MPI_COMM_WORLD, &req));
        OK(MPI_Request_free(&req));
        CHECK(req == MPI_REQUEST_NULL);
        memset(in, 0, (size_t)n * sizeof *in);
        OK(MPI_Recv(in, n, MPI_INT, left, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++)
            CHECK(in[i] == left + i);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* every receive is complete */
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    nothing();
    families();
    in_status();
    persistent();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    cancel();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    forget();
    OK(MPI_Finalize());
    return 0;
}
