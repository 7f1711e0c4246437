/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_inter: an MPI program with intercommunicators of drawn groups: collectives of all kinds, several in flight, beside those of the
 * local groups and messages. See apps.h. The draws are equal on all ranks, so each knows every call and every element.
 */
#include <mpi.h>
#include <stdlib.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };
enum { AT_ONCE = 4, LONGEST = 3000, RANKS_MAX = 8 };

typedef struct groups {
    MPI_Comm inter, local;
    int side, rank, sizes[2];
} groups;

typedef struct call {
    enum kind kind;
    bool is_blocking;
    int counts[2];  /* elements per block that a rank of each side sends; equal unless kind is ALLGATHER or ALLTOALL */
    int side, root; /* of the root */
    uint64_t salt;
    int64_t *send, *receive;
    MPI_Request request;
} call;

/* Element i of what rank r of a side sends. */
static int64_t element(const call *c, int side, int r, int64_t i)
{
    return (int64_t)((c->salt + (uint64_t)side * 7919 + (uint64_t)r * 1000003) * ((uint64_t)i * 2 + 1) & 0xffffffffffu);
}

static bool is_rooted(const call *c) { return c->kind == BCAST || c->kind == REDUCE || c->kind == GATHER || c->kind == SCATTER; }

static void draw(app_self *self, const groups *g, call *c)
{
    uint64_t longest = app_draw(&self->shared, 4) ? 30 : LONGEST;
    c->kind = (enum kind)app_draw(&self->shared, KINDS);
    c->is_blocking = app_draw(&self->shared, 3) == 0;
    c->counts[0] = (int)app_draw(&self->shared, longest);
    c->counts[1] = (int)app_draw(&self->shared, longest);
    if (c->kind != ALLGATHER && c->kind != ALLTOALL)
        c->counts[1] = c->counts[0];
    c->side = (int)app_draw(&self->shared, 2);
    c->root = (int)app_draw(&self->shared, (uint64_t)g->sizes[c->side]);
    c->salt = app_draw(&self->shared, 1u << 30);
    c->request = MPI_REQUEST_NULL;
    c->send = malloc((size_t)LONGEST * RANKS_MAX * sizeof *c->send);
    c->receive = malloc((size_t)LONGEST * RANKS_MAX * sizeof *c->receive);
    for (int i = 0; i < c->counts[g->side] * RANKS_MAX; i++)
        c->send[i] = element(c, g->side, g->rank, i);
    for (int i = 0; i < c->counts[!g->side] * RANKS_MAX; i++)
        c->receive[i] = c->kind == BCAST ? element(c, g->side, g->rank, i) : -1;
}

static int begin(app_self *self, const groups *g, call *c)
{
    int n = c->counts[g->side], m = c->counts[!g->side];
    int root = g->side != c->side ? c->root : g->rank == c->root ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Datatype type = MPI_INT64_T;
    MPI_Comm comm = g->inter;

    switch (c->kind) {
    case BARRIER: APP_TRY(c->is_blocking ? MPI_Barrier(comm) : MPI_Ibarrier(comm, &c->request)); break;
    case BCAST:
        APP_TRY(c->is_blocking ? MPI_Bcast(c->receive, n, type, root, comm) : MPI_Ibcast(c->receive, n, type, root, comm, &c->request));
        break;
    case REDUCE:
        APP_TRY(c->is_blocking ? MPI_Reduce(c->send, c->receive, n, type, MPI_SUM, root, comm)
                               : MPI_Ireduce(c->send, c->receive, n, type, MPI_SUM, root, comm, &c->request));
        break;
    case ALLREDUCE:
        APP_TRY(c->is_blocking ? MPI_Allreduce(c->send, c->receive, n, type, MPI_SUM, comm)
                               : MPI_Iallreduce(c->send, c->receive, n, type, MPI_SUM, comm, &c->request));
        break;
    case GATHER:
        APP_TRY(c->is_blocking ? MPI_Gather(c->send, n, type, c->receive, n, type, root, comm)
                               : MPI_Igather(c->send, n, type, c->receive, n, type, root, comm, &c->request));
        break;
    case SCATTER:
        APP_TRY(c->is_blocking ? MPI_Scatter(c->send, n, type, c->receive, n, type, root, comm)
                               : MPI_Iscatter(c->send, n, type, c->receive, n, type, root, comm, &c->request));
        break;
    case ALLGATHER:
        APP_TRY(c->is_blocking ? MPI_Allgather(c->send, n, type, c->receive, m, type, comm)
                               : MPI_Iallgather(c->send, n, type, c->receive, m, type, comm, &c->request));
        break;
    default:
        APP_TRY(c->is_blocking ? MPI_Alltoall(c->send, n, type, c->receive, m, type, comm)
                               : MPI_Ialltoall(c->send, n, type, c->receive, m, type, comm, &c->request));
    }
    return 0;
}

static int64_t sum(const groups *g, const call *c, int side, int64_t i)
{
    int64_t all = 0;
    for (int r = 0; r < g->sizes[side]; r++)
        all += element(c, side, r, i);
    return all;
}

