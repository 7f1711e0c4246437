/* np: 2 3 4 : MPI_Isendrecv and _replace: rings of all sizes, strided types, every completing call, truncation, cancel, free, self, null */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { LONG = 300000, WINDOW = 8 };

static int rank, size;

/* A ring: each rank sends to the right and receives from the left, several at a time, completed by a different family each turn. */
static void ring(void)
{
    static const int lengths[] = {0, 1, 7, 1000, 20000, LONG};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int k = 0; k < 6; k++) {
        int n = lengths[k];
        int *out = malloc(((size_t)n * WINDOW + 1) * sizeof *out), *in = malloc(((size_t)n * WINDOW + 1) * sizeof *in);
        MPI_Request reqs[WINDOW];
        MPI_Status statuses[WINDOW];
        int count, flag = 0, done = 0, indices[WINDOW];
        for (int i = 0; i < n * WINDOW; i++) {
            out[i] = rank * 7 + i;
            in[i] = -1;
        }
        for (int i = 0; i < WINDOW; i++)
            if (i % 2)
                OK(MPI_Isendrecv(out + i * n, n, MPI_INT, right, i, in + i * n, n, MPI_INT, left, i, MPI_COMM_WORLD, &reqs[i]));
            else
                OK(MPI_Isendrecv_c(out + i * n, n, MPI_INT, right, i, in + i * n, n, MPI_INT, left, i, MPI_COMM_WORLD, &reqs[i]));
        switch (k % 3) {
        case 0:
            OK(MPI_Waitall(WINDOW, reqs, statuses));
            break;
        case 1:
            while (!flag)
                OK(MPI_Testall(WINDOW, reqs, &flag, statuses));
            break;
        default:
            for (MPI_Status some[WINDOW]; done < WINDOW; done += count) {
                OK(MPI_Waitsome(WINDOW, reqs, &count, indices, some));
                for (int i = 0; i < count; i++)
                    statuses[indices[i]] = some[i];
            }
        }
        for (int i = 0; i < WINDOW; i++) {
            OK(MPI_Get_count(&statuses[i], MPI_INT, &count));
            CHECK(count == n && statuses[i].MPI_SOURCE == left && statuses[i].MPI_TAG == i, "count %d source %d tag %d", count,
                  statuses[i].MPI_SOURCE, statuses[i].MPI_TAG);
        }
        for (int i = 0; i < n * WINDOW; i++)
            CHECK(in[i] == left * 7 + i, "length %d: item %d is %d", n, i, in[i]);
        free(out);
        free(in);
    }
}

/* Every second int is exchanged in place; those between stay. */
static void replace(void)
{
    static const int lengths[] = {0, 1, 50, 5000, LONG};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int k = 0; k < 10; k++) {
        int n = lengths[k / 2], *values = malloc((2 * (size_t)n + 1) * sizeof *values), count;
        MPI_Datatype type;
        MPI_Request req;
        MPI_Status status;
        OK(MPI_Type_vector(n, 1, 2, MPI_INT, &type));
        OK(MPI_Type_commit(&type));
        for (int i = 0; i < 2 * n; i++)
            values[i] = rank * 3 + i;
        if (k % 2)
            OK(MPI_Isendrecv_replace(values, 1, type, right, 5, left, MPI_ANY_TAG, MPI_COMM_WORLD, &req));
        else
            OK(MPI_Isendrecv_replace_c(values, 1, type, right, 5, left, 5, MPI_COMM_WORLD, &req));
        OK(MPI_Type_free(&type)); /* the request holds it */
        OK(MPI_Wait(&req, &status));
        CHECK(req == MPI_REQUEST_NULL && status.MPI_SOURCE == left && status.MPI_TAG == 5);
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == n);
        for (int i = 0; i < 2 * n; i++)
            CHECK(values[i] == (i % 2 ? rank : left) * 3 + i, "item %d of %d: %d", i, n, values[i]);
        free(values);
    }
}

