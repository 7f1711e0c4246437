/* np: 2 3 4 8 : short collectives that are repeated give the same bits as the first call, blocking and nonblocking, whatever changes between */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <complex.h>
#include <math.h>

#include "check.h"

enum { MOST = 64, CALLS = 4000, KINDS = 12 };
enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, SCAN, EXSCAN, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER };

typedef struct element {
    MPI_Datatype type;
    int size;
    MPI_Op ops[4]; /* the last ones may be MPI_OP_NULL */
} element;

typedef struct call {
    enum kind kind;
    const element *element;
    MPI_Op op;
    int count, root, in_place;
} call;

static int rank, size;
static char out[MOST * 16 * 16], in[MOST * 16 * 16], first[MOST * 16 * 16];
static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Equal calls on all ranks; data differ. Sums of these floating-point numbers depend on the order. */
static void fill(const call *c, char *to, int elements, uint64_t number)
{
    for (int i = 0; i < elements * c->element->size; i++)
        to[i] = (char)(rank * 31 + i * 7 + number * 13);
    if (c->element->type == MPI_DOUBLE || c->element->type == MPI_C_DOUBLE_COMPLEX)
        for (int i = 0; i < elements * c->element->size / 8; i++)
            ((double *)to)[i] = ldexp(1.0 + (double)((rank * 977 + i * 131 + (int)number) % 1013) / 997, (rank * 5 + i) % 40 - 20);
    if (c->element->type == MPI_FLOAT)
        for (int i = 0; i < elements; i++)
            ((float *)to)[i] = ldexpf(1.0f + (float)((rank * 977 + i * 131 + (int)number) % 1013) / 997, (rank * 5 + i) % 16 - 8);
}

static void perform(const call *c, MPI_Request *req)
{
    int n = c->count, is_root = rank == c->root, counts[16];
    MPI_Datatype t = c->element->type;
    const void *all = c->in_place ? MPI_IN_PLACE : out, *at_root = c->in_place && is_root ? MPI_IN_PLACE : out;
    void *to_root = c->in_place && is_root ? MPI_IN_PLACE : in;
    MPI_Comm w = MPI_COMM_WORLD;
    for (int i = 0; i < size; i++)
        counts[i] = n;
    switch (c->kind) {
    case BARRIER: OK(req ? MPI_Ibarrier(w, req) : MPI_Barrier(w)); break;
    case BCAST: OK(req ? MPI_Ibcast(in, n, t, c->root, w, req) : MPI_Bcast(in, n, t, c->root, w)); break;
    case REDUCE: OK(req ? MPI_Ireduce(at_root, in, n, t, c->op, c->root, w, req) : MPI_Reduce(at_root, in, n, t, c->op, c->root, w)); break;
    case ALLREDUCE: OK(req ? MPI_Iallreduce(all, in, n, t, c->op, w, req) : MPI_Allreduce(all, in, n, t, c->op, w)); break;
    case GATHER:
        OK(req ? MPI_Igather(at_root, n, t, in, n, t, c->root, w, req) : MPI_Gather(at_root, n, t, in, n, t, c->root, w));
        break;
    case SCATTER:
        OK(req ? MPI_Iscatter(out, n, t, to_root, n, t, c->root, w, req) : MPI_Scatter(out, n, t, to_root, n, t, c->root, w));
        break;
    case ALLGATHER: OK(req ? MPI_Iallgather(all, n, t, in, n, t, w, req) : MPI_Allgather(all, n, t, in, n, t, w)); break;
    case ALLTOALL: OK(req ? MPI_Ialltoall(all, n, t, in, n, t, w, req) : MPI_Alltoall(all, n, t, in, n, t, w)); break;
    case SCAN: OK(req ? MPI_Iscan(all, in, n, t, c->op, w, req) : MPI_Scan(all, in, n, t, c->op, w)); break;
    case EXSCAN: OK(req ? MPI_Iexscan(all, in, n, t, c->op, w, req) : MPI_Exscan(all, in, n, t, c->op, w)); break;
    case REDUCE_SCATTER_BLOCK:
        OK(req ? MPI_Ireduce_scatter_block(all, in, n, t, c->op, w, req) : MPI_Reduce_scatter_block(all, in, n, t, c->op, w));
        break;
    default: OK(req ? MPI_Ireduce_scatter(all, in, counts, t, c->op, w, req) : MPI_Reduce_scatter(all, in, counts, t, c->op, w));
    }
    if (req)
        OK(MPI_Wait(req, MPI_STATUS_IGNORE));
}

/* The call with fresh data. The first time its result is kept. */
static void make(const call *c, uint64_t number, int is_first, int is_nonblocking)
{
    int blocks = c->kind == GATHER || c->kind == SCATTER || c->kind >= ALLGATHER ? size : 1;
    MPI_Request req;
    fill(c, out, blocks * c->count, number);
    memset(in, 7, sizeof in);
    if (c->kind == BCAST && rank == c->root)
        fill(c, in, c->count, number);
    if (c->in_place && c->kind != BCAST && c->kind != SCATTER)
        fill(c, in, blocks * c->count, number + 1);
    perform(c, is_nonblocking ? &req : NULL);
    if (is_first)
        memcpy(first, in, sizeof in);
    CHECK(!memcmp(first, in, sizeof in), "kind %d, %d elements of %d bytes, root %d, in place %d, nonblocking %d", c->kind, c->count,
          c->element->size, c->root, c->in_place, is_nonblocking);
}

/* Another call of the kind, so that the next one is not the same as the latest. */
static void change(const call *c)
{
    call other = *c;
    other.count = c->count + 1;
    make(&other, 99, 1, 0);
}

int main(void)
{
    const element elements[] = {
        {MPI_INT8_T, 1, {MPI_SUM, MPI_BXOR, MPI_MAX, MPI_LAND}}, {MPI_INT32_T, 4, {MPI_SUM, MPI_PROD, MPI_MIN, MPI_BOR}},
        {MPI_UINT64_T, 8, {MPI_SUM, MPI_MAX, MPI_BAND, MPI_LXOR}}, {MPI_FLOAT, 4, {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN}},
        {MPI_DOUBLE, 8, {MPI_SUM, MPI_PROD, MPI_MAX, MPI_SUM}}, {MPI_C_DOUBLE_COMPLEX, 16, {MPI_SUM, MPI_PROD, MPI_SUM, MPI_PROD}},
        {MPI_2INT, 8, {MPI_MINLOC, MPI_MAXLOC, MPI_MINLOC, MPI_MAXLOC}}};
    check_start(NULL, NULL, &rank, &size);
    CHECK(size <= 16, "%d", size);
    for (int i = 0; i < CALLS; i++) {
        uint64_t random = draw();
        call c = {.kind = random % KINDS, .element = &elements[random / 16 % (sizeof elements / sizeof *elements)],
                  .root = (int)(random / 4096 % (uint64_t)size), .in_place = random >> 20 & 1};
        c.op = c.element->ops[random >> 24 & 3];
        c.count = (int)(random >> 28 & 7) ? 1 + (int)((random >> 32) % (uint64_t)(48 / c.element->size)) : 0;
        if (c.count * c.element->size * size > 48 && random >> 40 & 1)
            c.count = 48 / c.element->size / size;
        change(&c);
        make(&c, (uint64_t)i, 1, 0);
        for (int again = 0; again < 4; again++)
            make(&c, (uint64_t)i, 0, again & 1);
    }
    OK(MPI_Finalize());
    return 0;
}
