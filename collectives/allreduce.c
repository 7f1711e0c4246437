/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allreduce: reduces all ranks' vectors on every rank. Called through select.c.
 * Invariant: results are bitwise equal on all ranks. Where two ranks reduce the same data they call the same kernel with the same operands
 * in the same order, or one reduces and the other copies the result.
 */
#include "collectives/algorithms.h"

static const void *own_data(const weft_coll *args) { return args->in_place ? args->recvbuf : args->sendbuf; }

/* Recursive doubling for a power of two of ranks, in rank order; data and result in recvbuf. */
static void doubling_core(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    void *sum = args->recvbuf, *more = sched->size > 1 ? weft_sched_temp(sched, count, type) : NULL;

    for (uint32_t bit = 1; bit < sched->size; bit *= 2) {
        uint32_t other = sched->rank ^ bit;
        weft_sched_send(sched, other, sum, count, type);
        weft_sched_recv(sched, other, more, count, type);
        weft_sched_fence(sched);
        if (other < sched->rank) {
            weft_sched_reduce(sched, more, sum, count, type);
        } else {
            void *old = sum;
            weft_sched_reduce(sched, sum, more, count, type);
            sum = more;
            more = old;
        }
    }
    weft_sched_copy(sched, args->recvbuf, count, type, sum, count, type);
}

/* Two ranks, with the fewest copies. */
static void exchange(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t other = !sched->rank;
    const void *own = own_data(args);
    void *received;

    weft_sched_send(sched, other, own, count, type);
    if (sched->rank == 0 && !args->in_place) { /* the peer's operand is the upper one: reduce where it is received */
        weft_sched_recv(sched, other, args->recvbuf, count, type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, own, args->recvbuf, count, type);
        return;
    }
    received = weft_sched_temp(sched, count, type);
    weft_sched_recv(sched, other, received, count, type);
    weft_sched_copy(sched, args->recvbuf, count, type, own, count, type);
    weft_sched_fence(sched);
    if (sched->rank) {
        weft_sched_reduce(sched, received, args->recvbuf, count, type);
    } else {
        weft_sched_reduce(sched, own, received, count, type);
        weft_sched_copy(sched, args->recvbuf, count, type, received, count, type);
    }
}

/* The first 2 * extra ranks form pairs: the even one sends its data to the odd one, and receives the result from it. */
void weft_allreduce_doubling(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t rank = sched->rank, size = sched->size, power = 1, extra;
    uint32_t *ranks;

    if (size == 2) {
        exchange(sched, args);
        return;
    }
    while (power * 2 <= size)
        power *= 2;
    extra = size - power;
    weft_sched_copy(sched, args->recvbuf, count, type, own_data(args), count, type);
    if (rank < 2 * extra && rank % 2 == 0) {
        weft_sched_send(sched, rank + 1, args->recvbuf, count, type);
        weft_sched_fence(sched);
        weft_sched_recv(sched, rank + 1, args->recvbuf, count, type);
        weft_sched_fence(sched);
        return;
    }
    if (rank < 2 * extra) {
        void *lower = weft_sched_temp(sched, count, type);
        weft_sched_recv(sched, rank - 1, lower, count, type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, lower, args->recvbuf, count, type);
    }
    ranks = extra ? weft_sched_temp(sched, power * sizeof *ranks, weft_sched_bytes()) : NULL;
    for (uint32_t i = 0; i < power && ranks; i++)
        ranks[i] = i < extra ? 2 * i + 1 : i + extra;
    if (ranks)
        weft_sched_sub(sched, ranks, power, doubling_core, args);
    else
        doubling_core(sched, args);
    if (rank < 2 * extra) {
        weft_sched_send(sched, rank - 1, args->recvbuf, count, type);
        weft_sched_fence(sched);
    }
}

static void reduce_block(weft_sched *sched, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t first = weft_sched_block_start(args->recvcount, sched->size, sched->rank);
    uint64_t count = weft_sched_block_start(args->recvcount, sched->size, sched->rank + 1) - first;
    void *place = weft_sched_at(args->recvbuf, type, first), *out = place;

    if (args->in_place && !sched->op->is_commutative)
        out = weft_sched_temp(sched, count, type);
    weft_reduce_own_block(sched, args, sched->size, out);
    weft_sched_copy(sched, place, count, type, out, count, type);
}

void weft_allreduce_blocks(weft_sched *sched, const weft_coll *args)
{
    reduce_block(sched, args);
    weft_allgather_blocks_linear(sched, args->recvbuf, args->recvcount, args->recvtype, sched->size);
}

void weft_allreduce_blocks_ring(weft_sched *sched, const weft_coll *args)
{
    reduce_block(sched, args);
    weft_allgather_blocks_ring(sched, args->recvbuf, args->recvcount, args->recvtype, sched->rank, 0);
}

void weft_allreduce_ring(weft_sched *sched, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint32_t size = sched->size, rank = sched->rank, left = (rank + size - 1) % size, right = (rank + 1) % size;
    void *more = size > 1 ? weft_sched_temp(sched, args->recvcount / size + 1, type) : NULL;

    weft_sched_copy(sched, args->recvbuf, args->recvcount, type, own_data(args), args->recvcount, type);
    for (uint32_t i = 0; i + 1 < size; i++) { /* block b is complete at rank b - 1 */
        uint32_t out = (rank + size - i) % size, in = (rank + 2 * size - i - 1) % size;
        uint64_t from = weft_sched_block_start(args->recvcount, size, out), here = weft_sched_block_start(args->recvcount, size,
                                                                                                        in);
        uint64_t count = weft_sched_block_start(args->recvcount, size, in + 1) - here;
        weft_sched_send(sched, right, weft_sched_at(args->recvbuf, type, from),
                       weft_sched_block_start(args->recvcount, size, out + 1) - from, type);
        weft_sched_recv(sched, left, more, count, type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, more, weft_sched_at(args->recvbuf, type, here), count, type);
    }
    weft_allgather_blocks_ring(sched, args->recvbuf, args->recvcount, type, right, size - 1);
}
