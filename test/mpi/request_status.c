/* np: 2 3 : MPI_Request_get_status_all, _any, _some: nothing is completed, empty and inactive ones, progress, failed requests */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { N = 6 };

static int rank, size;

static int is_empty(const MPI_Status *status)
{
    int count = -1;
    OK(MPI_Get_count(status, MPI_INT, &count));
    return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && status->MPI_ERROR == MPI_SUCCESS && count == 0;
}

static void nothing(void)
{
    MPI_Request reqs[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int flag = 0, index = 3, count = 3, indices[3], value;
    OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &reqs[1])); /* inactive counts as null */
    memset(statuses, 0x55, sizeof statuses);
    OK(MPI_Request_get_status_all(3, reqs, &flag, statuses));
    CHECK(flag && is_empty(&statuses[0]) && is_empty(&statuses[1]) && is_empty(&statuses[2]));
    memset(statuses, 0x55, sizeof statuses);
    flag = 0;
    OK(MPI_Request_get_status_any(3, reqs, &index, &flag, statuses));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(statuses));
    OK(MPI_Request_get_status_some(3, reqs, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag && reqs[1] != MPI_REQUEST_NULL);
    OK(MPI_Request_free(&reqs[1]));
}

/* Messages arrive one after the other; each call sees those that have come, as often as it is made. */
static void one_by_one(void)
{
    int values[N], go = 0, flag, index, count, indices[N];
    MPI_Request reqs[N + 1];
    MPI_Status status, statuses[N + 1];
    if (rank == 1) {
        for (int i = 0; i < N; i++) {
            OK(MPI_Recv(&go, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
        }
        return;
    }
    if (rank)
        return;
    for (int i = 0; i < N; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &reqs[i]));
    reqs[N] = MPI_REQUEST_NULL;
    OK(MPI_Request_get_status_any(N + 1, reqs, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED);
    OK(MPI_Request_get_status_some(N + 1, reqs, &count, indices, statuses));
    CHECK(count == 0);
    for (int i = 0; i < N; i++) {
        OK(MPI_Request_get_status_all(N + 1, reqs, &flag, statuses));
        CHECK(!flag);
        OK(MPI_Send(&go, 1, MPI_INT, 1, 99, MPI_COMM_WORLD));
        for (count = 0; count < i + 1;)
            OK(MPI_Request_get_status_some(N + 1, reqs, &count, indices, i % 2 ? MPI_STATUSES_IGNORE : statuses));
        CHECK(count == i + 1 && indices[i] == i);
        OK(MPI_Request_get_status_some(N + 1, reqs, &count, indices, statuses)); /* the same again */
        for (int k = 0; k < count; k++)
            CHECK(indices[k] == k && statuses[k].MPI_TAG == k && statuses[k].MPI_SOURCE == 1);
        OK(MPI_Request_get_status_any(N + 1, reqs, &index, &flag, &status));
        CHECK(flag && index >= 0 && index <= i && status.MPI_TAG == index && reqs[index] != MPI_REQUEST_NULL);
    }
    memset(statuses, 0x55, sizeof statuses);
    OK(MPI_Request_get_status_all(N + 1, reqs, &flag, statuses));
    CHECK(flag && is_empty(&statuses[N]));
    for (int i = 0; i < N; i++)
        CHECK(statuses[i].MPI_TAG == i && reqs[i] != MPI_REQUEST_NULL);
    OK(MPI_Waitall(N, reqs, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(values[i] == i);
}

/* An operation's error is reported by the call that completes it. */
static void failed(void)
{
    int out[2] = {1, 2}, in, flag, code, index;
    MPI_Request req;
    MPI_Status status;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &req));
    OK(MPI_Send(out, 2, MPI_INT, rank, 3, MPI_COMM_WORLD));
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status_all(1, &req, &flag, &status));
    OK(MPI_Request_get_status_any(1, &req, &index, &flag, &status));
    CHECK(flag && index == 0);
    code = MPI_Wait(&req, &status);
    CHECK(code == MPI_ERR_TRUNCATE, "code %d", code);
    code = MPI_Request_get_status_all(-1, &req, &flag, &status);
    CHECK(code == MPI_ERR_COUNT, "code %d", code);
    code = MPI_Request_get_status_some(2, NULL, &flag, &index, &status);
    CHECK(code == MPI_ERR_ARG, "code %d", code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    nothing();
    one_by_one();
    failed();
    OK(MPI_Finalize());
    return 0;
}
