/* np: 2 3 : partitioned messages: different counts on both sides, strided types, order of init, threads, single and no partitions,
 * errors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"
#include "expect.h"

enum { THREADS = 4 };

static int rank, size;

static void fill(int *values, int n, int seed)
{
    for (int i = 0; i < n; i++)
        values[i] = seed * 1000003 + i;
}

static void check(const int *values, int from, int n, int seed)
{
    for (int i = from; i < from + n; i++)
        CHECK(values[i] == seed * 1000003 + i, "item %d is %d", i, values[i]);
}

/* A ring of partitioned messages of `total` ints; every rank has another order of Pready. Restarted several times. */
static void ring(int total, int out_parts, int in_parts)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *out = malloc((size_t)total * 4 + 1), *in = malloc((size_t)total * 4 + 1);
    MPI_Request reqs[2];
    MPI_Status status;
    int count;
    if (out_parts % 2)
        OK(MPI_Psend_init(out, out_parts, total / out_parts, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
    else
        OK(MPI_Psend_init_c(out, out_parts, total / out_parts, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
    if (in_parts % 2)
        OK(MPI_Precv_init(in, in_parts, total / in_parts, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
    else
        OK(MPI_Precv_init_c(in, in_parts, total / in_parts, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
    for (int turn = 0; turn < 6; turn++) {
        fill(out, total, rank + turn);
        memset(in, 0xff, (size_t)total * 4);
        if (turn % 2) {
            OK(MPI_Startall(2, reqs));
        } else {
            OK(MPI_Start(&reqs[1]));
            OK(MPI_Start(&reqs[0]));
        }
        if (turn % 3 == 0) {
            for (int i = 0; i < out_parts; i++)
                OK(MPI_Pready(turn ? out_parts - 1 - i : i, reqs[0]));
        } else if (turn % 3 == 1) {
            OK(MPI_Pready_range(out_parts / 2, out_parts - 1, reqs[0]));
            if (out_parts / 2)
                OK(MPI_Pready_range(0, out_parts / 2 - 1, reqs[0]));
        } else {
            int *list = malloc((size_t)out_parts * sizeof *list), n = 0;
            for (int odd = 1; odd >= 0; odd--)
                for (int i = odd; i < out_parts; i += 2)
                    list[n++] = i;
            OK(MPI_Pready_list(n, list, reqs[0]));
            OK(MPI_Pready_list(0, NULL, reqs[0]));
            free(list);
        }
        for (int i = 0, flag = 0; i < in_parts; i += turn < 4 ? 1 : in_parts, flag = 0) {
            while (!flag)
                OK(MPI_Parrived(reqs[1], i, &flag));
            check(in, i * (total / in_parts), total / in_parts, left + turn);
        }
        OK(MPI_Wait(&reqs[1], &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == total && status.MPI_SOURCE == left && status.MPI_TAG == 3, "%d", count);
        OK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
        check(in, 0, total, left + turn);
        OK(MPI_Parrived(reqs[1], 0, &count)); /* inactive */
        CHECK(count && reqs[0] != MPI_REQUEST_NULL && reqs[1] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&reqs[0]));
    OK(MPI_Request_free(&reqs[1]));
    free(out);
    free(in);
}

/* One partition arrives while the others are not ready. */
static void one_arrives(void)
{
    enum { PARTS = 16, EACH = 5000 };
    int *values = malloc(PARTS * EACH * sizeof *values), none = 0, flag;
    MPI_Request req;
    if (rank == 0) {
        OK(MPI_Psend_init(values, PARTS, EACH, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        OK(MPI_Start(&req));
        for (int i = PARTS - 1; i >= 0; i--) {
            for (int k = 0; k < EACH; k++)
                values[i * EACH + k] = 9 * 1000003 + i * EACH + k;
            OK(MPI_Pready(i, req));
            OK(MPI_Recv(&none, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* it has arrived */
        }
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&req));
    } else if (rank == 1) {
        OK(MPI_Precv_init(values, PARTS * 2, EACH / 2, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        OK(MPI_Start(&req));
        for (int i = PARTS - 1; i >= 0; i--) {
            for (flag = 0; !flag;)
                OK(MPI_Parrived(req, 2 * i + 1, &flag));
            for (flag = 0; !flag;)
                OK(MPI_Parrived(req, 2 * i, &flag));
            check(values, i * EACH, EACH, 9);
            if (i) {
                OK(MPI_Parrived(req, 2 * i - 1, &flag));
                CHECK(!flag, "partition %d arrived before it was ready", i - 1);
                OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag);
            }
            OK(MPI_Send(&none, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
        }
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&req));
    }
    free(values);
}

/* Strided on either side or both; the receiver's elements are cut by the sender's partitions. */
static void strided(void)
{
    enum { TOTAL = 12000 };
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *out = malloc(2 * TOTAL * sizeof *out), *in = malloc(2 * TOTAL * sizeof *in);
    static const int shapes[][2] = {{60, 12}, {12, 60}, {40, 1}, {3000, 7}, {1, 40}, {5, 3000}};
    for (int k = 0; k < 12; k++) {
        int a = shapes[k / 2][0], b = shapes[k / 2][1], flag;
        MPI_Datatype of_a, of_b;
        MPI_Request reqs[2];
        if (TOTAL % b)
            b = 8;
        OK(MPI_Type_vector(TOTAL / a, 1, k % 2 ? 1 : 2, MPI_INT, &of_a)); /* a partition is one element */
        OK(MPI_Type_create_resized(of_a, 0, (MPI_Aint)(TOTAL / a) * (k % 2 ? 4 : 8), &of_a));
        OK(MPI_Type_vector(TOTAL / b, 1, 2, MPI_INT, &of_b));
        OK(MPI_Type_create_resized(of_b, 0, (MPI_Aint)(TOTAL / b) * 8, &of_b));
        OK(MPI_Type_commit(&of_a));
        OK(MPI_Type_commit(&of_b));
        OK(MPI_Precv_init(in, b, 1, of_b, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
        OK(MPI_Psend_init(out, a, 1, of_a, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
        OK(MPI_Type_free(&of_a));
        OK(MPI_Type_free(&of_b));
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < 2 * TOTAL; i++) {
                out[i] = rank + turn + (k % 2 ? i : i / 2);
                in[i] = -1;
            }
            OK(MPI_Startall(2, reqs));
            OK(MPI_Pready_range(0, a - 1, reqs[1]));
            for (int i = 0; i < b && turn; i++) {
                for (flag = 0; !flag;)
                    OK(MPI_Parrived(reqs[0], i, &flag));
                CHECK(in[2 * i * (TOTAL / b)] == left + turn + i * (TOTAL / b));
            }
            OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
            for (int i = 0; i < 2 * TOTAL; i++)
                CHECK(in[i] == (i % 2 ? -1 : left + turn + i / 2), "shape %d item %d: %d", k, i, in[i]);
        }
        OK(MPI_Request_free(&reqs[0]));
        OK(MPI_Request_free(&reqs[1]));
    }
    free(out);
    free(in);
}

/* Equal tags match in the order of the init calls, whatever the order of the starts; ordinary messages are apart. */
static void order(void)
{
    enum { N = 5 };
    int values[N][2], wild = -1;
    MPI_Request reqs[N], ordinary = MPI_REQUEST_NULL;
    if (rank == 0) {
        for (int i = 0; i < N; i++)
            OK(MPI_Psend_init(values[i], 2, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[i]));
        for (int i = N - 1; i >= 0; i--) {
            values[i][0] = values[i][1] = 50 + i;
            OK(MPI_Start(&reqs[i]));
            OK(MPI_Pready_range(0, 1, reqs[i]));
        }
        OK(MPI_Waitall(N, reqs, MPI_STATUSES_IGNORE));
        wild = 4;
        OK(MPI_Send(&wild, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
    } else if (rank == 1) {
        OK(MPI_Irecv(&wild, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &ordinary));
        for (int i = 0; i < N; i++)
            OK(MPI_Precv_init(values[i], 1, 2, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[i]));
        OK(MPI_Startall(N, reqs));
        OK(MPI_Waitall(N, reqs, MPI_STATUSES_IGNORE));
        OK(MPI_Wait(&ordinary, MPI_STATUS_IGNORE));
        CHECK(wild == 4, "%d", wild);
        for (int i = 0; i < N; i++)
            CHECK(values[i][0] == 50 + i && values[i][1] == 50 + i);
    }
    for (int i = 0; i < N && rank < 2; i++)
        OK(MPI_Request_free(&reqs[i]));
}

static void edges(void)
{
    int value = 3, flag;
    MPI_Request req, pair[2];
    MPI_Status status;
    OK(MPI_Psend_init(&value, 4, 0, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0])); /* zero count, to itself */
    OK(MPI_Precv_init(&value, 2, 0, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[1]));
    OK(MPI_Startall(2, pair));
    OK(MPI_Parrived(pair[1], 1, &flag));
    CHECK(!flag);
    OK(MPI_Pready_range(0, 3, pair[0]));
    for (flag = 0; !flag;)
        OK(MPI_Parrived(pair[1], 1, &flag));
    OK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&pair[0]));
    OK(MPI_Request_free(&pair[1]));
    OK(MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    OK(MPI_Start(&req));
    OK(MPI_Pready(0, req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Request_free(&req));
    OK(MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    OK(MPI_Start(&req));
    OK(MPI_Parrived(req, 0, &flag));
    CHECK(flag);
    OK(MPI_Wait(&req, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && value == 3);
    OK(MPI_Request_free(&req));
    OK(MPI_Parrived(MPI_REQUEST_NULL, 5, &flag));
    CHECK(flag);
    /* never started, freed at once */
    OK(MPI_Psend_init(&value, 1, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0]));
    OK(MPI_Precv_init(&value, 1, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[1]));
    OK(MPI_Request_free(&pair[1]));
    OK(MPI_Request_free(&pair[0]));
}

/* A message without bytes between requests of out_parts and in_parts partitions, of which one may have none: the n-th receive completes
 * with the n-th send, not before. */
static void empty(int out_parts, int out_count, int in_parts, int in_count, int to, int from)
{
    MPI_Request send, recv;
    MPI_Status status;
    int value = 7, flag = 1, count = -1;
    OK(MPI_Psend_init(&value, out_parts, out_count, MPI_INT, to, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(&value, in_parts, in_count, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &recv));
    for (int turn = 0; turn < 3; turn++) {
        OK(MPI_Start(&recv));
        for (int i = 0; i < 20 && from != MPI_PROC_NULL; i++) {
            OK(MPI_Request_get_status(recv, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "a receive was complete before its send was started");
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Start(&send));
        if (out_parts)
            OK(MPI_Pready_range(0, out_parts - 1, send));
        OK(MPI_Pready_list(0, NULL, send));
        for (int i = 0; i < in_parts; i++)
            do
                OK(MPI_Parrived(recv, i, &flag));
            while (!flag);
        OK(MPI_Wait(&recv, &status));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 0 && status.MPI_SOURCE == from && value == 7);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));
}

/* Requests without partitions: nothing can be marked or asked for, and the lengths must agree. */
static void no_partitions(void)
{
    int values[4] = {0}, flag, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request send, recv;
    empty(0, 5, 0, 3, right, left);
    empty(0, 5, 3, 0, right, left);
    empty(2, 0, 0, 3, right, left);
    empty(0, 1, 0, 1, rank, rank);
    empty(0, 1, 0, 1, MPI_PROC_NULL, MPI_PROC_NULL);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Psend_init(values, 0, 4, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(values, 0, 4, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &recv));
    OK(MPI_Start(&send));
    OK(MPI_Start(&recv));
    BAD(MPI_Pready(0, send), MPI_ERR_ARG, "no partitions");
    BAD(MPI_Pready_range(0, 0, send), MPI_ERR_ARG, "no partitions");
    BAD(MPI_Parrived(recv, 0, &flag), MPI_ERR_ARG, "no partitions");
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&recv, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));
    OK(MPI_Psend_init(values, 0, 4, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(values, 2, 2, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &recv));
    OK(MPI_Start(&send));
    OK(MPI_Start(&recv));
    BAD(MPI_Wait(&recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "0 bytes, the receive buffer 16");
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

static void errors(void)
{
    int values[8] = {0}, flag, list[2] = {0, 9};
    MPI_Request send, recv;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    BAD(MPI_Psend_init(values, -1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_ARG, "partitions is -1");
    BAD(MPI_Precv_init(values, -1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &recv), MPI_ERR_ARG, "partitions is -1");
    BAD(MPI_Precv_init(values, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &recv), MPI_ERR_RANK, "wildcards");
    BAD(MPI_Precv_init(values, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &recv), MPI_ERR_TAG, "tag");
    BAD(MPI_Psend_init(values, 1, -1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT, "count is -1");
    BAD(MPI_Psend_init_c(values, 1 << 30, (MPI_Count)1 << 40, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT,
           "2^62");
    BAD(MPI_Psend_init(values, 1, 1, MPI_INT, size, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_RANK, "dest");
    OK(MPI_Psend_init(values, 4, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(values + 4, 4, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &recv));
    BAD(MPI_Pready(0, send), MPI_ERR_REQUEST, "not started");
    BAD(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST, "MPI_REQUEST_NULL");
    OK(MPI_Start(&send));
    OK(MPI_Start(&recv));
    BAD(MPI_Pready(4, send), MPI_ERR_ARG, "partition 4 is not in 0..3");
    BAD(MPI_Pready_list(2, list, send), MPI_ERR_ARG, "partition 9");
    BAD(MPI_Pready_list(-2, list, send), MPI_ERR_ARG, "length is -2");
    BAD(MPI_Pready_range(2, 1, send), MPI_ERR_ARG, "partition_low is 2");
    BAD(MPI_Pready_range(-1, 1, send), MPI_ERR_ARG, "partition -1");
    BAD(MPI_Pready(0, recv), MPI_ERR_REQUEST, "MPI_Psend_init");
    BAD(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST, "MPI_Precv_init");
    BAD(MPI_Parrived(recv, 4, &flag), MPI_ERR_ARG, "partition 4");
    BAD(MPI_Cancel(&send), MPI_ERR_REQUEST, "partitioned send");
    BAD(MPI_Request_free(&recv), MPI_ERR_REQUEST, "active");
    BAD(MPI_Request_free(&send), MPI_ERR_REQUEST, "active");
    OK(MPI_Pready(1, send));
    BAD(MPI_Pready(1, send), MPI_ERR_ARG, "ready already");
    OK(MPI_Pready(0, send));
    OK(MPI_Pready_range(2, 3, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&recv, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));
    OK(MPI_Psend_init(values, 4, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(values + 4, 3, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &recv));
    OK(MPI_Start(&send));
    OK(MPI_Start(&recv));
    OK(MPI_Pready_range(0, 3, send));
    BAD(MPI_Wait(&recv, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "16 bytes, the receive buffer 12");
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* Threads fill and mark partitions in any order; threads of the receiver wait for partitions, two each (as in the standard's examples). */
typedef struct team {
    MPI_Request req;
    int *values, first, parts, each, seed;
} team;

static void *produce(void *argument)
{
    const team *self = argument;
    for (int i = self->first; i < self->parts; i += THREADS) {
        for (int k = i * self->each; k < (i + 1) * self->each; k++)
            self->values[k] = self->seed * 1000003 + k;
        OK(MPI_Pready(i, self->req));
    }
    return NULL;
}

static void *consume(void *argument)
{
    const team *self = argument;
    for (int i = self->first; i < self->parts; i += THREADS) {
        int flag = 0;
        while (!flag)
            OK(MPI_Parrived(self->req, i, &flag));
        check(self->values, i * self->each, self->each, self->seed);
    }
    return NULL;
}

static void run_team(void *(*work)(void *), team one)
{
    pthread_t threads[THREADS];
    team all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i] = one;
        all[i].first = i;
        pthread_create(&threads[i], NULL, work, &all[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void threads(int parts, int each)
{
    int *values = malloc((size_t)parts * (size_t)each * sizeof *values);
    MPI_Request req;
    if (rank == 0)
        OK(MPI_Psend_init(values, parts, each, MPI_INT, 1, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    else if (rank == 1)
        OK(MPI_Precv_init(values, parts * 2, each / 2, MPI_INT, 0, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    for (int turn = 0; turn < 20 && rank < 2; turn++) {
        OK(MPI_Start(&req));
        if (rank == 0)
            run_team(produce, (team){req, values, 0, parts, each, turn});
        else
            run_team(consume, (team){req, values, 0, parts * 2, each / 2, turn});
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    if (rank < 2)
        OK(MPI_Request_free(&req));
    free(values);
}

/* Requests that are freed before they are used pair with each other, not with later ones; many that never match do not hinder finalize. */
static void freed_pairs(void)
{
    MPI_Request req;
    int values[2] = {7, 8}, in[2] = {0, 0};
    if (size > 1 && rank < 2) {
        for (int round = 0; round < 2; round++) {
            if (rank == 0)
                OK(MPI_Precv_init(in, 2, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
            else
                OK(MPI_Psend_init(values, 2, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
            if (round) {
                OK(MPI_Start(&req));
                if (rank == 1)
                    OK(MPI_Pready_range(0, 1, req));
                OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
                CHECK(rank == 1 || (in[0] == 7 && in[1] == 8));
            } else if (rank == 1) { /* the receiver has freed its request before the sender's exists */
                OK(MPI_Recv(in, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
            OK(MPI_Request_free(&req));
            if (!round && rank == 0)
                OK(MPI_Send(values, 0, MPI_INT, 1, 6, MPI_COMM_WORLD));
        }
    }
    for (int i = 0; i < 20000; i++) {
        OK(MPI_Psend_init(values, 1, 1, MPI_INT, rank, i % 100, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        OK(MPI_Request_free(&req));
    }
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    ring(40, 8, 8);
    ring(64 * 16, 64, 1);
    ring(64 * 16, 64, 128);
    ring(30000, 1, 100);
    ring(30000, 100, 3);
    ring(400000, 10, 125);
    ring(100000, 25000, 25);
    one_arrives();
    strided();
    order();
    edges();
    no_partitions();
    errors();
    threads(64, 16);
    threads(64, 4000);
    threads(8, 100000);
    freed_pairs();
    OK(MPI_Finalize());
    return 0;
}
