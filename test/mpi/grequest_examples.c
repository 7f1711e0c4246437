/* np: 1 2 5 : what the example of generalized requests shows (MPI 5.0 13.2.1): a reduction over a tree by a thread */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

typedef struct reduction {
    MPI_Comm comm;
    int tag, root, in, *out;
    MPI_Request request;
    pthread_t thread;
} reduction;

/* One int; the request can neither fail nor be cancelled, and has no source and tag. */
static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    OK(MPI_Status_set_elements(status, MPI_INT, 1));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* The thread has completed the request; what it used is freed with it. */
static int release(void *extra)
{
    reduction *r = extra;
    CHECK(pthread_join(r->thread, NULL) == 0);
    free(r);
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    CHECK(complete, "cannot be cancelled");
    return MPI_SUCCESS;
}

static void *reduce(void *arg)
{
    reduction *r = arg;
    int rank, size, children[2] = {0, 0}, from[2];
    MPI_Request reqs[2];
    OK(MPI_Comm_rank(r->comm, &rank));
    OK(MPI_Comm_size(r->comm, &size));
    int turned = (rank + size - r->root) % size;
    for (int i = 0; i < 2; i++) {
        from[i] = 2 * turned + 1 + i < size ? (2 * turned + 1 + i + r->root) % size : MPI_PROC_NULL;
        OK(MPI_Irecv(&children[i], 1, MPI_INT, from[i], r->tag, r->comm, &reqs[i]));
    }
    OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
    int sum = children[0] + r->in + children[1];
    OK(MPI_Send(&sum, 1, MPI_INT, turned ? ((turned - 1) / 2 + r->root) % size : MPI_PROC_NULL, r->tag, r->comm));
    if (turned == 0)
        *r->out = sum;
    OK(MPI_Grequest_complete(r->request));
    return NULL;
}

static void reduce_start(MPI_Comm comm, int tag, int root, int in, int *out, MPI_Request *request)
{
    reduction *r = malloc(sizeof *r);
    CHECK(r != NULL);
    *r = (reduction){.comm = comm, .tag = tag, .root = root, .in = in, .out = out};
    OK(MPI_Grequest_start(query, release, cancel, r, request));
    r->request = *request;
    CHECK(pthread_create(&r->thread, NULL, reduce, r) == 0);
}

int main(int argc, char **argv)
{
    enum { AT_ONCE = 4 };
    int rank, size, provided, sums[AT_ONCE], count;
    MPI_Request reqs[AT_ONCE];
    MPI_Status statuses[AT_ONCE];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            reduce_start(MPI_COMM_WORLD, i, i % size, rank + i, &sums[i], &reqs[i]);
        OK(MPI_Waitall(AT_ONCE, reqs, statuses));
        for (int i = 0; i < AT_ONCE; i++) {
            OK(MPI_Get_count(&statuses[i], MPI_INT, &count));
            CHECK(count == 1 && statuses[i].MPI_SOURCE == MPI_UNDEFINED && reqs[i] == MPI_REQUEST_NULL);
            CHECK(rank != i % size || sums[i] == size * (size - 1) / 2 + i * size, "%d", sums[i]);
        }
    }
    OK(MPI_Finalize());
    return 0;
}
