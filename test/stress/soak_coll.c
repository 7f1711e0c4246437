/* SPDX-License-Identifier: BSD-3-Clause
 *
 * soak_coll: rounds of collectives: each operation, blocking, nonblocking (several in flight, with messages) and persistent; results are
 * verified. Called by soak.c.
 */
#include "soak.h"

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };
enum { BLOCKING, NONBLOCKING, PERSISTENT };

typedef struct coll {
    int kind, count, root, in_place, salt;
    MPI_Op op;
    int *in, *out;
    MPI_Request req;
} coll;

static int value_of(const coll *c, int rank, int at) { return (c->salt + rank * 31 + at * 7) % 100003; }

/* Expected value of `at` in block `block` from `rank`; the block's number counts where each pair has its own. */
static int block_value(const coll *c, int rank, int block, int at) { return value_of(c, rank * 100 + block, at); }

static void coll_open(soak *s, coll *c)
{
    static const int counts[] = {0, 1, 1, 2, 7, 33, 100, 1000, 5000, 30000, 100000};
    c->kind = (int)soak_pick(s, KINDS);
    c->count = counts[soak_pick(s, sizeof counts / sizeof *counts)];
    if (c->kind == ALLTOALL && c->count > 5000)
        c->count = 5000;
    c->root = (int)soak_pick(s, (unsigned)s->size);
    c->in_place = soak_pick(s, 4) == 0;
    c->op = soak_pick(s, 2) ? MPI_SUM : MPI_MAX;
    size_t room = ((size_t)c->count * (size_t)s->size + 1) * sizeof(int);
    c->in = malloc(room);
    c->out = malloc(room);
}

static void coll_fill(soak *s, coll *c, int salt)
{
    c->salt = salt;
    int all = c->count * s->size, place = c->in_place && (c->kind == ALLREDUCE || c->kind == ALLGATHER || c->kind == ALLTOALL);
    for (int i = 0; i < all; i++)
        c->out[i] = -1;
    for (int i = 0; i < c->count; i++) {
        if (c->kind == BCAST)
            c->out[i] = s->rank == c->root ? value_of(c, c->root, i) : -1;
        else
            c->in[i] = value_of(c, s->rank, i);
        if (place && c->kind == ALLREDUCE)
            c->out[i] = c->in[i];
        if (place && c->kind == ALLGATHER)
            c->out[s->rank * c->count + i] = c->in[i];
    }
    if (c->kind == SCATTER || c->kind == ALLTOALL)
        for (int i = 0; i < all; i++)
            (place ? c->out : c->in)[i] = block_value(c, s->rank, i / (c->count ? c->count : 1), i % (c->count ? c->count : 1));
}

#define CALL(blocking, nonblocking, persistent) \
    OK(form == BLOCKING ? (blocking) : form == NONBLOCKING ? (nonblocking) : (persistent))
