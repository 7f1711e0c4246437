/* SPDX-License-Identifier: BSD-3-Clause
 * coll: tests of collective operations on all ranks, from one table: blocking, nonblocking (i...) and persistent (..._init).
 * The root rotates, so that each call depends on the previous one. With a fixed root (bcast1 and the like) ranks may run ahead;
 * the time ends when all ranks have ended.
 */
#include "coll.h"
#include "buffer.h"
#include "check.h"

#include <limits.h>
#include <stdlib.h>

/* Name, name in lower case, blocks sent and received, root, fold, unit in bytes, note, and the arguments of the call. */
#define OPERATIONS(X)                                                                                                              \
    X(Barrier, barrier, NOTHING, NOTHING, NO_ROOT, NO_FOLD, 0, "", a->comm)                                                        \
    X(Bcast, bcast, NOTHING, ONE, ROOT_SENDS, NO_FOLD, 1, "", a->in, a->n, a->type, a->root, a->comm)                              \
    X(Reduce, reduce, ONE, ONE, ROOT_RECEIVES, OF_ALL, 8, ", sum of doubles", a->out, a->in, a->n, a->type, MPI_SUM, a->root,      \
      a->comm)                                                                                                                     \
    X(Allreduce, allreduce, ONE, ONE, NO_ROOT, OF_ALL, 8, ", sum of doubles", a->out, a->in, a->n, a->type, MPI_SUM, a->comm)      \
    X(Gather, gather, ONE, EACH, ROOT_RECEIVES, NO_FOLD, 1, "", a->out, a->n, a->type, a->in, a->n, a->type, a->root, a->comm)     \
    X(Gatherv, gatherv, ONE, EACH, ROOT_RECEIVES, NO_FOLD, 1, ", equal counts", a->out, a->n, a->type, a->in, a->counts,           \
      a->displs, a->type, a->root, a->comm)                                                                                        \
    X(Scatter, scatter, EACH, ONE, ROOT_SENDS, NO_FOLD, 1, "", a->out, a->n, a->type, a->in, a->n, a->type, a->root, a->comm)      \
    X(Scatterv, scatterv, EACH, ONE, ROOT_SENDS, NO_FOLD, 1, ", equal counts", a->out, a->counts, a->displs, a->type, a->in,       \
      a->n, a->type, a->root, a->comm)                                                                                             \
    X(Allgather, allgather, ONE, EACH, NO_ROOT, NO_FOLD, 1, "", a->out, a->n, a->type, a->in, a->n, a->type, a->comm)              \
    X(Allgatherv, allgatherv, ONE, EACH, NO_ROOT, NO_FOLD, 1, ", equal counts", a->out, a->n, a->type, a->in, a->counts,           \
      a->displs, a->type, a->comm)                                                                                                 \
    X(Alltoall, alltoall, EACH, EACH, NO_ROOT, NO_FOLD, 1, "", a->out, a->n, a->type, a->in, a->n, a->type, a->comm)               \
    X(Alltoallv, alltoallv, EACH, EACH, NO_ROOT, NO_FOLD, 1, ", equal counts", a->out, a->counts, a->displs, a->type, a->in,       \
      a->counts, a->displs, a->type, a->comm)                                                                                      \
    X(Alltoallw, alltoallw, EACH, EACH, NO_ROOT, NO_FOLD, 1, ", equal counts and types", a->out, a->counts, a->displs, a->types,   \
      a->in, a->counts, a->displs, a->types, a->comm)                                                                              \
    X(Reduce_scatter_block, reduce_scatter_block, EACH, ONE, NO_ROOT, OF_ALL, 8, ", sum of doubles", a->out, a->in, a->n, a->type, \
      MPI_SUM, a->comm)                                                                                                            \
    X(Reduce_scatter, reduce_scatter, EACH, ONE, NO_ROOT, OF_ALL, 8, ", sum of doubles, equal counts", a->out, a->in, a->counts,   \
      a->type, MPI_SUM, a->comm)                                                                                                   \
    X(Scan, scan, ONE, ONE, NO_ROOT, UP_TO_ME, 8, ", sum of doubles", a->out, a->in, a->n, a->type, MPI_SUM, a->comm)              \
    X(Exscan, exscan, ONE, ONE, NO_ROOT, BELOW_ME, 8, ", sum of doubles", a->out, a->in, a->n, a->type, MPI_SUM, a->comm)          \
    X(Neighbor_allgather, neighbor_allgather, ONE, TWO, NO_ROOT, NO_FOLD, 1, ", ring", a->out, a->n, a->type, a->in, a->n,         \
      a->type, a->comm)                                                                                                            \
    X(Neighbor_alltoall, neighbor_alltoall, TWO, TWO, NO_ROOT, NO_FOLD, 1, ", ring", a->out, a->n, a->type, a->in, a->n, a->type,  \
      a->comm)

