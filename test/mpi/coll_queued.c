/* np: 2 3 4 6 : random nonblocking collectives queued on a communicator, blocking ones between, freed early; from three threads */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

enum kind { BARRIER, BCAST, ALLREDUCE, ALLGATHER, SCAN, ALLTOALL, KINDS };
enum { QUEUED = 20, ROUNDS = 25, THREADS = 3, SHORT = 40, LONG = 30000 };

typedef struct call {
    enum kind kind;
    int count, root;
    double *from, *to;
} call;

static int rank, size;

static int random_below(unsigned *seed, int limit)
{
    *seed = *seed * 1103515245u + 12345u;
    return (int)((*seed >> 16) % (unsigned)limit);
}

/* What member `from` contributes at index i of call k. */
static double value(int from, int i, int k) { return from + i % 7 + k; }

static void start(call *it, int k, unsigned *seed, MPI_Comm comm, MPI_Request *req)
{
    it->kind = (enum kind)random_below(seed, KINDS);
    it->count = 1 + random_below(seed, random_below(seed, 5) ? SHORT : LONG);
    it->root = random_below(seed, size);
    size_t items = (size_t)it->count * (size_t)size;
    it->from = malloc(items * sizeof(double));
    it->to = calloc(items, sizeof(double));
    for (size_t i = 0; i < items; i++)
        it->from[i] = value(rank, (int)i, k);
    switch (it->kind) {
    case BARRIER: OK(MPI_Ibarrier(comm, req)); break;
    case BCAST: OK(MPI_Ibcast(it->from, it->count, MPI_DOUBLE, it->root, comm, req)); break;
    case ALLREDUCE: OK(MPI_Iallreduce(it->from, it->to, it->count, MPI_DOUBLE, MPI_SUM, comm, req)); break;
    case ALLGATHER: OK(MPI_Iallgather(it->from, it->count, MPI_DOUBLE, it->to, it->count, MPI_DOUBLE, comm, req)); break;
    case SCAN: OK(MPI_Iscan(it->from, it->to, it->count, MPI_DOUBLE, MPI_SUM, comm, req)); break;
    default: OK(MPI_Ialltoall(it->from, it->count, MPI_DOUBLE, it->to, it->count, MPI_DOUBLE, comm, req));
    }
}

/* Item i of the last member's block, or of the result. */
static double expected(const call *it, int k, int i)
{
    switch (it->kind) {
    case BCAST: return value(it->root, i, k);
    case ALLREDUCE: return size * (size - 1) / 2.0 + size * value(0, i, k);
    case ALLGATHER: return value(size - 1, i, k);
    case SCAN: return rank * (rank + 1) / 2.0 + (rank + 1) * value(0, i, k);
    case ALLTOALL: return value(0, rank * it->count + i, k);
    default: return 0;
    }
}

static double delivered(const call *it, int i)
{
    return it->kind == BARRIER ? 0 : it->kind == BCAST ? it->from[i] : it->to[it->kind == ALLGATHER ? (size - 1) * it->count + i : i];
}

static void end(call *it, int k)
{
    for (int i = 0; i < it->count; i++)
        CHECK(delivered(it, i) == expected(it, k, i), "kind %d, call %d of %d items, item %d", (int)it->kind, k, it->count, i);
    free(it->from);
    free(it->to);
}

/* In an order of this member's own. */
static void wait_for(int count, MPI_Request *reqs, int how)
{
    int index, has_ended = 0;
    if (how == 0)
        for (int k = count - 1; k >= 0; k--)
            OK(MPI_Wait(&reqs[k], MPI_STATUS_IGNORE));
    if (how == 1)
        for (int left = count; left; left--)
            OK(MPI_Waitany(count, reqs, &index, MPI_STATUS_IGNORE));
    while (how == 2 && !has_ended)
        OK(MPI_Testall(count, reqs, &has_ended, MPI_STATUSES_IGNORE));
}

static void one_round(MPI_Comm parent, unsigned *seed, unsigned *own)
{
    call calls[QUEUED];
    MPI_Request reqs[QUEUED];
    MPI_Comm comm;
    int count = 1 + random_below(seed, QUEUED), is_freed_early = random_below(seed, 2);
    OK(MPI_Comm_dup(parent, &comm));
    if (random_below(seed, 2))
        OK(MPI_Barrier(comm)); /* else the first nonblocking call makes the node area */
    for (int k = 0; k < count; k++) {
        int one = 1, sum = 0;
        start(&calls[k], k, seed, comm, &reqs[k]);
        if (random_below(seed, 5))
            continue;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size);
    }
    if (is_freed_early)
        OK(MPI_Comm_free(&comm));
    wait_for(count, reqs, random_below(own, 3));
    if (!is_freed_early)
        OK(MPI_Comm_free(&comm));
    for (int k = 0; k < count; k++)
        end(&calls[k], k);
}

typedef struct share {
    MPI_Comm comm;
    unsigned seed;
} share;

static void *rounds(void *arg)
{
    share *own = arg;
    unsigned order = own->seed + (unsigned)rank;
    for (int i = 0; i < ROUNDS; i++)
        one_round(own->comm, &own->seed, &order);
    return NULL;
}

int main(int argc, char **argv)
{
    share shares[THREADS];
    pthread_t threads[THREADS];
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    rounds(&(share){MPI_COMM_WORLD, 1});
    for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
        shares[i].seed = 100u + (unsigned)i;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &shares[i].comm));
        CHECK(pthread_create(&threads[i], NULL, rounds, &shares[i]) == 0);
    }
    for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
        pthread_join(threads[i], NULL);
        OK(MPI_Comm_free(&shares[i].comm));
    }
    OK(MPI_Finalize());
    return 0;
}
