/* SPDX-License-Identifier: BSD-3-Clause
 *
 * colls: collectives, blocking, nonblocking and persistent, with types of one signature but another layout on each rank; one by one, or
 * several in flight on different communicators. Reductions use integers and users' operators, also one that does not commute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum {
    BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW,
    SCAN, EXSCAN, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, KINDS
};
enum { BLOCKING, NONBLOCKING, PERSISTENT };
static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall",
                                    "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "scan", "exscan", "reduce_scatter_block",
                                    "reduce_scatter"};

/* -- operators: int64 pairs (a, b) stand for x -> a x + b modulo a prime; composition does not commute -- */

enum { PRIME = 1000003, USER = 8, AFFINE = USER, PLUS = USER + 1, OPS };

typedef struct affine {
    int64_t a, b;
} affine;

static affine compose(affine f, affine g) { return (affine){f.a * g.a % PRIME, (f.a * g.b + f.b) % PRIME}; }
static affine plus(affine f, affine g) { return (affine){(f.a + g.a) % PRIME, (f.b + g.b) % PRIME}; }

static void apply(affine (*of)(affine, affine), const char *in, char *inout, int n, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(type, &lb, &extent);
    for (int i = 0; i < n; i++)
        *(affine *)(inout + i * extent) = of(*(const affine *)(in + i * extent), *(affine *)(inout + i * extent));
}

static void user_compose(void *in, void *inout, int *n, MPI_Datatype *type) { apply(compose, in, inout, *n, *type); }
static void user_plus(void *in, void *inout, int *n, MPI_Datatype *type) { apply(plus, in, inout, *n, *type); }

void rp_user_ops_open(rp *rp)
{
    RP_OK(rp, MPI_Op_create(user_compose, 0, &rp->ops_user[0]));
    RP_OK(rp, MPI_Op_create(user_plus, 1, &rp->ops_user[1]));
}

static MPI_Op op_of(const rp *rp, int op)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_PROD, MPI_LXOR};
    return op >= USER ? rp->ops_user[op - USER] : ops[op];
}

/* Element `at` of rank r in a reduction; small, so that no result overflows. */
static affine operand(uint64_t key, int r, uint64_t at, int op)
{
    uint64_t value = rp_value(rp_hash(key, (uint64_t)r), at);
    if (op >= USER)
        return (affine){(int64_t)(value % PRIME), (int64_t)(value >> 32) % PRIME};
    return (affine){op == 6 ? 1 + (int64_t)(value % 2) : (int64_t)(value % 1000), 0};
}

static affine combine(affine x, affine y, int op)
{
    switch (op) {
    case 0: x.a += y.a; break;
    case 1: x.a = x.a > y.a ? x.a : y.a; break;
    case 2: x.a = x.a < y.a ? x.a : y.a; break;
    case 3: x.a &= y.a; break;
    case 4: x.a |= y.a; break;
    case 5: x.a ^= y.a; break;
    case 6: x.a *= y.a; break;
    case 7: x.a = !x.a != !y.a; break;
    case AFFINE: return compose(x, y);
    default: return plus(x, y);
    }
    return x;
}

/* -- a call -- */

/* Data depend on the sender's number. Members of group 1 of an intercommunicator are numbered from REMOTE on. */
enum { REMOTE = 32 };

typedef struct coll {
    int kind, form, root, op, n, rank; /* n: ranks that data come from or go to: of the remote group, if there are two */
    int local;                         /* ranks of the own group */
    int self;                          /* first of the numbers of this rank's group in keys; the other group's: REMOTE - self */
    bool in_place, is_inter;
    bool is_root, is_idle;             /* is_idle: in the root's group, but not the root */
    uint32_t step, turn, turns;
    int message; /* of the step */
    uint64_t key;
    MPI_Comm comm;
    /* data movement: items of a block on either side; a reduction: elements */
    rp_type type;
    uint64_t count, basics;
    rp_buf out, in, want;
    /* reductions: as bytes */
    MPI_Datatype element;
    int width, bytes;
    uint8_t *send, *receive;
} coll;

