/* np: 2 3 4 6 : the first collectives of a communicator are nonblocking: slots are used from the first call on; mixed forms; freed early */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tool_counter.h"

enum { CALLS = 200, ROUNDS = 60, QUEUED = 12, THREADS = 3, LONG = 20000 };
enum kind { IBARRIER, IBCAST, IALLREDUCE, IALLGATHERV, IREDUCE_SCATTER, IALLTOALLV, PERSISTENT, BLOCKING, IDUP, KINDS };

static int rank, size;

static int random_below(unsigned *seed, int limit)
{
    *seed = *seed * 1103515245u + 12345u;
    return (int)((*seed >> 16) % (unsigned)limit);
}

static int is_one_node(void)
{
    MPI_Comm node;
    int members;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Comm_free(&node));
    return members == size;
}

/* No blocking call is made: only the agreement sends messages. */
static void by_slots(void)
{
    MPI_T_pvar_handle frames;
    MPI_Comm comm;
    MPI_Request reqs[QUEUED];
    int in[QUEUED], out[QUEUED], one_node = is_one_node();
    unsigned long long before;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    frames = counter("weft_frames_sent");
    before = value_of(frames);
    for (int i = 0; i < CALLS; i += QUEUED) {
        for (int k = 0; k < QUEUED; k++) {
            in[k] = rank + i + k;
            OK(MPI_Iallreduce(&in[k], &out[k], 1, MPI_INT, MPI_SUM, comm, &reqs[k]));
        }
        OK(MPI_Waitall(QUEUED, reqs, MPI_STATUSES_IGNORE));
        for (int k = 0; k < QUEUED; k++)
            CHECK(out[k] == size * (size - 1) / 2 + size * (i + k));
    }
    CHECK(!one_node || value_of(frames) - before < CALLS / 4, "%llu frames", value_of(frames) - before);
    OK(MPI_Comm_free(&comm));
}

typedef struct call {
    enum kind kind;
    int count, value, *in, *out, *counts, *displs;
    MPI_Comm made;
} call;

/* Blocks of count + i % 2 items for rank i. */
static void fill_counts(call *it)
{
    it->counts = malloc((size_t)size * 2 * sizeof *it->counts);
    it->displs = it->counts + size;
    for (int i = 0; i < size; i++) {
        it->counts[i] = it->count + i % 2;
        it->displs[i] = i ? it->displs[i - 1] + it->counts[i - 1] : 0;
    }
}

static void forget_counts(call *it)
{
    for (int i = 0; i < 2 * size; i++)
        it->counts[i] = -1; /* they are read during the call only */
}

static void start_persistent(call *it, MPI_Comm comm, MPI_Request *req)
{
    OK(MPI_Allreduce_init(it->in, it->out, it->count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, req));
    OK(MPI_Start(req));
}

static void start(call *it, int number, unsigned *seed, MPI_Comm comm, MPI_Request *req)
{
    it->kind = (enum kind)random_below(seed, KINDS);
    it->count = 1 + random_below(seed, random_below(seed, 6) ? 30 : LONG);
    it->value = number + 1;
    size_t items = (size_t)(it->count + 1) * (size_t)size;
    it->in = malloc(items * sizeof *it->in);
    it->out = calloc(items, sizeof *it->out);
    for (size_t i = 0; i < items; i++)
        it->in[i] = it->value + rank;
    fill_counts(it);
    *req = MPI_REQUEST_NULL;
    it->made = MPI_COMM_NULL;
    switch (it->kind) {
    case IBARRIER: OK(MPI_Ibarrier(comm, req)); break;
    case IBCAST: OK(MPI_Ibcast(rank == number % size ? it->in : it->out, it->count, MPI_INT, number % size, comm, req)); break;
    case IALLREDUCE: OK(MPI_Iallreduce(it->in, it->out, it->count, MPI_INT, MPI_SUM, comm, req)); break;
    case IALLGATHERV:
        OK(MPI_Iallgatherv(it->in, it->counts[rank], MPI_INT, it->out, it->counts, it->displs, MPI_INT, comm, req));
        break;
    case IREDUCE_SCATTER: OK(MPI_Ireduce_scatter(it->in, it->out, it->counts, MPI_INT, MPI_SUM, comm, req)); break;
    case IALLTOALLV: {
        int sent[64], at[64];
        for (int i = 0; i < size; i++) {
            sent[i] = it->counts[rank];
            at[i] = 0;
        }
        OK(MPI_Ialltoallv(it->in, sent, at, MPI_INT, it->out, it->counts, it->displs, MPI_INT, comm, req));
        break;
    }
    case PERSISTENT: start_persistent(it, comm, req); break;
    case BLOCKING: OK(MPI_Allreduce(it->in, it->out, it->count, MPI_INT, MPI_SUM, comm)); break;
    default: OK(MPI_Comm_idup(comm, &it->made, req));
    }
    forget_counts(it);
}