/* Persistent collectives are of MPI 4.0. */
#if MPI_VERSION >= 4
#define INIT_FUNCTION(NAME, LOWER, ...)                                                                                            \
    static void LOWER##_init(const bench_call *a)                                                                                  \
    {                                                                                                                              \
        MPI_##NAME##_init(__VA_ARGS__, MPI_INFO_NULL, a->request);                                                                 \
    }
#define INIT_CALL(LOWER) LOWER##_init
#define INIT_TEST(...) TEST(__VA_ARGS__),
#else
#define INIT_FUNCTION(...)
#define INIT_CALL(LOWER) NULL
#define INIT_TEST(...)
#endif

#define OPERATION(NAME, LOWER, OUT, IN, ROOTED, FOLD, UNIT, NOTE, ...)                                                             \
    static void LOWER##_blocking(const bench_call *a)                                                                              \
    {                                                                                                                              \
        MPI_##NAME(__VA_ARGS__);                                                                                                   \
    }                                                                                                                              \
    static void LOWER##_nonblocking(const bench_call *a)                                                                           \
    {                                                                                                                              \
        MPI_I##LOWER(__VA_ARGS__, a->request);                                                                                     \
    }                                                                                                                              \
    INIT_FUNCTION(NAME, LOWER, __VA_ARGS__)                                                                                        \
    static const struct bench_operation operation_##LOWER = {                                                                      \
        OUT, IN, ROOTED, FOLD, {LOWER##_blocking, LOWER##_nonblocking, INIT_CALL(LOWER)}};

OPERATIONS(OPERATION)

int bench_coll_blocks(const bench_case *c, bench_blocks blocks)
{
    return blocks == EACH ? c->ranks : blocks == TWO ? 2 : blocks == ONE ? 1 : 0;
}

static size_t arena_bytes(const bench_case *c, bench_blocks blocks)
{
    return (size_t)bench_coll_blocks(c, blocks) * (size_t)c->bytes + BENCH_GUARD;
}

static size_t memory(const bench_case *c)
{
    const struct bench_operation *op = c->test->operation;

    if ((op->out == EACH || op->in == EACH) && c->bytes > INT_MAX / c->ranks) {
        return SIZE_MAX; /* a displacement would exceed an int */
    }
    return bench_buffer_memory(c, arena_bytes(c, op->out), arena_bytes(c, op->in));
}

static bool is_persistent(const bench_case *c)
{
    return c->test->form == PERSISTENT;
}

static bool is_rotating(const bench_case *c)
{
    return c->test->operation->rooted != NO_ROOT && !c->test->fixed_root;
}

/* Persistent requests of a rotating root: one for each root. */
static int requests_count(const bench_case *c)
{
    return is_persistent(c) && is_rotating(c) ? c->ranks : 1;
}

static int open_case(bench_case *c)
{
    const struct bench_operation *op = c->test->operation;
    size_t ranks = (size_t)c->ranks;
    bench_call *call;

    c->coll = calloc(1, sizeof *c->coll);
    if (!c->coll || bench_buffer_requests(c, requests_count(c))) {
        return -1;
    }
    for (int i = 0; i < requests_count(c); i++) {
        c->requests[i] = MPI_REQUEST_NULL;
    }
    call = &c->coll->call;
    call->counts = malloc(ranks * sizeof(int));
    call->displs = malloc(ranks * sizeof(int));
    call->types = malloc(ranks * sizeof(MPI_Datatype));
    if (!call->counts || !call->displs || !call->types) {
        return -1;
    }
    call->n = (int)c->bytes / (int)(op->fold ? sizeof(double) : 1);
    call->type = op->fold ? MPI_DOUBLE : MPI_BYTE;
    call->comm = MPI_COMM_WORLD;
    call->request = c->requests;
    for (int r = 0; r < c->ranks; r++) {
        call->counts[r] = call->n;
        call->displs[r] = op->out == EACH || op->in == EACH ? r * call->n : 0;
        call->types[r] = call->type;
    }
    return bench_buffer_open(c, arena_bytes(c, op->out), arena_bytes(c, op->in));
}

static void close_case(bench_case *c)
{
    struct bench_coll_state *s = c->coll;

    if (s && s->ready) {
        for (int i = 0; i < requests_count(c) && is_persistent(c); i++) {
            MPI_Request_free(&c->requests[i]);
        }
        if (s->call.comm != MPI_COMM_WORLD) {
            MPI_Comm_free(&s->call.comm);
        }
    }
    if (s) {
        free(s->call.counts);
        free(s->call.displs);
        free(s->call.types);
    }
    free(s);
    c->coll = NULL;
    bench_buffer_close(c);
}

/* A periodic line of processes: block 0 is to and from the left, block 1 to and from the right (MPI 4.0, section 8.5). */
static void ring_make(bench_case *c)
{
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){c->ranks}, (int[]){1}, 0, &c->coll->call.comm);
    c->coll->neighbours[0] = (c->rank + c->ranks - 1) % c->ranks;
    c->coll->neighbours[1] = (c->rank + 1) % c->ranks;
}

