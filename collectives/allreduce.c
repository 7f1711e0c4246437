/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allreduce: reduces all ranks' vectors on every rank. Called through select.c.
 * Invariant: results are bitwise equal on all ranks. Where two ranks reduce the same data they call the same kernel with the same operands
 * in the same order, or one reduces and the other copies the result.
 */
#include "base/macros.h"
#include "collectives/algorithms.h"

static const void *own_data(const weft_coll *args) { return args->in_place ? args->recvbuf : args->sendbuf; }

typedef struct multiply_args {
    weft_coll coll;
    uint32_t k;
} multiply_args;

/* Recursive multiplying in rank order among f k^m ranks, f < k; data and result in recvbuf. In each round the ranks of a group exchange
 * partial results that cover consecutive ranks, and all reduce the same operands: in op inout, from the last one down. */
static void multiply_core(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount, stride, radix;
    const weft_type *type = args->recvtype;
    uint32_t k = weft_container(args, multiply_args, coll)->k;
    void *bufs[WEFT_RADIX_MAX] = {args->recvbuf}, *parts[WEFT_RADIX_MAX]; /* bufs[0]: the partial result; the others are free */

    for (uint32_t i = 1; i < k && i < sched->size; i++)
        bufs[i] = weft_sched_temp(sched, count, type);
    for (stride = 1; stride < sched->size && !sched->rc; stride *= radix) {
        uint64_t digit, first;
        radix = sched->size / stride < k ? sched->size / stride : k;
        digit = sched->rank / stride % radix;
        first = sched->rank - digit * stride;
        for (uint64_t i = 1; i < radix; i++)
            weft_sched_send(sched, (uint32_t)(first + (digit + i) % radix * stride), bufs[0], count, type);
        for (uint64_t i = 0; i < radix; i++) {
            parts[i] = bufs[i == digit ? 0 : i < digit ? i + 1 : i];
            if (i != digit)
                weft_sched_recv(sched, (uint32_t)(first + i * stride), parts[i], count, type);
        }
        weft_sched_fence(sched);
        for (uint64_t i = radix - 1; i-- > 0;)
            weft_sched_reduce(sched, parts[i], parts[radix - 1], count, type);
        if (digit != radix - 1) {
            bufs[radix - 1] = bufs[0];
            bufs[0] = parts[radix - 1];
        }
    }
    weft_sched_copy(sched, args->recvbuf, count, type, bufs[0], count, type);
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

/* The most ranks f k^m with f < k. The first 2 * extra ranks, of which they are too few, form pairs: the even one sends its data to the odd
 * one, and receives the result from it. */
static void multiply(weft_sched *sched, const weft_coll *args, uint32_t k)
{
    uint64_t count = args->recvcount, power = 1;
    const weft_type *type = args->recvtype;
    uint32_t rank = sched->rank, size = sched->size, extra;
    multiply_args core = {*args, k};
    uint32_t *ranks;

    if (size == 2) {
        exchange(sched, args);
        return;
    }
    while (power * k <= size)
        power *= k;
    power *= size / power;
    extra = size - (uint32_t)power;
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
        weft_sched_sub(sched, ranks, (uint32_t)power, multiply_core, &core.coll);
    else if (!extra)
        multiply_core(sched, &core.coll);
    if (rank < 2 * extra) {
        weft_sched_send(sched, rank - 1, args->recvbuf, count, type);
        weft_sched_fence(sched);
    }
}

void weft_allreduce_doubling(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 2); }
void weft_allreduce_multiplying_3(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 3); }
void weft_allreduce_multiplying_4(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 4); }
void weft_allreduce_multiplying_8(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 8); }

static weft_blocks result_blocks(const weft_sched *sched, const weft_coll *args)
{
    return weft_blocks_even(args->recvbuf, args->recvcount, args->recvtype, sched->size);
}

static void reduce_block(weft_sched *sched, const weft_coll *args, const weft_blocks *result)
{
    weft_blocks data = weft_blocks_even(own_data(args), args->recvcount, args->recvtype, sched->size);
    weft_block own = weft_blocks_at(result, sched->rank);
    void *out = own.at;

    if (args->in_place && weft_sched_is_ordered(sched))
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

void weft_allreduce_rabenseifner(weft_sched *sched, const weft_coll *args)
{
    weft_blocks data = weft_blocks_even(own_data(args), args->recvcount, args->recvtype, sched->size), result = result_blocks(sched, args);

    weft_reduce_scatter_blocks_halving(sched, &data, &result, 0);
    weft_allgather_blocks_multiplying(sched, &result, 0, 2, false);
}