#define THREE(name, ...) \
    CALL(MPI_##name(__VA_ARGS__, s->comm), MPI_I##name##_(__VA_ARGS__, s->comm, &c->req), \
         MPI_##name##_init(__VA_ARGS__, s->comm, MPI_INFO_NULL, &c->req))
#define MPI_IBcast_ MPI_Ibcast
#define MPI_IReduce_ MPI_Ireduce
#define MPI_IAllreduce_ MPI_Iallreduce
#define MPI_IGather_ MPI_Igather
#define MPI_IScatter_ MPI_Iscatter
#define MPI_IAllgather_ MPI_Iallgather
#define MPI_IAlltoall_ MPI_Ialltoall

static void coll_start(soak *s, coll *c, int form)
{
    const void *in = c->in_place ? MPI_IN_PLACE : c->in;
    int n = c->count;
    switch (c->kind) {
    case BARRIER:
        CALL(MPI_Barrier(s->comm), MPI_Ibarrier(s->comm, &c->req), MPI_Barrier_init(s->comm, MPI_INFO_NULL, &c->req));
        break;
    case BCAST: THREE(Bcast, c->out, n, MPI_INT, c->root); break;
    case REDUCE: THREE(Reduce, c->in, c->out, n, MPI_INT, c->op, c->root); break;
    case ALLREDUCE: THREE(Allreduce, in, c->out, n, MPI_INT, c->op); break;
    case GATHER: THREE(Gather, c->in, n, MPI_INT, c->out, n, MPI_INT, c->root); break;
    case SCATTER: THREE(Scatter, c->in, n, MPI_INT, c->out, n, MPI_INT, c->root); break;
    case ALLGATHER: THREE(Allgather, in, n, MPI_INT, c->out, n, MPI_INT); break;
    default: THREE(Alltoall, in, n, MPI_INT, c->out, n, MPI_INT); break;
    }
}

static int reduced(const soak *s, const coll *c, int at)
{
    int result = 0;
    for (int r = 0; r < s->size; r++) {
        int value = value_of(c, r, at);
        result = c->op == MPI_SUM ? result + value : value > result ? value : result;
    }
    return result;
}

static void coll_check(soak *s, const coll *c)
{
    static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"};
    int blocks = c->kind == GATHER || c->kind == ALLGATHER || c->kind == ALLTOALL ? s->size : 1;
    int looks = c->kind != BARRIER && (s->rank == c->root || (c->kind != REDUCE && c->kind != GATHER));
    for (int b = 0; looks && b < blocks; b++)
        for (int i = 0; i < c->count; i++) {
            int must = c->kind == BCAST                            ? value_of(c, c->root, i)
                       : c->kind == REDUCE || c->kind == ALLREDUCE ? reduced(s, c, i)
                       : c->kind == SCATTER                        ? block_value(c, c->root, s->rank, i)
                       : c->kind == ALLTOALL                       ? block_value(c, b, s->rank, i)
                                                                   : value_of(c, b, i);
            CHECK(c->out[b * c->count + i] == must, "round %u %s: %s of %d, root %d: %d of block %d is %d, must be %d", s->round,
                  s->page->deed,
                  names[c->kind], c->count, c->root, i, b, c->out[b * c->count + i], must);
        }
    soak_tick(s);
}

static void coll_close(coll *c)
{
    free(c->in);
    free(c->out);
}

static void blocking(soak *s)
{
    for (int times = 1 + (int)soak_pick(s, 4); times; times--) {
        coll c;
        coll_open(s, &c);
        for (int again = 0; again < 3; again++) {
            coll_fill(s, &c, (int)(s->round * 17u % 65537u) + again);
            coll_start(s, &c, BLOCKING);
            coll_check(s, &c);
        }
        coll_close(&c);
    }
}

/* Several in flight, with messages among them, completed in any order. */
static void nonblocking(soak *s)
{
    enum { MAX = 6 };
    coll colls[MAX];
    MPI_Request reqs[MAX + 2];
    MPI_Status statuses[MAX + 2];
    int count = 1 + (int)soak_pick(s, MAX), to = (s->rank + 1) % s->size, from = (s->rank + s->size - 1) % s->size;
    size_t bytes = soak_bytes(&s->shared);
    unsigned char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    check_fill(out, bytes, soak_seed(s, s->rank, to, 0));
    OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, from, s->tag, s->comm, &reqs[0]));
    for (int i = 0; i < count; i++) {
        coll_open(s, &colls[i]);
        coll_fill(s, &colls[i], (int)(s->round * 29u % 65537u) + i);
        coll_start(s, &colls[i], NONBLOCKING);
        reqs[2 + i] = colls[i].req;
        if (soak_own(s, 8) == 0)
            soak_nap(soak_own(s, 1000));
    }
    OK(MPI_Isend(out, (int)bytes, MPI_BYTE, to, s->tag, s->comm, &reqs[1]));
    soak_finish(s, 2 + count, reqs, statuses);
    CHECK(check_wrong(in, bytes, soak_seed(s, from, s->rank, 0)) == bytes, "round %u: %zu bytes beside collectives", s->round, bytes);
    for (int i = 0; i < count; i++) {
        coll_check(s, &colls[i]);
        coll_close(&colls[i]);
    }
    free(in);
    free(out);
}

static void persistent(soak *s)
{
    enum { MAX = 3 };
    coll colls[MAX];
    int count = 1 + (int)soak_pick(s, MAX), times = 1 + (int)soak_pick(s, 5);
    for (int i = 0; i < count; i++) {
        coll_open(s, &colls[i]);
        coll_start(s, &colls[i], PERSISTENT);
    }
    for (int t = 0; t < times; t++) {
        MPI_Request reqs[MAX];
        for (int i = 0; i < count; i++) {
            coll_fill(s, &colls[i], (int)(s->round * 13u % 65537u) + i + 5 * t);
            reqs[i] = colls[i].req;
        }
        OK(MPI_Startall(count, reqs));
        OK(MPI_Waitall(count, reqs, MPI_STATUSES_IGNORE));
        for (int i = 0; i < count; i++)
            coll_check(s, &colls[i]);
    }
    for (int i = 0; i < count; i++) {
        OK(MPI_Request_free(&colls[i].req));
        coll_close(&colls[i]);
    }
}

const soak_deed soak_coll_deeds[] = {
    {"blocking", blocking, 6},
    {"nonblocking", nonblocking, 6},
    {"persistent", persistent, 3},
    {NULL, NULL, 0},
};