static bool is_reduction(int kind) { return kind == REDUCE || kind == ALLREDUCE || kind >= SCAN; }
static bool is_v(int kind) { return kind >= GATHERV && kind <= ALLTOALLW; }
static bool is_pairs(int kind) { return kind == ALLTOALL || kind == ALLTOALLV || kind == ALLTOALLW; }
static bool is_rooted(int kind)
{
    return kind == BCAST || kind == REDUCE || kind == GATHER || kind == SCATTER || kind == GATHERV || kind == SCATTERV;
}

static void plan_one(rp *rp, rp_step *step, rp_dice *dice, int comm, rp_message *m)
{
    static const uint32_t counts[] = {1, 3, 30, 30, 300, 300, 3000, 20000};
    memset(m, 0, sizeof *m);
    m->side = comm;
    m->mode = (int)rp_draw(dice, KINDS);
    m->sform = (int)rp_draw(dice, 3);
    m->to_side = rp->comms[comm].is_inter ? (int)rp_draw(dice, 2) : 0; /* group of the root */
    m->from = (int)rp_draw(dice, (uint32_t)rp->comms[comm].n[m->to_side]);
    m->bytes = rp_draw(dice, counts[rp_draw(dice, 8)]);
    m->sig = rp_sig_draw(dice);
    m->stype = rp_draw(dice, 1u << 30);
    m->sdepth = (int)rp_draw(dice, 3);
    m->tag = (int)rp_draw(dice, OPS);
    m->is_same = rp_draw(dice, 4) == 0 && !rp->comms[comm].is_inter; /* in place */
    if (rp->comms[comm].is_inter && (m->mode == SCAN || m->mode == EXSCAN)) /* of intracommunicators only */
        m->mode += REDUCE_SCATTER_BLOCK - SCAN;
    m->to = 1 + (int)rp_draw(dice, 3);  /* starts of a persistent one */
    m->rform = (int)rp_draw(dice, 6);
    m->is_wide = rp->comms[comm].n[0] > 4 || rp->comms[comm].n[1] > 4;
    rp_say(step, " %s%s%s on %d, root %d, size %u, op %d", m->sform == NONBLOCKING ? "i" : "", names[m->mode],
           m->sform == PERSISTENT ? "_init" : "", comm, m->from, m->bytes, m->tag);
}

void plan_coll(rp *rp, rp_step *step)
{
    step->n = 1 + (int)rp_draw(&step->dice, 3);
    step->comm = rp_comm_pick(rp, &step->dice, true, false);
    for (int i = 0; i < step->n; i++)
        plan_one(rp, step, &step->dice, step->comm, &step->messages[i]);
}

/* Nonblocking ones on several communicators at once. */
void plan_colls(rp *rp, rp_step *step)
{
    step->n = 2 + (int)rp_draw(&step->dice, 6);
    for (int i = 0; i < step->n; i++) {
        plan_one(rp, step, &step->dice, rp_comm_pick(rp, &step->dice, true, false), &step->messages[i]);
        if (step->messages[i].sform == BLOCKING)
            step->messages[i].sform = NONBLOCKING;
    }
}

static int far(const coll *c) { return c->is_inter ? REMOTE - c->self : 0; }

static uint64_t block_key(const coll *c, int from, int to)
{
    bool by_receiver = c->kind == SCATTER || c->kind == SCATTERV || is_pairs(c->kind);
    return rp_hash(c->key, (uint64_t)from * 64 + (uint64_t)(by_receiver ? to : 0));
}

/* A v-form: length of a block, 0 to 2 times that of the plain form; in place both ways are equal. */
static int share(const coll *c, int from, int to)
{
    uint64_t a = (uint64_t)from, b = (uint64_t)to, call = (uint64_t)c->step * 8 + (uint64_t)c->message;
    if (!is_v(c->kind))
        return 1;
    if (c->kind == GATHERV || c->kind == ALLGATHERV)
        b = 0;
    if (c->in_place && is_pairs(c->kind) && a > b)
        a = (uint64_t)to, b = (uint64_t)from;
    return (int)(rp_hash(rp_hash(call, a), b) % 3);
}

/* First item of a block; those of the v-forms have gaps, and are reversed in every second call. */
static uint64_t block_at(const coll *c, int block)
{
    return !is_v(c->kind) ? (uint64_t)block * c->count : 2 * c->count * (uint64_t)(c->step % 2 ? c->n - 1 - block : block);
}

