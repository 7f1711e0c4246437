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

static weft_blocks result_blocks(const weft_sched *sched, const weft_coll *args)
{
    return weft_blocks_even(args->recvbuf, args->recvcount, args->recvtype, sched->size);
}

static void reduce_block(weft_sched *sched, const weft_coll *args, const weft_blocks *result)
{
    weft_blocks data = weft_blocks_even(own_data(args), args->recvcount, args->recvtype, sched->size);
    weft_block own = weft_blocks_at(result, sched->rank);
    void *out = own.at;

    if (args->in_place && !sched->op->is_commutative)
        out = weft_sched_temp(sched, own.count, own.type);
    weft_reduce_own_block(sched, &data, out);
    weft_sched_copy(sched, own.at, own.count, own.type, out, own.count, own.type);
}

void weft_allreduce_blocks(weft_sched *sched, const weft_coll *args)
{
    weft_blocks result = result_blocks(sched, args);

    reduce_block(sched, args, &result);
    weft_allgather_blocks_linear(sched, &result);
}

void weft_allreduce_blocks_ring(weft_sched *sched, const weft_coll *args)
{
    weft_blocks result = result_blocks(sched, args);

    reduce_block(sched, args, &result);
    weft_allgather_blocks_ring(sched, &result, sched->rank, 0);
}

void weft_allreduce_ring(weft_sched *sched, const weft_coll *args)
{
    weft_blocks result = result_blocks(sched, args);
    uint32_t size = sched->size;

    weft_sched_copy(sched, args->recvbuf, args->recvcount, args->recvtype, own_data(args), args->recvcount, args->recvtype);
    weft_reduce_scatter_blocks_ring(sched, &result, size - 1);
    weft_allgather_blocks_ring(sched, &result, (sched->rank + 1) % size, size - 1);
}
