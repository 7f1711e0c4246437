/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_scatter: reduces all ranks' vectors, and gives each rank one block of the result. The ring is also the first half of an allreduce.
 */
#include "collectives/algorithms.h"

void weft_reduce_scatter_blocks_ring(weft_sched *sched, const weft_blocks *blocks, uint32_t shift)
{
    uint32_t size = sched->size, place = (sched->rank + size - shift) % size;
    uint32_t left = (sched->rank + size - 1) % size, right = (sched->rank + 1) % size;
    uint64_t longest = weft_blocks_at(blocks, 0).count; /* of an even partition, the first */
    void *more;

    for (uint32_t i = 1; i < size && blocks->starts; i++) {
        uint64_t count = weft_blocks_at(blocks, i).count;
        longest = count > longest ? count : longest;
    }
    more = size > 1 ? weft_sched_temp(sched, longest, blocks->type) : NULL;
    for (uint32_t i = 0; i + 1 < size; i++) {
        weft_block in = weft_blocks_at(blocks, (place + 2 * size - i - 2) % size);
        weft_blocks_send(sched, right, blocks, (place + 2 * size - i - 1) % size);
        if (weft_block_bytes(&in) || !blocks->starts)
            weft_sched_recv(sched, left, more, in.count, in.type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, more, in.at, in.count, in.type);
    }
}

/* The vector at buf, as the blocks of the ranks. */
static weft_blocks vector_blocks(weft_sched *sched, const weft_coll *args, const void *buf)
{
    weft_blocks blocks = weft_blocks_even(buf, args->recvcount, args->recvtype, sched->size);

    if (args->recv_layout) {
        blocks.parts = 0;
        blocks.starts = weft_blocks_starts(sched, args->recv_layout, sched->size);
    }
    return blocks;
}

static const void *own_data(const weft_coll *args) { return args->in_place ? args->recvbuf : args->sendbuf; }

void weft_reduce_scatter_doubling(weft_sched *sched, const weft_coll *args)
{
    weft_coll all = *args;
    weft_blocks result;

    all.sendbuf = own_data(args);
    all.in_place = false;
    all.recvbuf = weft_sched_temp(sched, args->recvcount, args->recvtype);
    if (!all.recvbuf)
        return;
    weft_allreduce_doubling(sched, &all);
    result = vector_blocks(sched, args, all.recvbuf);
    if (!sched->rc)
        weft_blocks_take(sched, &result, sched->rank, args->recvbuf, weft_blocks_at(&result, sched->rank).count, args->recvtype);
}

void weft_reduce_scatter_linear(weft_sched *sched, const weft_coll *args)
{
    weft_blocks data = vector_blocks(sched, args, own_data(args));
    weft_block own;
    void *out = args->recvbuf;

    if (sched->rc)
        return;
    own = weft_blocks_at(&data, sched->rank);
    if (args->in_place) /* the others' blocks are sent from recvbuf meanwhile */
        out = weft_sched_temp(sched, own.count, own.type);
    weft_reduce_own_block(sched, &data, out);
    weft_sched_copy(sched, args->recvbuf, own.count, own.type, out, own.count, own.type);
}

void weft_reduce_scatter_ring(weft_sched *sched, const weft_coll *args)
{
    void *all = weft_sched_temp(sched, args->recvcount, args->recvtype);
    weft_blocks blocks = vector_blocks(sched, args, all);

    if (sched->rc)
        return;
    weft_sched_copy(sched, all, args->recvcount, args->recvtype, own_data(args), args->recvcount, args->recvtype);
    weft_reduce_scatter_blocks_ring(sched, &blocks, 0);
    weft_blocks_take(sched, &blocks, sched->rank, args->recvbuf, weft_blocks_at(&blocks, sched->rank).count, args->recvtype);
}

void weft_reduce_scatter_halving(weft_sched *sched, const weft_coll *args)
{
    void *all = weft_sched_temp(sched, args->recvcount, args->recvtype);
    weft_blocks data = vector_blocks(sched, args, own_data(args)), work = data;

    if (sched->rc)
        return;
    work.buf = all;
    weft_reduce_scatter_blocks_halving(sched, &data, &work, 0);
    weft_blocks_take(sched, &work, sched->rank, args->recvbuf, weft_blocks_at(&work, sched->rank).count, args->recvtype);
}
