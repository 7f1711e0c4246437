/* np: 1 2 3 : probe and iprobe, MPI_PROC_NULL, sendrecv_replace, self messages, counts in statuses */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

static void probe(void)
{
    static const int lengths[] = {0, 1, 50, 4096, 20000, 500000};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char *out = malloc((size_t)lengths[i] + 1), *in;
        int count = -1, flag = 0;
        MPI_Request req;
        MPI_Status status;
        check_fill(out, (size_t)lengths[i], (unsigned)rank + 10);
        OK(MPI_Isend(out, lengths[i], MPI_BYTE, right, (int)i, MPI_COMM_WORLD, &req));
        if (i % 2)
            OK(MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        else
            while (!flag)
                OK(MPI_Iprobe(MPI_ANY_SOURCE, (int)i, MPI_COMM_WORLD, &flag, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == lengths[i] && status.MPI_SOURCE == left && status.MPI_TAG == (int)i, "probed %d bytes of %d", count,
              lengths[i]);
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == (lengths[i] % 4 ? MPI_UNDEFINED : lengths[i] / 4), "%d ints in %d bytes", count, lengths[i]);
        OK(MPI_Iprobe(left, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        in = malloc((size_t)lengths[i] + 1);
        OK(MPI_Recv(in, lengths[i], MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(check_wrong(in, (size_t)lengths[i], (unsigned)left + 10) == (size_t)lengths[i]);
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        free(in);
        free(out);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    int flag = 1;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "a message is left over");
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_null(const MPI_Status *status)
{
    int count;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0, "source %d tag %d count %d",
          status->MPI_SOURCE, status->MPI_TAG, count);
}

static void proc_null(void)
{
    int value = 7, flag = 0;
    MPI_Status status;
    MPI_Request req;
    OK(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    OK(MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    check_null(&status);
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req));
    OK(MPI_Wait(&req, &status));
    check_null(&status);
    OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    check_null(&status);
    OK(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag);
    check_null(&status);
    OK(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    check_null(&status);
    OK(MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Start(&req));
        OK(MPI_Wait(&req, &status));
        check_null(&status);
    }
    OK(MPI_Request_free(&req));
    CHECK(value == 7);
}

static void replace(void)
{
    static const int lengths[] = {1, 100, 300, 5000, 200000};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int *values = malloc((size_t)lengths[i] * sizeof *values), count;
        MPI_Status status;
        for (int k = 0; k < lengths[i]; k++)
            values[k] = rank * 1000000 + k;
        OK(MPI_Sendrecv_replace(values, lengths[i], MPI_INT, right, 4, left, 4, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == lengths[i] && status.MPI_SOURCE == left);
        for (int k = 0; k < lengths[i]; k++)
            CHECK(values[k] == left * 1000000 + k, "item %d is %d", k, values[k]);
        free(values);
    }
}

/* Self messages on both predefined communicators, in every order. */
static void self(void)
{
    enum { LARGE = 300000 };
    unsigned char *out = malloc(LARGE), *in = malloc(LARGE);
    MPI_Request reqs[2];
    MPI_Comm comms[2] = {MPI_COMM_SELF, MPI_COMM_WORLD};
    for (int turn = 0; turn < 8; turn++) {
        MPI_Comm comm = comms[turn & 1];
        int me = turn & 1 ? rank : 0, bytes = turn & 2 ? LARGE : 16, send_first = turn & 4;
        check_fill(out, (size_t)bytes, (unsigned)turn);
        memset(in, 0, (size_t)bytes);
        for (int step = 0; step < 2; step++)
            if ((step == 0) == (send_first != 0))
                OK(MPI_Isend(out, bytes, MPI_BYTE, me, turn, comm, &reqs[step]));
            else
                OK(MPI_Irecv(in, bytes, MPI_BYTE, me, turn, comm, &reqs[step]));
        OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
        CHECK(check_wrong(in, (size_t)bytes, (unsigned)turn) == (size_t)bytes, "turn %d", turn);
    }
    free(out);
    free(in);
}

static void statuses(void)
{
    MPI_Status status, copy;
    int value;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_source(&status, 12));
    OK(MPI_Status_set_tag(&status, 13));
    OK(MPI_Status_set_error(&status, MPI_ERR_OTHER));
    copy = status;
    OK(MPI_Status_get_source(&copy, &value));
    CHECK(value == 12);
    OK(MPI_Status_get_tag(&copy, &value));
    CHECK(value == 13);
    OK(MPI_Status_get_error(&copy, &value));
    CHECK(value == MPI_ERR_OTHER);
    OK(MPI_Test_cancelled(&copy, &value));
    CHECK(!value);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    probe();
    proc_null();
    replace();
    self();
    statuses();
    OK(MPI_Finalize());
    return 0;
}