/* Element i that the call must have received; where it receives none, what was there before. */
static int64_t expected(const groups *g, const call *c, int64_t i)
{
    int remote = !g->side;
    int64_t m = c->counts[remote];
    bool is_root = g->side == c->side && g->rank == c->root, is_other = g->side != c->side;
    int64_t kept = c->kind == BCAST ? element(c, g->side, g->rank, i) : -1;

    if (is_rooted(c) && !(c->kind == BCAST || c->kind == SCATTER ? is_other : is_root))
        return kept;
    switch (c->kind) {
    case BCAST: return i < m ? element(c, c->side, c->root, i) : kept;
    case REDUCE:
    case ALLREDUCE: return i < m ? sum(g, c, remote, i) : kept;
    case SCATTER: return i < m ? element(c, c->side, c->root, g->rank * m + i) : kept;
    case GATHER:
    case ALLGATHER: return i < m * g->sizes[remote] ? element(c, remote, (int)(i / m), i % m) : kept;
    case ALLTOALL: return i < m * g->sizes[remote] ? element(c, remote, (int)(i / m), g->rank * m + i % m) : kept;
    default: return kept;
    }
}

static int check(app_self *self, const groups *g, const call *c)
{
    for (int64_t i = 0; i < (int64_t)c->counts[!g->side] * RANKS_MAX; i++)
        if (c->receive[i] != expected(g, c, i))
            return app_fail(self, "groups of %d and %d, side %d: call %d of %d and %d elements, root %d of side %d: element %d is wrong",
                            g->sizes[0], g->sizes[1], g->side, (int)c->kind, c->counts[0], c->counts[1], c->root, c->side, (int)i);
    return 0;
}

static int round_of_calls(app_self *self, const groups *g)
{
    call calls[AT_ONCE];
    MPI_Request requests[AT_ONCE + 1];
    int64_t one = 1, members = 0, token = -1;

    APP_TRY(MPI_Iallreduce(&one, &members, 1, MPI_INT64_T, MPI_SUM, g->local, &requests[AT_ONCE]));
    for (int i = 0; i < AT_ONCE; i++) {
        draw(self, g, &calls[i]);
        if (begin(self, g, &calls[i]))
            return 1;
        requests[i] = calls[i].request;
    }
    if (g->rank < g->sizes[!g->side]) /* pairs of ranks of both groups; a collective's message must not match */
        APP_TRY(MPI_Sendrecv(&one, 1, MPI_INT64_T, g->rank, 3, &token, 1, MPI_INT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, g->inter,
                             MPI_STATUS_IGNORE));
    APP_TRY(MPI_Waitall(AT_ONCE + 1, requests, MPI_STATUSES_IGNORE));
    if (members != g->sizes[g->side] || token != (g->rank < g->sizes[!g->side] ? 1 : -1))
        return app_fail(self, "beside an intercommunicator: %d members, token %d", (int)members, (int)token);
    for (int i = 0; i < AT_ONCE; i++) {
        if (check(self, g, &calls[i]))
            return 1;
        free(calls[i].send);
        free(calls[i].receive);
    }
    return 0;
}

/* Both groups get members by a draw; rank 0 and the last one are on different sides. */
static int make_groups(app_self *self, groups *g)
{
    int sides[RANKS_MAX] = {0}, first[2] = {-1, -1};
    MPI_Comm dup;

    for (int r = 0; r < self->size; r++)
        sides[r] = r == 0 ? 0 : r == self->size - 1 ? 1 : (int)app_draw(&self->shared, 2);
    g->side = sides[self->rank];
    g->sizes[0] = g->sizes[1] = 0;
    for (int r = 0; r < self->size; r++) {
        if (first[sides[r]] < 0)
            first[sides[r]] = r;
        g->sizes[sides[r]]++;
    }
    APP_TRY(MPI_Comm_split(MPI_COMM_WORLD, g->side, -self->rank, &g->local)); /* ranks in the other order: the last one leads */
    APP_TRY(MPI_Comm_rank(g->local, &g->rank));
    APP_TRY(MPI_Intercomm_create(g->local, g->sizes[g->side] - 1, MPI_COMM_WORLD, first[!g->side], 4, &g->inter));
    int way = (int)app_draw(&self->shared, 3);
    if (way) {
        MPI_Request requests[2];
        int64_t one = 1, sum = 0;
        if (way == 1)
            APP_TRY(MPI_Comm_dup(g->inter, &dup));
        else {
            APP_TRY(MPI_Comm_idup(g->inter, &dup, &requests[0]));
            APP_TRY(MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, g->inter, &requests[1]));
            APP_TRY(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            if (sum != g->sizes[!g->side])
                return app_fail(self, "beside a duplication: %d members", (int)sum);
        }
        APP_TRY(MPI_Comm_free(&g->inter));
        g->inter = dup;
    }
    return 0;
}

int app_inter(int rank, void *arg)
{
    app_self about, *self = &about;
    groups g;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; self->size > 1 && round < self->what->rounds; round++) {
        if (make_groups(self, &g) || round_of_calls(self, &g) || round_of_calls(self, &g))
            return 1;
        APP_TRY(MPI_Comm_free(&g.inter));
        APP_TRY(MPI_Comm_free(&g.local));
    }
    APP_TRY(MPI_Finalize());
    return 0;
}