/* A bidirectional shift without ends: MPI_PROC_NULL on both sides of the line. */
static void line(void)
{
    int value = rank, in = -5, up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank ? rank - 1 : MPI_PROC_NULL;
    MPI_Request req;
    MPI_Status status;
    OK(MPI_Isendrecv(&value, 1, MPI_INT, up, 1, &in, 1, MPI_INT, down, 1, MPI_COMM_WORLD, &req));
    OK(MPI_Wait(&req, &status));
    CHECK(in == (rank ? rank - 1 : -5) && status.MPI_SOURCE == down);
    OK(MPI_Isendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req));
    OK(MPI_Wait(&req, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Isendrecv_replace(&value, 1, MPI_INT, 0, 1, 0, 1, MPI_COMM_SELF, &req));
    OK(MPI_Wait(&req, &status));
    CHECK(value == rank && status.MPI_SOURCE == 0);
}

/* The receive is too short: the error is the request's. */
static void truncated(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out[4] = {1, 2, 3, 4}, in[4] = {0};
    char text[MPI_MAX_ERROR_STRING];
    int code, length;
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Isendrecv(out, 4, MPI_INT, right, 2, in, 2, MPI_INT, left, 2, MPI_COMM_WORLD, &req));
    code = MPI_Wait(&req, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_TRUNCATE && req == MPI_REQUEST_NULL, "code %d", code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "16 bytes"), "%s", text);
    CHECK(in[1] == 2 && in[2] == 0);
    code = MPI_Isendrecv(out, 1, MPI_INT, size, 2, in, 2, MPI_INT, left, 2, MPI_COMM_WORLD, &req);
    CHECK(code == MPI_ERR_RANK, "code %d", code);
    code = MPI_Isendrecv_replace(out, 1, MPI_INT, right, -4, left, 2, MPI_COMM_WORLD, &req);
    CHECK(code == MPI_ERR_TAG, "code %d", code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* A cancelled pair completes without a matching send; its own short send still arrives. A matched one is not cancelled. */
static void cancel(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out = rank, in = -1, flag;
    int *big = calloc(LONG, sizeof *big), *other = calloc(LONG, sizeof *other);
    MPI_Request req;
    MPI_Status status;
    OK(MPI_Isendrecv(&out, 1, MPI_INT, right, 30, &in, 1, MPI_INT, left, 31, MPI_COMM_WORLD, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && in == -1);
    OK(MPI_Recv(&in, 1, MPI_INT, left, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == left);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isendrecv(big, LONG, MPI_INT, right, 32, other, LONG, MPI_INT, left, 33, MPI_COMM_WORLD, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(left, 32, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "a cancelled send can be received");
    OK(MPI_Isendrecv(&out, 1, MPI_INT, right, 34, &in, 1, MPI_INT, left, 34, MPI_COMM_WORLD, &req));
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status(req, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag && in == left);
    free(big);
    free(other);
}

/* Freed in flight: both messages still arrive. One that never matches is given up by finalize. */
static void forget(void)
{
    static int out[LONG], in[LONG], never;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, token = 0;
    MPI_Request req;
    for (int i = 0; i < LONG; i++)
        out[i] = rank + i;
    OK(MPI_Isendrecv(out, LONG, MPI_INT, right, 40, in, LONG, MPI_INT, left, 40, MPI_COMM_WORLD, &req));
    OK(MPI_Request_free(&req));
    CHECK(req == MPI_REQUEST_NULL);
    while (in[LONG - 1] != left + LONG - 1 || in[0] != left)
        OK(MPI_Iprobe(left, 41, MPI_COMM_WORLD, &token, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isendrecv(&token, 1, MPI_INT, MPI_PROC_NULL, 42, &never, 1, MPI_INT, left, 43, MPI_COMM_WORLD, &req));
    OK(MPI_Request_free(&req));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    ring();
    replace();
    line();
    truncated();
    cancel();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    forget();
    OK(MPI_Finalize());
    return 0;
}
