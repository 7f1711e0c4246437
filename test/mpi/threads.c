/* np: 1 2 3 : MPI_THREAD_MULTIPLE: four threads a rank, own tags and own communicators, messages and collectives at once */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 300, LARGE = 100000 };

static int rank, size;
static MPI_Comm comms[THREADS];

/* Ring exchanges on MPI_COMM_WORLD, distinguished by tags only; mostly short, sometimes long. */
static void messages(int me)
{
    unsigned char *out = malloc(LARGE), *in = malloc(LARGE);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < ROUNDS; i++) {
        int bytes = i % 25 == 7 ? LARGE : i % 100, count;
        MPI_Request reqs[2];
        MPI_Status statuses[2];
        check_fill(out, (size_t)bytes, (unsigned)(rank * 10000 + me * 1000 + i));
        OK(MPI_Irecv(in, LARGE, MPI_BYTE, left, me, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Isend(out, bytes, MPI_BYTE, right, me, MPI_COMM_WORLD, &reqs[1]));
        if (i % 2) {
            OK(MPI_Waitall(2, reqs, statuses));
        } else {
            OK(MPI_Wait(&reqs[1], &statuses[1]));
            OK(MPI_Wait(&reqs[0], &statuses[0]));
        }
        OK(MPI_Get_count(&statuses[0], MPI_BYTE, &count));
        CHECK(count == bytes && check_wrong(in, (size_t)bytes, (unsigned)(left * 10000 + me * 1000 + i)) == (size_t)bytes,
              "thread %d round %d: %d bytes", me, i, count);
    }
    free(out);
    free(in);
}

/* Collectives and blocking messages on this thread's own communicator. */
static void collectives(int me)
{
    for (int i = 0; i < ROUNDS; i++) {
        int value = rank + me + i, sum = -1, got = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Request req;
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comms[me]));
        CHECK(sum == size * (size - 1) / 2 + size * (me + i), "thread %d round %d: sum %d", me, i, sum);
        OK(MPI_Isend(&value, 1, MPI_INT, right, 0, comms[me], &req));
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[me], MPI_STATUS_IGNORE));
        CHECK(got == left + me + i, "thread %d round %d: got %d", me, i, got);
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        if (i % 10 == 0) {
            OK(MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_MAX, comms[me], &req));
            OK(MPI_Barrier(comms[me]));
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
            CHECK(sum == size - 1 + me + i);
        }
    }
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument, flag = 1;
    OK(MPI_Is_thread_main(&flag));
    CHECK(!flag);
    messages(me);
    collectives(me);
    /* a waiting thread must not block the thread that it waits for */
    if (me == 0) {
        int value = -1;
        OK(MPI_Recv(&value, 1, MPI_INT, rank, 90, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == 17);
    } else if (me == 1) {
        int value = 17;
        OK(MPI_Ssend(&value, 1, MPI_INT, rank, 90, MPI_COMM_WORLD));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided = -1, flag;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE, "provided %d", provided);
    OK(MPI_Query_thread(&provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Finalize());
    return 0;
}