/* from, to: numbers of ranks */
static void put_at(coll *c, rp_buf *buf, uint64_t item, int from, int to)
{
    rp_buf_put(buf, &c->type, item, block_key(c, from, to), c->basics * (uint64_t)share(c, from, to));
}

static void put(coll *c, rp_buf *buf, int block, int from, int to) { put_at(c, buf, block_at(c, block), from, to); }

/* Fills what is sent, and what must be received, of a data movement. */
static void fill_blocks(rp *rp, coll *c)
{
    rp_buf *out = c->in_place && c->kind != BCAST ? &c->in : &c->out;
    int own = c->in_place ? c->rank : 0, me = c->self + c->rank, root = far(c) + c->root;
    bool is_all = c->kind == ALLGATHER || c->kind == ALLGATHERV, gathers = is_all || c->is_root;
    memset(c->in.mem, RP_GAP, c->in.bytes);
    memset(c->want.mem, RP_GAP, c->want.bytes);
    if (c->is_idle)
        return;
    switch (c->kind) {
    case BCAST:
        put(c, &c->want, 0, c->is_root ? me : root, 0);
        if (c->is_root)
            put(c, &c->in, 0, me, 0);
        break;
    case GATHER:
    case ALLGATHER:
    case GATHERV:
    case ALLGATHERV:
        if (!gathers)
            put_at(c, &c->out, 0, me, 0);
        else if (!c->is_inter || is_all)
            put_at(c, out, c->in_place ? block_at(c, own) : 0, me, 0);
        for (int r = 0; r < c->n && gathers; r++)
            put(c, &c->want, r, far(c) + r, me);
        break;
    case SCATTER:
    case SCATTERV:
        for (int r = 0; r < c->n && c->is_root; r++)
            put(c, &c->out, r, me, far(c) + r);
        if (!c->is_root || (!c->in_place && !c->is_inter))
            put_at(c, &c->want, 0, c->is_root ? me : root, me);
        break;
    default:
        for (int r = 0; r < c->n; r++) {
            put(c, out, r, me, far(c) + r);
            put(c, &c->want, r, far(c) + r, me);
        }
    }
    if (c->basics && rp_plants(rp, "coll"))
        c->want.mem[c->want.origin + c->type.map[0].at] ^= 1;
}

static void fill_operands(coll *c)
{
    uint8_t *to = c->in_place && (!is_rooted(c->kind) || c->is_root) ? c->receive : c->send;
    memset(c->receive, RP_GAP, (size_t)c->bytes);
    for (uint64_t i = 0; i < c->count; i++) {
        affine value = operand(c->key, c->self + c->rank, i, c->op);
        if (c->width == 4)
            memcpy(to + i * 4, &(int32_t){(int32_t)value.a}, 4);
        else
            memcpy(to + i * (size_t)c->width, &value, c->width == 8 ? 8 : sizeof value);
    }
}

/* First element of block i of a reduce_scatter. */
static uint64_t deal_start(const coll *c, int i)
{
    uint64_t n = (uint64_t)c->local, at = (uint64_t)i;
    return c->kind == REDUCE_SCATTER ? c->count * at * at / (n * n) : c->count / n * at;
}

static void verify_operands(rp *rp, const coll *c)
{
    int first = far(c), last = first + c->n - 1;
    uint64_t begin = 0, end = c->count;
    if (c->kind == SCAN || c->kind == EXSCAN)
        last = c->kind == SCAN ? c->rank : c->rank - 1;
    if (c->kind >= REDUCE_SCATTER_BLOCK) {
        begin = deal_start(c, c->rank);
        end = deal_start(c, c->rank + 1);
    }
    for (uint64_t i = begin; i < end && last >= first; i++) {
        affine want = operand(c->key, first, i, c->op), got = {0, 0};
        for (int r = first + 1; r <= last; r++)
            want = combine(want, operand(c->key, r, i, c->op), c->op);
        if (c->width == 4) {
            int32_t value;
            memcpy(&value, c->receive + (i - begin) * 4, 4);
            got.a = value;
        } else
            memcpy(&got, c->receive + (i - begin) * (size_t)c->width, c->width == 8 ? 8 : sizeof got);
        if (c->op == 7)
            want.a = last == first ? want.a : !!want.a;
        if (got.a != want.a || (c->op >= USER && got.b != want.b))
            rp_fail(rp, "%s, op %d, element %llu of %llu: expected %lld, got %lld", names[c->kind], c->op, (unsigned long long)i,
                    (unsigned long long)c->count, (long long)want.a, (long long)got.a);
    }
    for (size_t i = (c->in_place ? c->count : end - begin) * (size_t)c->width; i < (size_t)c->bytes; i++)
        if (c->receive[i] != RP_GAP)
            rp_fail(rp, "%s wrote behind its buffer, at %zu", names[c->kind], i);
}