void bench_coll_prepare(bench_case *c)
{
    const struct bench_operation *op = c->test->operation;
    bench_call call;

    if (c->coll->ready) {
        return;
    }
    c->coll->ready = true;
    if (op->in == TWO) {
        ring_make(c);
    }
    call = c->coll->call;
    call.out = c->out.base;
    call.in = c->in.base;
    for (int i = 0; i < requests_count(c) && is_persistent(c); i++) {
        call.root = i;
        call.request = &c->requests[i];
        op->calls[PERSISTENT](&call);
    }
}

void bench_coll_perform(bench_case *c, int root)
{
    bench_call *call = &c->coll->call;
    bench_form form = (bench_form)c->test->form;
    MPI_Request *request = c->requests;

    if (form == PERSISTENT) {
        request += root;
        MPI_Start(request);
    } else {
        call->root = root;
        c->test->operation->calls[form](call);
    }
    if (form != BLOCKING) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

static double run(bench_case *c, long iterations)
{
    bench_call *call = &c->coll->call;
    int roots = is_rotating(c) ? c->ranks : 1, root = 0;
    double start;

    bench_coll_prepare(c);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        call->out = bench_buffer_next(&c->out);
        call->in = bench_buffer_next(&c->in);
        bench_coll_perform(c, root);
        root = root + 1 < roots ? root + 1 : 0;
    }
    if (c->test->fixed_root) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

#define TEST(NAME, HELP, LOWER, FORM, FIXED, UNIT)                                                                                 \
    {                                                                                                                              \
        .name = NAME, .help = HELP, .figure = BENCH_MICROSECONDS, .min_bytes = UNIT, .max_bytes = UNIT ? 1 << 20 : 0,              \
        .unit_bytes = UNIT, .empty = UNIT == 1, .memory = memory, .open = open_case, .run = run, .check = bench_coll_check,        \
        .close = close_case, .operation = &operation_##LOWER, .form = FORM, .fixed_root = FIXED                                    \
    }

#define TESTS(SUFFIX, NAME, LOWER, FIXED, UNIT, NOTE)                                                                              \
    TEST(#LOWER SUFFIX, "MPI_" #NAME NOTE, LOWER, BLOCKING, FIXED, UNIT),                                                          \
        TEST("i" #LOWER SUFFIX, "MPI_I" #LOWER " and MPI_Wait" NOTE, LOWER, NONBLOCKING, FIXED, UNIT),                             \
        INIT_TEST(#LOWER SUFFIX "_init", "MPI_Start and MPI_Wait of MPI_" #NAME "_init" NOTE, LOWER, PERSISTENT, FIXED, UNIT)

#define TESTS_NO_ROOT(...) TESTS("", __VA_ARGS__)
#define TESTS_ROOT(NAME, LOWER, FIXED, UNIT, NOTE)                                                                                 \
    TESTS("", NAME, LOWER, false, UNIT, NOTE ", the root rotates") TESTS("1", NAME, LOWER, true, UNIT, NOTE ", from or to rank 0")
#define TESTS_ROOT_SENDS(...) TESTS_ROOT(__VA_ARGS__)
#define TESTS_ROOT_RECEIVES(...) TESTS_ROOT(__VA_ARGS__)
#define TESTS_OF_ROW(NAME, LOWER, OUT, IN, ROOTED, FOLD, UNIT, NOTE, ...) TESTS_##ROOTED(NAME, LOWER, false, UNIT, NOTE)

const bench_test bench_collectives[] = {OPERATIONS(TESTS_OF_ROW){0}};
