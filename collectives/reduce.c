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

void weft_reduce_own_block(weft_plan *plan, const weft_coll *args, void *out)
{
    const weft_type *type = args->recvtype;
    uint32_t size = plan->size, rank = plan->rank;
    const void *own = args->sendbuf;
    uint64_t first = weft_plan_block_start(args->recvcount, size, rank);
    uint64_t count = weft_plan_block_start(args->recvcount, size, rank + 1) - first;
    void *parts = size > 1 ? weft_plan_temp(plan, count * (size - 1), type) : NULL;

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = (rank + i) % size, from = (rank + size - i) % size;
        uint64_t begin = weft_plan_block_start(args->recvcount, size, to);
        weft_plan_send(plan, to, weft_plan_at(own, type, begin), weft_plan_block_start(args->recvcount, size, to + 1) - begin,
                       type);
        weft_plan_recv(plan, from, parts ? weft_plan_at(parts, type, count * (from < rank ? from : from - 1)) : NULL, count,
                       type);
    }
    weft_plan_fence(plan);
    for (uint32_t i = size; i-- > 0 && !plan->rc;) { /* from the last rank down: in op inout */
        const void *part = i == rank ? weft_plan_at(own, type, first) : weft_plan_at(parts, type, count * (i < rank ? i : i - 1));
        if (i == size - 1)
            weft_plan_copy(plan, out, count, type, part, count, type);
        else
            weft_plan_fold(plan, part, out, count, type);
    }
}

void weft_reduce_blocks(weft_plan *plan, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint32_t size = plan->size, root = (uint32_t)args->root;
    uint64_t first = weft_plan_block_start(args->recvcount, size, plan->rank);
    uint64_t count = weft_plan_block_start(args->recvcount, size, plan->rank + 1) - first;
    weft_coll view = *args;
    void *out = weft_plan_temp(plan, count, type);

    view.sendbuf = own_data(args, plan->rank == root);
    weft_reduce_own_block(plan, &view, out);
    if (plan->rank != root) {
        weft_plan_send(plan, root, out, count, type);
        weft_plan_fence(plan);
        return;
    }
    for (uint32_t i = 0; i < size; i++) {
        uint64_t begin = weft_plan_block_start(args->recvcount, size, i);
        if (i != root)
            weft_plan_recv(plan, i, weft_plan_at(args->recvbuf, type, begin),
                           weft_plan_block_start(args->recvcount, size, i + 1) - begin, type);
    }
    weft_plan_copy(plan, weft_plan_at(args->recvbuf, type, first), count, type, out, count, type);
    weft_plan_fence(plan);
}
