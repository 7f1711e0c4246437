/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: folds all ranks' vectors at the root. Called through choose.c. fold(in, inout) means inout = in op inout, so for an
 * operator that does not commute, `in` holds the lower ranks.
 */
#include "collectives/algorithms.h"

static const void *own_data(const weft_coll *args, bool is_root)
{
    return args->in_place && is_root ? args->recvbuf : args->sendbuf;
}

static void *result_place(weft_plan *plan, const weft_coll *args, bool is_root)
{
    return is_root ? args->recvbuf : weft_plan_temp(plan, args->recvcount, args->recvtype);
}

void weft_reduce_binomial(weft_plan *plan, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t root = (uint32_t)args->root, v = (plan->rank + plan->size - root) % plan->size;
    const void *own = own_data(args, v == 0);
    void *sum = NULL, *more = NULL;

    for (uint64_t bit = 1; bit < plan->size && !(v & bit); bit *= 2) {
        if (v + bit >= plan->size)
            continue;
        if (!more) {
            sum = result_place(plan, args, v == 0);
            more = weft_plan_temp(plan, count, type);
        }
        weft_plan_recv(plan, (uint32_t)((v + bit + root) % plan->size), more, count, type);
        if (bit == 1)
            weft_plan_copy(plan, sum, count, type, own, count, type);
        weft_plan_fence(plan);
        weft_plan_fold(plan, more, sum, count, type);
    }
    if (v) {
        uint32_t bit = v & -v;
        weft_plan_send(plan, (v - bit + root) % plan->size, sum ? sum : own, count, type);
        weft_plan_fence(plan);
    } else if (!sum) {
        weft_plan_copy(plan, args->recvbuf, count, type, own, count, type);
    }
}

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* The tree is rooted at rank 0, so that each rank's sum covers a run of ranks; `sum` and `more` change places at each fold. */
void weft_reduce_binomial_order(weft_plan *plan, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t rank = plan->rank, root = (uint32_t)args->root;
    const void *sum = own_data(args, rank == root);
    void *rooms[2] = {NULL, NULL};
    int turn = 0;

    for (uint64_t bit = 1; bit < plan->size && !(rank & bit); bit *= 2) {
        if (rank + bit >= plan->size)
            continue;
        if (!rooms[turn])
            rooms[turn] = weft_plan_temp(plan, count, type);
        weft_plan_recv(plan, (uint32_t)(rank + bit), rooms[turn], count, type);
        weft_plan_fence(plan);
        weft_plan_fold(plan, sum, rooms[turn], count, type);
        sum = rooms[turn];
        turn = !turn;
    }
    if (rank)
        weft_plan_send(plan, rank - (rank & -rank), sum, count, type);
    else if (root)
        weft_plan_send(plan, root, sum, count, type);
    else
        weft_plan_copy(plan, args->recvbuf, count, type, sum, count, type);
    weft_plan_fence(plan);
    if (rank == root && rank) {
        weft_plan_recv(plan, 0, args->recvbuf, count, type);
        weft_plan_fence(plan);
    }
}

/* Whose part our block's fold begins with: the last rank's, where the order counts; else one that spares a copy. */
static uint32_t fold_base(const weft_plan *plan, bool is_in_place)
{
    if (!plan->op->is_commutative)
        return plan->size - 1;
    return is_in_place ? plan->rank : (plan->rank + 1) % plan->size;
}

/* Where rank i's part of our block comes in: the base's where the result will stand, the others' side by side. */
static void *part_place(const weft_plan *plan, const weft_type *type, uint32_t i, uint32_t base, void *out, void *parts, uint64_t count)
{
    if (i == base)
        return out;
    return weft_plan_at(parts, type, count * (i - (i > plan->rank) - (base != plan->rank && i > base)));
}

void weft_reduce_own_block(weft_plan *plan, const weft_coll *args, uint32_t blocks, void *out)
{
    const weft_type *type = args->recvtype;
    uint32_t size = plan->size, rank = plan->rank, others;
    const void *own = args->in_place ? args->recvbuf : args->sendbuf, *mine;
    uint64_t first = weft_plan_block_start(args->recvcount, blocks, min(rank, blocks));
    uint64_t count = weft_plan_block_start(args->recvcount, blocks, min(rank + 1, blocks)) - first;
    uint32_t base;
    void *parts;

    mine = weft_plan_at(own, type, first);
    base = fold_base(plan, out == mine);
    others = base == rank ? size - 1 : size - 2;
    parts = count && others ? weft_plan_temp(plan, count * others, type) : NULL;
    for (uint32_t i = 1; i < size && !plan->rc; i++) {
        uint32_t to = (rank + i) % size, from = (rank + size - i) % size;
        uint64_t begin = weft_plan_block_start(args->recvcount, blocks, min(to, blocks));
        uint64_t theirs = weft_plan_block_start(args->recvcount, blocks, min(to + 1, blocks)) - begin;
        weft_send_pieces(plan, to, weft_plan_at(own, type, begin), theirs, type);
        if (count)
            weft_recv_pieces(plan, from, part_place(plan, type, from, base, out, parts, count), count, type);
    }
    weft_plan_fence(plan);
    if (plan->rc || !count)
        return;
    if (base == rank)
        weft_plan_copy(plan, out, count, type, mine, count, type);
    for (uint32_t i = size; i-- > 0;) /* from the last rank down: in op inout */
        if (i != base)
            weft_plan_fold(plan, i == rank ? mine : part_place(plan, type, i, base, out, parts, count), out, count, type);
}

/* The root folds its block where the result will stand, unless its own data stands there and the order counts. */
static void *block_place(weft_plan *plan, const weft_coll *args, bool is_root, uint64_t first, uint64_t count)
{
    if (!is_root || (args->in_place && !plan->op->is_commutative))
        return weft_plan_temp(plan, count, args->recvtype);
    return weft_plan_at(args->recvbuf, args->recvtype, first);
}

void weft_reduce_blocks(weft_plan *plan, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint32_t size = plan->size, root = (uint32_t)args->root;
    uint64_t first = weft_plan_block_start(args->recvcount, size, plan->rank);
    uint64_t count = weft_plan_block_start(args->recvcount, size, plan->rank + 1) - first;
    weft_coll view = *args;
    void *out;

    view.in_place = args->in_place && plan->rank == root;
    out = block_place(plan, &view, plan->rank == root, first, count);
    weft_reduce_own_block(plan, &view, size, out);
    if (plan->rank != root) {
        weft_send_pieces(plan, root, out, count, type);
        weft_plan_fence(plan);
        return;
    }
    for (uint32_t i = 0; i < size; i++) {
        uint64_t begin = weft_plan_block_start(args->recvcount, size, i);
        uint64_t theirs = weft_plan_block_start(args->recvcount, size, i + 1) - begin;
        if (i != root)
            weft_recv_pieces(plan, i, weft_plan_at(args->recvbuf, type, begin), theirs, type);
    }
    weft_plan_copy(plan, weft_plan_at(args->recvbuf, type, first), count, type, out, count, type);
    weft_plan_fence(plan);
}
