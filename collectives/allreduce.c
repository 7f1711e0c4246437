/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allreduce: folds all ranks' vectors on every rank, bit for bit alike. Called through choose.c. Alike, because wherever two
 * ranks fold the same data they call the same kernel with the same operands in the same places, or one folds and the other
 * copies.
 */
#include "collectives/algorithms.h"

static const void *own_data(const weft_coll *args) { return args->in_place ? args->recvbuf : args->sendbuf; }

/* A power of two of ranks, in rank order; data and result in recvbuf. */
static void doubling_core(weft_plan *plan, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    void *sum = args->recvbuf, *more = plan->size > 1 ? weft_plan_temp(plan, count, type) : NULL;

    for (uint32_t bit = 1; bit < plan->size; bit *= 2) {
        uint32_t other = plan->rank ^ bit;
        weft_plan_send(plan, other, sum, count, type);
        weft_plan_recv(plan, other, more, count, type);
        weft_plan_fence(plan);
        if (other < plan->rank) {
            weft_plan_fold(plan, more, sum, count, type);
        } else {
            void *old = sum;
            weft_plan_fold(plan, sum, more, count, type);
            sum = more;
            more = old;
        }
    }
    weft_plan_copy(plan, args->recvbuf, count, type, sum, count, type);
}

/* Two ranks without any copy that is not needed. */
static void exchange(weft_plan *plan, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t other = !plan->rank;
    const void *own = own_data(args);
    void *theirs;

    weft_plan_send(plan, other, own, count, type);
    if (plan->rank == 0 && !args->in_place) { /* theirs is the upper one: it is folded where it comes in */
        weft_plan_recv(plan, other, args->recvbuf, count, type);
        weft_plan_fence(plan);
        weft_plan_fold(plan, own, args->recvbuf, count, type);
        return;
    }
    theirs = weft_plan_temp(plan, count, type);
    weft_plan_recv(plan, other, theirs, count, type);
    weft_plan_copy(plan, args->recvbuf, count, type, own, count, type);
    weft_plan_fence(plan);
    if (plan->rank) {
        weft_plan_fold(plan, theirs, args->recvbuf, count, type);
    } else {
        weft_plan_fold(plan, own, theirs, count, type);
        weft_plan_copy(plan, args->recvbuf, count, type, theirs, count, type);
    }
}

/* The first 2 * extra ranks pair up: the even one lends its data to the odd one and gets the result from it. */
void weft_allreduce_doubling(weft_plan *plan, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t rank = plan->rank, size = plan->size, power = 1, extra;
    uint32_t *who;

    if (size == 2) {
        exchange(plan, args);
        return;
    }
    while (power * 2 <= size)
        power *= 2;
    extra = size - power;
    weft_plan_copy(plan, args->recvbuf, count, type, own_data(args), count, type);
    if (rank < 2 * extra && rank % 2 == 0) {
        weft_plan_send(plan, rank + 1, args->recvbuf, count, type);
        weft_plan_fence(plan);
        weft_plan_recv(plan, rank + 1, args->recvbuf, count, type);
        weft_plan_fence(plan);
        return;
    }
    if (rank < 2 * extra) {
        void *lower = weft_plan_temp(plan, count, type);
        weft_plan_recv(plan, rank - 1, lower, count, type);
        weft_plan_fence(plan);
        weft_plan_fold(plan, lower, args->recvbuf, count, type);
    }
    who = extra ? weft_plan_temp(plan, power * sizeof *who, weft_plan_bytes()) : NULL;
    for (uint32_t i = 0; i < power && who; i++)
        who[i] = i < extra ? 2 * i + 1 : i + extra;
    if (who)
        weft_plan_sub(plan, who, power, doubling_core, args);
    else
        doubling_core(plan, args);
    if (rank < 2 * extra) {
        weft_plan_send(plan, rank - 1, args->recvbuf, count, type);
        weft_plan_fence(plan);
    }
}

static void fold_blocks(weft_plan *plan, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t first = weft_plan_block_start(args->recvcount, plan->size, plan->rank);
    uint64_t count = weft_plan_block_start(args->recvcount, plan->size, plan->rank + 1) - first;
    void *place = weft_plan_at(args->recvbuf, type, first), *out = place;

    if (args->in_place && !plan->op->is_commutative)
        out = weft_plan_temp(plan, count, type);
    weft_reduce_own_block(plan, args, plan->size, out);
    weft_plan_copy(plan, place, count, type, out, count, type);
}

void weft_allreduce_blocks(weft_plan *plan, const weft_coll *args)
{
    fold_blocks(plan, args);
    weft_spread_blocks(plan, args->recvbuf, args->recvcount, args->recvtype, plan->size);
}

void weft_allreduce_blocks_ring(weft_plan *plan, const weft_coll *args)
{
    fold_blocks(plan, args);
    weft_allgather_blocks(plan, args->recvbuf, args->recvcount, args->recvtype, plan->rank, 0);
}

void weft_allreduce_ring(weft_plan *plan, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint32_t size = plan->size, rank = plan->rank, left = (rank + size - 1) % size, right = (rank + 1) % size;
    void *more = size > 1 ? weft_plan_temp(plan, args->recvcount / size + 1, type) : NULL;

    weft_plan_copy(plan, args->recvbuf, args->recvcount, type, own_data(args), args->recvcount, type);
    for (uint32_t i = 0; i + 1 < size; i++) { /* block b ends folded at rank b - 1 */
        uint32_t out = (rank + size - i) % size, in = (rank + 2 * size - i - 1) % size;
        uint64_t from = weft_plan_block_start(args->recvcount, size, out), here = weft_plan_block_start(args->recvcount, size,
                                                                                                        in);
        uint64_t count = weft_plan_block_start(args->recvcount, size, in + 1) - here;
        weft_plan_send(plan, right, weft_plan_at(args->recvbuf, type, from),
                       weft_plan_block_start(args->recvcount, size, out + 1) - from, type);
        weft_plan_recv(plan, left, more, count, type);
        weft_plan_fence(plan);
        weft_plan_fold(plan, more, weft_plan_at(args->recvbuf, type, here), count, type);
    }
    weft_allgather_blocks(plan, args->recvbuf, args->recvcount, type, right, size - 1);
}
