/* np: 2 3 4 : matched probes: order, wildcards, matched once only, truncation, cancel by the sender, threads, left at finalize */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"
#include "expect.h"

enum { LONG = 50000, MANY = 400, THREADS = 4 };

static int rank, size;
static int *values;

static int elements(const MPI_Status *status)
{
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    return count;
}

/* Lengths are learned from the probe; short, by rendezvous, empty; blocking and nonblocking forms. */
static void lengths(void)
{
    static const int all[] = {0, 1, 100, LONG};
    for (int k = 0; k < 16; k++) {
        int n = all[k / 4], left = (rank + size - 1) % size, right = (rank + 1) % size, flag = 0, *in;
        MPI_Request req, out;
        MPI_Message message;
        MPI_Status status;
        for (int i = 0; i < n; i++)
            values[i] = rank * 5 + i;
        OK(MPI_Isend(values, n, MPI_INT, right, k, MPI_COMM_WORLD, &out));
        if (k % 2)
            OK(MPI_Mprobe(k % 4 == 1 ? MPI_ANY_SOURCE : left, k % 4 == 1 ? k : MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
        while (k % 2 == 0 && !flag)
            OK(MPI_Improbe(left, k, MPI_COMM_WORLD, &flag, &message, &status));
        CHECK(status.MPI_SOURCE == left && status.MPI_TAG == k && elements(&status) == n);
        CHECK(message != MPI_MESSAGE_NULL && MPI_Message_fromint(MPI_Message_toint(message)) == message);
        OK(MPI_Iprobe(left, k, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "found twice");
        in = malloc((size_t)n * sizeof *in + 1);
        memset(&status, 0x55, sizeof status);
        switch (k % 4) {
        case 0:
            OK(MPI_Mrecv(in, n, MPI_INT, &message, &status));
            break;
        case 1:
            OK(MPI_Mrecv_c(in, n, MPI_INT, &message, &status));
            break;
        case 2:
            OK(MPI_Imrecv(in, n, MPI_INT, &message, &req));
            OK(MPI_Wait(&req, &status));
            break;
        default:
            OK(MPI_Imrecv_c(in, n, MPI_INT, &message, &req));
            OK(MPI_Wait(&req, &status));
        }
        CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == left && status.MPI_TAG == k && elements(&status) == n);
        for (int i = 0; i < n; i++)
            CHECK(in[i] == left * 5 + i);
        OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        free(in);
    }
}

/* Messages of one tag are matched in the order sent, and may be received in any order. Later ones go to other receives meanwhile. */
static void order(void)
{
    MPI_Message messages[MANY];
    MPI_Status status;
    int value, flag;
    if (rank == 1) { /* nonblocking: a matched message that is not received yet may hold up a send */
        MPI_Request reqs[MANY + 1];
        for (int i = 0; i < MANY + 1; i++) {
            values[i] = i;
            OK(MPI_Isend(&values[i], i % 50 == 7 ? LONG / 100 : 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &reqs[i]));
        }
        OK(MPI_Waitall(MANY + 1, reqs, MPI_STATUSES_IGNORE));
    }
    if (rank)
        return;
    for (int i = 0; i < MANY; i++)
        OK(MPI_Mprobe(i % 2 ? 1 : MPI_ANY_SOURCE, i % 3 ? 3 : MPI_ANY_TAG, MPI_COMM_WORLD, &messages[i], &status));
    OK(MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(value == MANY, "%d", value);
    for (int i = MANY - 1; i >= 0; i--) {
        int buffer[LONG / 100];
        OK(MPI_Mrecv(buffer, LONG / 100, MPI_INT, &messages[i], &status));
        CHECK(buffer[0] == i, "%d in place of %d", buffer[0], i);
    }
    OK(MPI_Improbe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &messages[0], &status));
    CHECK(!flag);
}

/* Each sender's message has another type; the probe shows the source (as in the standard's example of probe). */
static void by_source(void)
{
    int i = rank;
    double x = rank + 0.5;
    MPI_Message message;
    MPI_Status status;
    if (rank)
        OK(MPI_Send(rank % 2 ? (void *)&i : (void *)&x, 1, rank % 2 ? MPI_INT : MPI_DOUBLE, 0, 4, MPI_COMM_WORLD));
    for (int k = 1; k < size && rank == 0; k++) {
        OK(MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status));
        if (status.MPI_SOURCE % 2) {
            OK(MPI_Mrecv(&i, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
            CHECK(i == status.MPI_SOURCE);
        } else {
            OK(MPI_Mrecv(&x, 1, MPI_DOUBLE, &message, MPI_STATUS_IGNORE));
            CHECK(x == status.MPI_SOURCE + 0.5);
        }
    }
}

static void no_process(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request req;
    MPI_Status status;
    int flag = 0;
    OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && !elements(&status));
    memset(&status, 0x55, sizeof status);
    OK(MPI_Mrecv(values, 1, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && !elements(&status));
    OK(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    CHECK(flag && message == MPI_MESSAGE_NO_PROC && MPI_Message_fromint(MPI_Message_toint(message)) == message);
    OK(MPI_Imrecv(values, 1, MPI_INT, &message, &req));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&req, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && !elements(&status));
}

static int handled;
static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled++;
}

/* A receive that is too short; its error goes to the handler of the probed communicator. */
static void errors(void)
{
    MPI_Message message = MPI_MESSAGE_NULL, copy;
    MPI_Errhandler handler;
    MPI_Request req;
    MPI_Comm comm;
    MPI_Status status;
    int two[2] = {1, 2}, one[2] = {0, 0};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    BAD(MPI_Mrecv(one, 1, MPI_INT, &message, &status), MPI_ERR_REQUEST, "MPI_MESSAGE_NULL");
    BAD(MPI_Imrecv(one, 1, MPI_INT, &message, &req), MPI_ERR_REQUEST, "MPI_MESSAGE_NULL");
    BAD(MPI_Mrecv(one, 1, MPI_INT, NULL, &status), MPI_ERR_ARG, "message");
    for (int k = 0; k < 2; k++) {
        OK(MPI_Send(two, 2, MPI_INT, rank, 5, comm));
        OK(MPI_Mprobe(rank, 5, comm, &message, &status));
        copy = message;
        if (k) {
            OK(MPI_Imrecv(one, 1, MPI_INT, &message, &req));
            BAD(MPI_Wait(&req, &status), MPI_ERR_TRUNCATE, "8 bytes");
        } else {
            BAD(MPI_Mrecv(one, 1, MPI_INT, &message, &status), MPI_ERR_TRUNCATE, "8 bytes");
        }
        CHECK(handled == k + 1 && one[0] == 1 && one[1] == 0 && message == MPI_MESSAGE_NULL && elements(&status) <= 1);
        BAD(MPI_Mrecv(one, 1, MPI_INT, &copy, &status), MPI_ERR_REQUEST, "not a message");
    }
    OK(MPI_Send(two, 2, MPI_INT, rank, 5, comm)); /* the message outlives the communicator's handle */
    OK(MPI_Mprobe(rank, 5, comm, &message, &status));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Mrecv(two, 2, MPI_INT, &message, &status));
    OK(MPI_Errhandler_free(&handler));
}

/* A send that is matched cannot be cancelled; one that is not can be. */
static void cancelled(void)
{
    int flag, none = 0;
    MPI_Request req;
    MPI_Message message;
    MPI_Status status;
    if (rank == 0) {
        for (int i = 0; i < LONG; i++)
            values[i] = i;
        OK(MPI_Isend(values, LONG, MPI_INT, 1, 6, MPI_COMM_WORLD, &req));
        OK(MPI_Recv(&none, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Cancel(&req));
        OK(MPI_Send(&none, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
        OK(MPI_Wait(&req, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag);
        OK(MPI_Issend(values, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &req));
        OK(MPI_Cancel(&req));
        OK(MPI_Wait(&req, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
        OK(MPI_Send(&none, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
    } else if (rank == 1) {
        OK(MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status));
        OK(MPI_Send(&none, 1, MPI_INT, 0, 7, MPI_COMM_WORLD));
        OK(MPI_Recv(&none, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        memset(values, 0, LONG * sizeof *values);
        OK(MPI_Imrecv(values, LONG, MPI_INT, &message, &req));
        OK(MPI_Cancel(&req)); /* may fail, and does */
        OK(MPI_Wait(&req, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag && elements(&status) == LONG && values[LONG - 1] == LONG - 1);
        OK(MPI_Recv(&none, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Improbe(0, 6, MPI_COMM_WORLD, &flag, &message, &status));
        CHECK(!flag);
    }
}

/* A synchronous send waits for the matched receive, not for the probe. */
static void synchronous(void)
{
    int flag, none = 0;
    MPI_Request req;
    MPI_Message message;
    if (rank == 0) {
        OK(MPI_Issend(&none, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &req));
        OK(MPI_Recv(&none, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 1000; i++) {
            OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "complete before it was received");
        }
        OK(MPI_Send(&none, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Mprobe(0, 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        OK(MPI_Send(&none, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
        OK(MPI_Recv(&none, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(&none, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    }
}

/* Threads probe for equal messages of all lengths: each gets the length that its probe showed. Length 0 ends a thread. */
static void *receiver(void *argument)
{
    long *got = argument;
    for (;;) {
        MPI_Message message;
        MPI_Status status;
        int n, flag = 0, *in;
        if (*got % 3)
            OK(MPI_Mprobe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &message, &status));
        while (*got % 3 == 0 && !flag)
            OK(MPI_Improbe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &flag, &message, &status));
        n = elements(&status);
        in = malloc((size_t)n * sizeof *in + 1);
        OK(MPI_Mrecv(in, n, MPI_INT, &message, &status));
        CHECK(elements(&status) == n);
        for (int i = 0; i < n; i++)
            CHECK(in[i] == n + i);
        free(in);
        if (!n)
            return NULL;
        ++*got;
    }
}

static void threads(void)
{
    uint64_t random = 5;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank) {
        for (int i = 0; i < MANY; i++) {
            int n = i % 40 == 3 ? LONG / 2 : 1 + (int)(check_random(&random) % 900);
            for (int k = 0; k < n; k++)
                values[k] = n + k;
            OK(MPI_Send(values, n, MPI_INT, 0, 10, MPI_COMM_WORLD));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    } else {
        pthread_t all[THREADS];
        long got[THREADS] = {0}, sum = 0;
        for (int i = 0; i < THREADS; i++)
            pthread_create(&all[i], NULL, receiver, &got[i]);
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* behind all messages; each sender's are in order, so ends come last */
        for (int i = 0; i < THREADS; i++)
            OK(MPI_Send(values, 0, MPI_INT, 0, 10, MPI_COMM_WORLD));
        for (int i = 0; i < THREADS; i++) {
            pthread_join(all[i], NULL);
            sum += got[i];
        }
        CHECK(sum <= (long)MANY * (size - 1));
        for (int flag = 1; sum < (long)MANY * (size - 1); sum++) { /* an end may have overtaken other senders' messages */
            MPI_Message message;
            OK(MPI_Improbe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
            CHECK(flag);
            OK(MPI_Mrecv(values, LONG, MPI_INT, &message, MPI_STATUS_IGNORE));
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Message left;
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    values = malloc(LONG * sizeof *values);
    lengths();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    order();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    by_source();
    no_process();
    errors();
    cancelled();
    synchronous();
    threads();
    OK(MPI_Send(values, 1, MPI_INT, (rank + 1) % size, 11, MPI_COMM_WORLD));
    OK(MPI_Mprobe((rank + size - 1) % size, 11, MPI_COMM_WORLD, &left, MPI_STATUS_IGNORE)); /* never received */
    free(values);
    OK(MPI_Finalize());
    return 0;
}