static void fill(rp *rp, coll *c)
{
    c->key = rp_hash(rp_key(rp, c->step, 0, c->turn), c->key);
    if (is_reduction(c->kind))
        fill_operands(c);
    else if (c->kind != BARRIER)
        fill_blocks(rp, c);
}

static void verify(rp *rp, coll *c)
{
    if (c->kind == BARRIER)
        return;
    if (is_reduction(c->kind)) {
        if (!is_rooted(c->kind) || c->is_root)
            verify_operands(rp, c);
        return;
    }
    rp_buf_same(rp, &c->in, &c->want, names[c->kind]);
}

static void coll_close(rp *rp, coll *c)
{
    rp_type_close(rp, &c->type);
    rp_buf_close(&c->out);
    rp_buf_close(&c->in);
    rp_buf_close(&c->want);
    free(c->send);
    free(c->receive);
    if (c->width > 8)
        RP_OK(rp, MPI_Type_free(&c->element));
    free(c);
}

#if RP_MPI(4, 0)
#define INIT(name, ...) MPI_##name##_init(__VA_ARGS__, c->comm, MPI_INFO_NULL, req)
#else
#define INIT(name, ...) MPI_ERR_OTHER
#endif
#define CALL(upper, lower, ...)                                                   \
    RP_OK(rp, c->form == BLOCKING    ? MPI_##upper(__VA_ARGS__, c->comm)          \
              : c->form == NONBLOCKING ? MPI_I##lower(__VA_ARGS__, c->comm, req) \
                                       : INIT(upper, __VA_ARGS__))

static int root_argument(const coll *c)
{
    return !c->is_inter ? c->root : c->is_root ? MPI_ROOT : c->is_idle ? MPI_PROC_NULL : c->root;
}

enum { RANKS = 64 };

/* The arrays of a v-form; types and bytes for alltoallw. */
typedef struct arrays {
    int counts[RANKS], displs[RANKS], bytes[RANKS];
    MPI_Datatype types[RANKS];
} arrays;

static void arrays_of(const coll *c, bool is_send, arrays *a)
{
    int me = c->self + c->rank;
    for (int i = 0; i < c->n; i++) {
        int other = far(c) + i;
        a->counts[i] = (int)c->count * (is_send ? share(c, me, other) : share(c, other, me));
        a->displs[i] = (int)block_at(c, i);
        a->bytes[i] = a->displs[i] * (int)(c->type.ub - c->type.lb);
        a->types[i] = c->type.mpi;
    }
}

static void call_v(rp *rp, coll *c, MPI_Request *req)
{
    void *out = rp_buf_at(&c->out, &c->type, 0), *in = rp_buf_at(&c->in, &c->type, 0), *place = c->in_place ? MPI_IN_PLACE : out;
    int me = c->self + c->rank, root = root_argument(c), from = c->is_root ? me : far(c) + c->root;
    int sent = (int)c->count * share(c, me, 0), got = (int)c->count * share(c, from, me);
    MPI_Datatype t = c->type.mpi;
    arrays to, of;
    arrays_of(c, true, &to);
    arrays_of(c, false, &of);
    switch (c->kind) {
    case GATHERV: CALL(Gatherv, gatherv, c->is_root ? place : out, sent, t, in, of.counts, of.displs, t, root); break;
    case SCATTERV: CALL(Scatterv, scatterv, out, to.counts, to.displs, t, c->is_root && c->in_place ? MPI_IN_PLACE : in, got, t, root);
        break;
    case ALLGATHERV: CALL(Allgatherv, allgatherv, place, sent, t, in, of.counts, of.displs, t); break;
    case ALLTOALLV: CALL(Alltoallv, alltoallv, place, to.counts, to.displs, t, in, of.counts, of.displs, t); break;
    default: CALL(Alltoallw, alltoallw, place, to.counts, to.bytes, to.types, in, of.counts, of.bytes, of.types);
    }
}