static void check(call *it, int number)
{
    int last = size - 1, before = (it->count * last) + last / 2, sum = size * it->value + size * last / 2, width = it->count + rank % 2;
    switch (it->kind) {
    case IBCAST: CHECK(rank == number % size || it->out[it->count - 1] == it->value + number % size); break;
    case IALLREDUCE: case PERSISTENT: case BLOCKING: CHECK(it->out[0] == sum && it->out[it->count - 1] == sum); break;
    case IALLGATHERV: case IALLTOALLV: CHECK(it->out[0] == it->value && it->out[before] == it->value + last); break;
    case IREDUCE_SCATTER: CHECK(it->out[0] == sum && it->out[width - 1] == sum && it->out[width] == 0); break;
    case IDUP: OK(MPI_Barrier(it->made)); OK(MPI_Comm_free(&it->made)); break;
    default: break;
    }
    free(it->in);
    free(it->out);
    free(it->counts);
}

static void one_round(MPI_Comm parent, unsigned *seed, unsigned *own)
{
    call calls[QUEUED];
    MPI_Request reqs[QUEUED];
    MPI_Comm comm;
    int count = 1 + random_below(seed, QUEUED), is_freed_early = random_below(seed, 2);
    OK(MPI_Comm_dup(parent, &comm));
    for (int k = 0; k < count; k++) {
        start(&calls[k], k, seed, comm, &reqs[k]);
        for (int polls = random_below(own, 3), done; polls; polls--)
            OK(MPI_Testall(k + 1, reqs, &done, MPI_STATUSES_IGNORE));
    }
    if (is_freed_early)
        OK(MPI_Comm_free(&comm));
    for (int left = count; left; left--) {
        int k = random_below(own, count);
        while (calls[k].value < 0)
            k = (k + 1) % count;
        OK(MPI_Wait(&reqs[k], MPI_STATUS_IGNORE));
        if (calls[k].kind == PERSISTENT && reqs[k] != MPI_REQUEST_NULL)
            OK(MPI_Request_free(&reqs[k]));
        calls[k].value = -calls[k].value;
    }
    for (int k = 0; k < count; k++) {
        calls[k].value = -calls[k].value;
        check(&calls[k], k);
    }
    if (!is_freed_early)
        OK(MPI_Comm_free(&comm));
}

typedef struct share {
    MPI_Comm comm;
    unsigned seed;
} share;

static void *rounds(void *arg)
{
    share *share = arg;
    unsigned own = share->seed + (unsigned)rank;
    for (int i = 0; i < ROUNDS; i++)
        one_round(share->comm, &share->seed, &own);
    return NULL;
}

/* -- a call that is made while another thread begins those that were deferred -- */

static atomic_int is_folding, may_fold, is_over;
static pthread_t caller;

static void slow_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    atomic_store(&is_folding, 1);
    while (!atomic_load(&may_fold) && !pthread_equal(pthread_self(), caller))
        sched_yield();
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void *polls(void *arg)
{
    MPI_Comm *comm = arg;
    int flag;
    while (!atomic_load(&is_over))
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, *comm, &flag, MPI_STATUS_IGNORE));
    return NULL;
}

/* The first two calls await the agreement on slots. Another thread begins the first, whose operator runs with the library unlocked, when
 * this one makes the third: it must not overtake the second. */
static void in_order(void)
{
    enum { MEMBERS = 16, LONGER = 16 };
    int in[MEMBERS], sum = 0, all[MEMBERS], out[LONGER] = {0}, longer[MEMBERS * LONGER];
    MPI_Request reqs[3];
    MPI_Comm other, comm;
    pthread_t thread;
    MPI_Op op;
    for (int i = 0; i < MEMBERS; i++)
        in[i] = 1;
    caller = pthread_self();
    OK(MPI_Op_create(slow_sum, 1, &op));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Ireduce_scatter_block(in, &sum, 1, MPI_INT, op, comm, &reqs[0]));
    OK(MPI_Iallgather(in, 1, MPI_INT, all, 1, MPI_INT, comm, &reqs[1]));
    CHECK(pthread_create(&thread, NULL, polls, &other) == 0);
    while (!atomic_load(&is_folding))
        sched_yield();
    OK(MPI_Iallgather(out, LONGER, MPI_INT, longer, LONGER, MPI_INT, comm, &reqs[2]));
    atomic_store(&may_fold, 1);
    OK(MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE));
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    CHECK(sum == size && all[size - 1] == 1 && longer[LONGER * size - 1] == 0);
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&other));
}

int main(int argc, char **argv)
{
    share shares[THREADS];
    pthread_t threads[THREADS];
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &(int){0}));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    by_slots();
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
    if (provided == MPI_THREAD_MULTIPLE && is_one_node())
        in_order();
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
