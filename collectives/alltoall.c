/* SPDX-License-Identifier: BSD-3-Clause
 *
 * alltoall: one block from each rank to each rank. Called through select.c.
 * In place, blocks are sent from a packed copy, so that received blocks overwrite none that is still to be sent.
 */
#include "collectives/algorithms.h"

static weft_blocks outgoing(weft_sched *sched, const weft_coll *args, const weft_blocks *in)
{
    weft_blocks out = weft_blocks_sent(args), in_place;

    if (!args->in_place)
        return out;
    in_place = weft_blocks_packed(sched, in, sched->size);
    in_place.moved = out.moved;
    return in_place;
}

static void keep_own(weft_sched *sched, const weft_coll *args, const weft_blocks *out, const weft_blocks *in)
{
    weft_block own;

    if (args->in_place || args->moved) /* already there */
        return;
    own = weft_blocks_at(out, sched->rank);
    weft_blocks_fill(sched, in, sched->rank, own.at, own.count, own.type);
}

void weft_alltoall_linear(weft_sched *sched, const weft_coll *args)
{
    weft_blocks in = weft_blocks_received(args), out = outgoing(sched, args, &in);

    if (sched->rc)
        return;
    for (uint32_t i = 1; i < sched->size; i++)
        weft_blocks_recv(sched, (sched->rank + sched->size - i) % sched->size, &in, (sched->rank + sched->size - i) % sched->size);
    for (uint32_t i = 1; i < sched->size; i++)
        weft_blocks_send(sched, (sched->rank + i) % sched->size, &out, (sched->rank + i) % sched->size);
    keep_own(sched, args, &out, &in);
    weft_sched_fence(sched);
}

void weft_alltoall_pairwise(weft_sched *sched, const weft_coll *args)
{
    weft_blocks in = weft_blocks_received(args), out = outgoing(sched, args, &in);

    if (sched->rc)
        return;
    keep_own(sched, args, &out, &in);
    for (uint32_t i = 1; i < sched->size; i++) {
        uint32_t from = (sched->rank + sched->size - i) % sched->size, to = (sched->rank + i) % sched->size;
        weft_blocks_recv(sched, from, &in, from);
        weft_blocks_send(sched, to, &out, to);
        weft_sched_fence(sched);
    }
}

/* Copies the blocks of a round (bit set in their index) from `all` into `run`, consecutively, or back. Returns their count. */
static uint64_t bruck_move(weft_sched *sched, char *all, char *run, uint64_t block, uint64_t bit, bool is_out)
{
    uint64_t n = 0;

    for (uint64_t i = bit; i < sched->size; i++) {
        if (!(i & bit))
            continue;
        if (is_out)
            weft_sched_copy(sched, run + n * block, block, weft_sched_bytes(), all + i * block, block, weft_sched_bytes());
        else
            weft_sched_copy(sched, all + i * block, block, weft_sched_bytes(), run + n * block, block, weft_sched_bytes());
        n++;
    }
    return n;
}

void weft_alltoall_bruck(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes(), *type = args->recvtype;
    uint32_t size = sched->size, rank = sched->rank;
    uint64_t block = args->recvcount * (uint64_t)type->size, half = (size + 1) / 2;
    const void *from = args->in_place ? args->recvbuf : args->sendbuf;
    const weft_type *from_type = args->in_place ? type : args->sendtype;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount;
    char *all = weft_sched_temp(sched, size * block, byte), *out, *in;

    out = weft_sched_temp(sched, (half + 1) * block, byte);
    in = weft_sched_temp(sched, (half + 1) * block, byte);
    if (!all || !out || !in)
        return;
    weft_sched_copy(sched, all, (size - rank) * block, byte, weft_sched_at(from, from_type, rank * from_count),
                   (size - rank) * from_count, from_type);
    if (rank)
        weft_sched_copy(sched, all + (size - rank) * block, rank * block, byte, from, rank * from_count, from_type);
    for (uint64_t bit = 1; bit < size; bit *= 2) { /* block i moves by i ranks, one bit of i a round */
        uint64_t n = bruck_move(sched, all, out, block, bit, true);
        weft_sched_send(sched, (uint32_t)((rank + bit) % size), out, n * block, byte);
        weft_sched_recv(sched, (uint32_t)((rank + size - bit) % size), in, n * block, byte);
        weft_sched_fence(sched);
        bruck_move(sched, all, in, block, bit, false);
    }
    for (uint32_t i = 0; i < size; i++)
        weft_sched_copy(sched, weft_sched_at(args->recvbuf, type, ((rank + size - i) % size) * args->recvcount), args->recvcount,
                       type,
                       all + i * block, block, byte);
}