static void call_blocks(rp *rp, coll *c, MPI_Request *req)
{
    void *out = rp_buf_at(&c->out, &c->type, 0), *in = rp_buf_at(&c->in, &c->type, 0);
    MPI_Datatype t = c->type.mpi;
    int n = (int)c->count, root = root_argument(c);
    switch (c->kind) {
    case BCAST: CALL(Bcast, bcast, in, n, t, root); break;
    case GATHER: CALL(Gather, gather, c->in_place && c->is_root ? MPI_IN_PLACE : out, n, t, in, n, t, root); break;
    case SCATTER: CALL(Scatter, scatter, out, n, t, c->in_place && c->is_root ? MPI_IN_PLACE : in, n, t, root); break;
    case ALLGATHER: CALL(Allgather, allgather, c->in_place ? MPI_IN_PLACE : out, n, t, in, n, t); break;
    default: CALL(Alltoall, alltoall, c->in_place ? MPI_IN_PLACE : out, n, t, in, n, t);
    }
}

static void call_other(rp *rp, coll *c, MPI_Request *req)
{
    MPI_Op op = op_of(rp, c->op);
    void *data = c->in_place ? MPI_IN_PLACE : (void *)c->send;
    int n = (int)c->count, counts[RANKS];
    for (int i = 0; i < c->local && c->kind == REDUCE_SCATTER; i++)
        counts[i] = (int)(deal_start(c, i + 1) - deal_start(c, i));
    if (c->kind == BARRIER)
        RP_OK(rp, c->form == BLOCKING ? MPI_Barrier(c->comm) : MPI_Ibarrier(c->comm, req));
    else if (c->kind == REDUCE)
        CALL(Reduce, reduce, c->in_place && c->is_root ? MPI_IN_PLACE : c->send, c->receive, n, c->element, op, root_argument(c));
    else if (c->kind == ALLREDUCE)
        CALL(Allreduce, allreduce, data, c->receive, n, c->element, op);
    else if (c->kind == SCAN)
        CALL(Scan, scan, data, c->receive, n, c->element, op);
    else if (c->kind == EXSCAN)
        CALL(Exscan, exscan, data, c->receive, n, c->element, op);
    else if (c->kind == REDUCE_SCATTER_BLOCK)
        CALL(Reduce_scatter_block, reduce_scatter_block, data, c->receive, n / c->local, c->element, op);
    else
        CALL(Reduce_scatter, reduce_scatter, data, c->receive, counts, c->element, op);
}

static void turn_done(rp *rp, rp_op *op, const MPI_Status *status)
{
    coll *c = op->arg;
    (void)status;
    verify(rp, c);
    if (op->is_persistent)
        RP_OK(rp, MPI_Request_free(&op->req));
    coll_close(rp, c);
}

/* Type with whole items for the plan's basics; each rank has its own layout, unless blocks are in place. */
static void open_blocks(rp *rp, coll *c, const rp_message *m)
{
    uint64_t seed = m->stype + (m->is_same ? 0 : (uint64_t)c->rank);
    uint64_t units = m->bytes % 40 * 12 + (m->bytes >= 300 ? m->bytes / 12 * 12 : 0);
    units = m->is_wide && units > 3000 ? 3000 : units;
    rp_type_open(rp, &c->type, seed, m->sdepth, &m->sig);
    if (units % rp_type_units(&c->type)) {
        rp_type_close(rp, &c->type);
        rp_type_open(rp, &c->type, seed, 0, &m->sig);
    }
    c->count = units / rp_type_units(&c->type);
    if (c->count * (uint64_t)(c->type.ub - c->type.lb) > 2u << 20) { /* too sparse; all ranks move the same units */
        rp_type_close(rp, &c->type);
        rp_type_open(rp, &c->type, seed, 0, &m->sig);
        c->count = units;
    }
    c->basics = c->count * c->type.entries;
    uint64_t blocks = c->kind == BCAST ? 1 : (uint64_t)(c->n > c->rank ? c->n : c->rank + 1) * (is_v(c->kind) ? 2 : 1);
    rp_buf_open(&c->out, &c->type, c->count * blocks + 1);
    rp_buf_open(&c->in, &c->type, c->count * blocks + 1);
    rp_buf_open(&c->want, &c->type, c->count * blocks + 1);
}

