/* np: 2 3 4 6 : persistent collectives started in another order on each rank, made and freed many times, more than the node's slots hold */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "tool_counter.h"

enum kind { BARRIER, BCAST, ALLREDUCE, ALLGATHER, SCAN, ALLTOALL, ALLTOALLV, KINDS };
enum { KEPT = 12, ROUNDS = 20, THREADS = 3, SHORT = 40, LONG = 30000, ALIVE = 300, STARTS = 200 };

typedef struct call {
    MPI_Request req;
    enum kind kind;
    int count, root;
    int *counts, *displs;
    double *from, *to;
} call;

static int rank, size;

static int random_below(unsigned *seed, int limit)
{
    *seed = *seed * 1103515245u + 12345u;
    return (int)((*seed >> 16) % (unsigned)limit);
}

/* What member `from` contributes at index i in a round. */
static double value(int from, int i, int round) { return from + i % 7 + round; }

static void alltoallv_init(call *it, MPI_Comm comm)
{
    it->counts = malloc((size_t)size * sizeof(int));
    it->displs = malloc((size_t)size * sizeof(int));
    for (int i = 0; i < size; i++) {
        it->counts[i] = it->count;
        it->displs[i] = i * it->count;
    }
    OK(MPI_Alltoallv_init(it->from, it->counts, it->displs, MPI_DOUBLE, it->to, it->counts, it->displs, MPI_DOUBLE, comm, MPI_INFO_NULL,
                          &it->req));
}

static void make(call *it, unsigned *seed, MPI_Comm comm)
{
    MPI_Info none = MPI_INFO_NULL;
    *it = (call){.kind = (enum kind)random_below(seed, KINDS)};
    it->count = 1 + random_below(seed, random_below(seed, 5) ? SHORT : LONG);
    it->root = random_below(seed, size);
    size_t items = (size_t)it->count * (size_t)size;
    it->from = malloc(items * sizeof(double));
    it->to = malloc(items * sizeof(double));
    switch (it->kind) {
    case BARRIER: OK(MPI_Barrier_init(comm, none, &it->req)); break;
    case BCAST: OK(MPI_Bcast_init(it->from, it->count, MPI_DOUBLE, it->root, comm, none, &it->req)); break;
    case ALLREDUCE: OK(MPI_Allreduce_init(it->from, it->to, it->count, MPI_DOUBLE, MPI_SUM, comm, none, &it->req)); break;
    case ALLGATHER: OK(MPI_Allgather_init(it->from, it->count, MPI_DOUBLE, it->to, it->count, MPI_DOUBLE, comm, none, &it->req)); break;
    case SCAN: OK(MPI_Scan_init(it->from, it->to, it->count, MPI_DOUBLE, MPI_SUM, comm, none, &it->req)); break;
    case ALLTOALL: OK(MPI_Alltoall_init(it->from, it->count, MPI_DOUBLE, it->to, it->count, MPI_DOUBLE, comm, none, &it->req)); break;
    default: alltoallv_init(it, comm);
    }
}

static void discard(call *it)
{
    OK(MPI_Request_free(&it->req));
    free(it->from);
    free(it->to);
    free(it->counts);
    free(it->displs);
}

static void fill(call *it, int round)
{
    for (int i = 0; i < it->count * size; i++) {
        it->from[i] = value(rank, i, round);
        it->to[i] = -1;
    }
}

/* Item i of the last member's block, or of the result. */
static double expected(const call *it, int i, int round)
{
    switch (it->kind) {
    case BCAST: return value(it->root, i, round);
    case ALLREDUCE: return size * (size - 1) / 2.0 + size * value(0, i, round);
    case ALLGATHER: return value(size - 1, i, round);
    case SCAN: return rank * (rank + 1) / 2.0 + (rank + 1) * value(0, i, round);
    case ALLTOALL:
    case ALLTOALLV: return value(size - 1, rank * it->count + i, round);
    default: return 0;
    }
}

static double delivered(const call *it, int i)
{
    int has_blocks = it->kind == ALLGATHER || it->kind == ALLTOALL || it->kind == ALLTOALLV;
    return it->kind == BARRIER ? 0 : it->kind == BCAST ? it->from[i] : it->to[has_blocks ? (size - 1) * it->count + i : i];
}

static void verify(const call *it, int round)
{
    for (int i = 0; i < it->count; i++)
        CHECK(delivered(it, i) == expected(it, i, round), "kind %d of %d items, item %d, round %d: %g", (int)it->kind, it->count, i, round,
              delivered(it, i));
}

