/* np: 1 2 3 4 : rput, rget, raccumulate, rget_accumulate: one by one, many together with receives, test, any order, MPI_PROC_NULL, no
 * bytes */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 2048, MANY = 64 };

static int rank, size;
static MPI_Win win;
static int64_t *mine;

/* Completion at the origin: the buffer of a put may be reused, the result of a get is there. */
static void one_by_one(void)
{
    int next = (rank + 1) % size;
    int64_t value, got;
    MPI_Request req;
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 100; i++) {
        value = rank * 1000 + i;
        OK(MPI_Rput(&value, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, win, &req));
        CHECK(req != MPI_REQUEST_NULL);
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(req == MPI_REQUEST_NULL);
        value = -1;
        OK(MPI_Win_flush(next, win));
        OK(MPI_Rget(&got, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, win, &req));
        for (int flag = 0; !flag;)
            OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
        CHECK(got == rank * 1000 + i, "%ld", (long)got);
        value = 5;
        OK(MPI_Raccumulate(&value, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, MPI_SUM, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        value = 7;
        OK(MPI_Rget_accumulate(&value, 1, MPI_INT64_T, &got, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, MPI_SUM, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(got == rank * 1000 + i + 5, "%ld", (long)got);
        OK(MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, &got, 1, MPI_INT64_T, next, i, 1, MPI_INT64_T, MPI_NO_OP, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(got == rank * 1000 + i + 12, "%ld", (long)got);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Many are outstanding, among messages; they complete in any order, after the flush or even after the epoch. */
static void together(int way)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, token = -1, index, n = 0;
    int64_t out[MANY], in[MANY];
    MPI_Request reqs[2 * MANY + 2];
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Irecv(&token, 1, MPI_INT, before, way, MPI_COMM_WORLD, &reqs[n++]));
    for (int i = 0; i < MANY; i++) {
        out[i] = rank * 100000 + way * 1000 + i;
        OK(MPI_Rput(&out[i], 1, MPI_INT64_T, next, MANY + i, 1, MPI_INT64_T, win, &reqs[n++]));
        OK(MPI_Rget(&in[i], 1, MPI_INT64_T, next, WORDS - MANY + i, 1, MPI_INT64_T, win, &reqs[n++]));
    }
    OK(MPI_Isend(&rank, 1, MPI_INT, next, way, MPI_COMM_WORLD, &reqs[n++]));
    if (way == 1)
        OK(MPI_Win_flush_all(win));
    if (way == 2)
        OK(MPI_Win_unlock_all(win));
    if (way == 3)
        for (int i = 0; i < n; i++)
            OK(MPI_Waitany(n, reqs, &index, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        CHECK(reqs[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < MANY; i++)
        CHECK(in[i] == next * 100 + i, "%ld", (long)in[i]);
    if (way != 2)
        OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < MANY; i++)
        CHECK(mine[MANY + i] == before * 100000 + way * 1000 + i, "%ld", (long)mine[MANY + i]);
    OK(MPI_Win_unlock(rank, win));
    CHECK(token == before);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void nothing(void)
{
    int64_t value = 3, old = 4;
    MPI_Request reqs[8];
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rput(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, &reqs[0]));
    OK(MPI_Rget(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, &reqs[1]));
    OK(MPI_Raccumulate(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, win, &reqs[2]));
    OK(MPI_Rget_accumulate(&value, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, win, &reqs[3]));
    OK(MPI_Rput(&value, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, win, &reqs[4]));
    OK(MPI_Rget(&value, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, win, &reqs[5]));
    OK(MPI_Raccumulate(&value, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, MPI_SUM, win, &reqs[6]));
    OK(MPI_Rget_accumulate(&value, 0, MPI_INT64_T, &old, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, MPI_SUM, win, &reqs[7]));
    OK(MPI_Waitall(8, reqs, MPI_STATUSES_IGNORE));
    CHECK(value == 3 && old == 4);
    OK(MPI_Win_unlock_all(win));
}

/* Large, not contiguous, types freed before completion. */
static void derived(void)
{
    enum { N = 100000 };
    int *base, *out = malloc(2 * N * sizeof *out), *in = malloc(2 * N * sizeof *in), next = (rank + 1) % size;
    MPI_Datatype apart;
    MPI_Win large;
    MPI_Request req;
    OK(MPI_Win_allocate(2 * N * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &large));
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &apart));
    OK(MPI_Type_commit(&apart));
    for (int i = 0; i < 2 * N; i++)
        out[i] = rank + i;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, large));
    OK(MPI_Rput(out, 1, apart, next, N, N, MPI_INT, large, &req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next, large));
    OK(MPI_Rget(in, 1, apart, next, N, N, MPI_INT, large, &req));
    OK(MPI_Type_free(&apart));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock(next, large));
    for (int i = 0; i < N; i++)
        CHECK(in[2 * i] == rank + 2 * i, "element %d: %d", i, in[2 * i]);
    OK(MPI_Win_free(&large));
    free(out), free(in);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    for (int i = 0; i < MANY; i++)
        mine[WORDS - MANY + i] = rank * 100 + i;
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    one_by_one();
    for (int way = 0; way < 4; way++)
        together(way);
    nothing();
    derived();
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