static void open_operands(rp *rp, coll *c, const rp_message *m)
{
    c->count = m->bytes;
    c->width = c->op >= USER ? (m->rform % 2 ? 16 : 48) : m->rform % 2 ? 4 : 8;
    c->element = c->width == 4 ? MPI_INT : MPI_INT64_T;
    if (c->op >= USER) { /* a pair, with a gap behind it or not */
        MPI_Datatype pair;
        c->count %= 3000;
        RP_OK(rp, MPI_Type_contiguous(2, MPI_INT64_T, &pair));
        RP_OK(rp, MPI_Type_create_resized(pair, 0, c->width, &c->element));
        RP_OK(rp, MPI_Type_commit(&c->element));
        RP_OK(rp, MPI_Type_free(&pair));
    }
    if (c->kind == REDUCE_SCATTER_BLOCK) /* both groups have a block for each of their ranks */
        c->count -= c->count % (uint64_t)(c->local * c->n);
    c->bytes = (int)c->count * c->width + 64;
    c->send = rp_alloc((size_t)c->bytes);
    c->receive = rp_alloc((size_t)c->bytes);
}

static void run_one(rp *rp, rp_step *step, int i)
{
    const rp_message *m = &step->messages[i];
    const rp_comm *comm = &rp->comms[m->side];
    MPI_Request req = MPI_REQUEST_NULL;
    if (!comm->is_member)
        return;
    coll *c = rp_alloc(sizeof *c);
    *c = (coll){.kind = m->mode, .form = m->sform, .root = m->from, .op = m->tag, .n = comm->n[comm->is_inter ? 1 - comm->side : 0],
                .rank = comm->rank, .comm = comm->mpi,
                .in_place = m->is_same, .step = step->index, .key = (uint64_t)i, .turns = (uint32_t)m->to};
    c->message = i;
    c->is_inter = comm->is_inter;
    c->local = comm->n[comm->is_inter ? comm->side : 0];
    c->self = comm->is_inter ? comm->side * REMOTE : 0;
    c->is_root = comm->side == m->to_side && c->rank == c->root;
    c->is_idle = comm->is_inter && comm->side == m->to_side && !c->is_root && is_rooted(c->kind);
    if (c->form == PERSISTENT && (!RP_HAS_PERSISTENT || c->kind == BARRIER))
        c->form = NONBLOCKING;
    if (is_reduction(c->kind))
        open_operands(rp, c, m);
    else if (c->kind != BARRIER)
        open_blocks(rp, c, m);
    if (c->form != PERSISTENT)
        fill(rp, c);
    if (is_reduction(c->kind) || c->kind == BARRIER)
        call_other(rp, c, &req);
    else if (is_v(c->kind))
        call_v(rp, c, &req);
    else
        call_blocks(rp, c, &req);
    for (; c->form == PERSISTENT && c->turn < c->turns; c->turn++) {
        fill(rp, c);
        RP_OK(rp, MPI_Start(&req));
        if (c->turn + 1 < c->turns) { /* the last one stays in flight */
            RP_OK(rp, MPI_Wait(&req, MPI_STATUS_IGNORE));
            verify(rp, c);
        }
    }
    if (c->form == BLOCKING) {
        verify(rp, c);
        coll_close(rp, c);
        return;
    }
    rp_op *op = rp_op_add(rp, names[c->kind], turn_done, c);
    op->req = req;
    op->is_persistent = c->form == PERSISTENT;
}

void run_coll(rp *rp, rp_step *step)
{
    for (int i = 0; i < step->n; i++)
        run_one(rp, step, i);
}

void run_colls(rp *rp, rp_step *step) { run_coll(rp, step); }