static void shuffle(int *order, int count, unsigned *own)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int j = random_below(own, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* In an order of this rank's own. */
static void start_all(call *all, int count, int round, unsigned *own)
{
    int order[ALIVE];
    shuffle(order, count, own);
    for (int i = 0; i < count; i++) {
        fill(&all[order[i]], round);
        OK(MPI_Start(&all[order[i]].req));
    }
}

static void wait_all(call *all, int count, int round, unsigned *own)
{
    int order[ALIVE], has_ended = 0;
    shuffle(order, count, own);
    for (int i = 0; i < count; i++) {
        MPI_Request *req = &all[order[i]].req;
        if (i % 2)
            OK(MPI_Wait(req, MPI_STATUS_IGNORE));
        for (has_ended = i % 2; !has_ended;)
            OK(MPI_Test(req, &has_ended, MPI_STATUS_IGNORE));
        verify(&all[order[i]], round);
    }
}

/* Other collectives of the communicator while persistent ones are under way. */
static void call_others(MPI_Comm comm, unsigned *seed)
{
    int one = 1, sums[2] = {0, 0}, how = random_below(seed, 4);
    MPI_Request req;
    if (how & 1)
        OK(MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, comm, &req));
    if (how & 2)
        OK(MPI_Allreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, comm));
    if (how & 1)
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(sums[0] == (how & 1) * size && sums[1] == how / 2 * size);
}

static void any_order(MPI_Comm parent, unsigned *seed, unsigned *own)
{
    call all[KEPT];
    MPI_Comm comm;
    OK(MPI_Comm_dup(parent, &comm));
    for (int i = 0; i < KEPT; i++)
        make(&all[i], seed, comm);
    for (int round = 0; round < ROUNDS; round++) {
        start_all(all, KEPT, round, own);
        call_others(comm, seed);
        wait_all(all, KEPT, round, own);
        for (int i = random_below(seed, KEPT); i < KEPT; i += 3) {
            discard(&all[i]);
            make(&all[i], seed, comm);
        }
    }
    OK(MPI_Comm_free(&comm)); /* the requests keep it */
    start_all(all, KEPT, ROUNDS, own);
    wait_all(all, KEPT, ROUNDS, own);
    for (int i = 0; i < KEPT; i++)
        discard(&all[i]);
}

/* More than there is shared memory for: the others go by messages. */
static void many(unsigned *seed, unsigned *own)
{
    static call all[ALIVE];
    for (int i = 0; i < ALIVE; i++)
        make(&all[i], seed, MPI_COMM_WORLD);
    for (int round = 0; round < 3; round++) {
        start_all(all, ALIVE, round, own);
        wait_all(all, ALIVE, round, own);
    }
    for (int i = 0; i < ALIVE; i++)
        discard(&all[i]);
}

/* On one node the starts of a short call send no messages. */
static void by_slots(void)
{
    MPI_T_pvar_handle frames;
    MPI_Comm comm, node;
    MPI_Request req;
    int members, in = 0, out;
    unsigned long long before;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &req));
    frames = counter("weft_frames_sent");
    before = value_of(frames);
    for (int i = 0; i < STARTS; i++) {
        in = rank + i;
        OK(MPI_Start(&req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(out == size * (size - 1) / 2 + size * i);
    }
    CHECK(members != size || value_of(frames) - before < STARTS / 4, "%llu frames", value_of(frames) - before);
    OK(MPI_Request_free(&req));
    OK(MPI_Comm_free(&comm));
}

typedef struct share {
    MPI_Comm comm;
    unsigned seed;
} share;

static void *in_thread(void *arg)
{
    share *share = arg;
    unsigned own = share->seed + (unsigned)rank;
    any_order(share->comm, &share->seed, &own);
    return NULL;
}

int main(int argc, char **argv)
{
    share shares[THREADS];
    pthread_t threads[THREADS];
    unsigned seed = 1, own;
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &(int){0}));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    own = 77u + (unsigned)rank;
    for (int i = 0; i < 4; i++)
        any_order(MPI_COMM_WORLD, &seed, &own);
    many(&seed, &own);
    by_slots();
    for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
        shares[i].seed = 100u + (unsigned)i;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &shares[i].comm));
        CHECK(pthread_create(&threads[i], NULL, in_thread, &shares[i]) == 0);
    }
    for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
        pthread_join(threads[i], NULL);
        OK(MPI_Comm_free(&shares[i].comm));
    }
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
