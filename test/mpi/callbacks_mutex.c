/* np: 2 4 : an operator waits for a mutex of the program that a thread inside MPI holds: operators run without locks of the library */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 40, MANY = 6, LONG = 20000 };

/* Recursive: any thread that progresses runs the operator of a nonblocking call, also the one that holds the mutex. */
static pthread_mutex_t mutex;
static int rank, size;
static MPI_Comm others;
static MPI_Op op;
static atomic_int waited;

static void guarded_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    if (pthread_mutex_trylock(&mutex)) {
        atomic_fetch_add(&waited, 1);
        pthread_mutex_lock(&mutex);
    }
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    pthread_mutex_unlock(&mutex);
}

/* Holds the mutex in calls that wait for other ranks, also while asleep, and in calls that do not wait. */
static void *holder(void *nothing)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    (void)nothing;
    for (int i = 0; i < ROUNDS; i++) {
        int x = rank + i, y = -1, sum = -1;
        char name[16];
        if (rank == i % size && i % 4 == 0)
            usleep(3000); /* the other ranks fall asleep while this one holds the mutex */
        pthread_mutex_lock(&mutex);
        OK(MPI_Sendrecv(&x, 1, MPI_INT, right, 0, &y, 1, MPI_INT, left, 0, others, MPI_STATUS_IGNORE));
        CHECK(y == left + i);
        OK(MPI_Allreduce(&x, &sum, 1, MPI_INT, op, others));
        CHECK(sum == size * i + size * (size - 1) / 2, "round %d: %d", i, sum);
        snprintf(name, sizeof name, "round %d", i);
        OK(MPI_Comm_set_name(others, name));
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void check_sums(const int *out, int count, int add)
{
    for (int i = 0; i < count; i++)
        CHECK(out[i] == size * (i + add) + size * (size - 1) / 2, "element %d of %d: %d", i, count, out[i]);
}

static void reductions(void)
{
    static int in[LONG], out[MANY][LONG];
    static const int counts[] = {1, 300, LONG};
    MPI_Request reqs[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        int count = counts[round % 3];
        for (int i = 0; i < count; i++)
            in[i] = rank + i;
        OK(MPI_Allreduce(in, out[0], count, MPI_INT, op, MPI_COMM_WORLD));
        check_sums(out[0], count, 0);
        OK(MPI_Reduce(in, out[0], count, MPI_INT, op, 0, MPI_COMM_WORLD));
        for (int m = 0; m < MANY; m++)
            if (round % 2)
                OK(MPI_Iallreduce(in, out[m], count, MPI_INT, op, MPI_COMM_WORLD, &reqs[m]));
            else
                OK(MPI_Allreduce_init(in, out[m], count, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[m]));
        if (round % 2 == 0)
            OK(MPI_Startall(MANY, reqs));
        OK(MPI_Waitall(MANY, reqs, MPI_STATUSES_IGNORE));
        for (int m = 0; m < MANY; m++) {
            check_sums(out[m], count, 0);
            if (round % 2 == 0)
                OK(MPI_Request_free(&reqs[m]));
        }
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_mutexattr_t kind;
    int level;
    alarm(300); /* the failure under test is a hang */
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &kind);
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    OK(MPI_Op_create(guarded_sum, 1, &op));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &others));
    CHECK(!pthread_create(&thread, NULL, holder, NULL));
    reductions();
    pthread_join(thread, NULL);
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&others));
    OK(MPI_Finalize());
    return 0;
}
