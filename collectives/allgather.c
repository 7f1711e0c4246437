/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allgather: a block from each rank on every rank. Called through choose.c; the ring also ends the split algorithms of bcast and
 * allreduce.
 */
#include "collectives/algorithms.h"

/* View v is rank (v + shift) % size; block v is the one that view v begins with. */
void weft_allgather_blocks(weft_plan *plan, void *buf, uint64_t count, const weft_type *type, uint32_t place, uint32_t shift)
{
    uint32_t size = plan->size, right = (place + 1 + shift) % size, left = (place + size - 1 + shift) % size;

    for (uint32_t i = 0; i + 1 < size; i++) {
        uint32_t out = (place + size - i) % size, in = (place + 2 * size - i - 1) % size;
        uint64_t from = weft_plan_block_start(count, size, out), to = weft_plan_block_start(count, size, in);
        weft_plan_send(plan, right, weft_plan_at(buf, type, from), weft_plan_block_start(count, size, out + 1) - from, type);
        weft_plan_recv(plan, left, weft_plan_at(buf, type, to), weft_plan_block_start(count, size, in + 1) - to, type);
        weft_plan_fence(plan);
    }
}

void weft_spread_blocks(weft_plan *plan, void *buf, uint64_t count, const weft_type *type, uint32_t blocks)
{
    uint32_t size = plan->size, rank = plan->rank;
    uint64_t own = rank < blocks ? weft_plan_block_start(count, blocks, rank) : 0;
    uint64_t ours = rank < blocks ? weft_plan_block_start(count, blocks, rank + 1) - own : 0;

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = (rank + i) % size, from = (rank + size - i) % size;
        uint64_t first = from < blocks ? weft_plan_block_start(count, blocks, from) : 0;
        uint64_t theirs = from < blocks ? weft_plan_block_start(count, blocks, from + 1) - first : 0;
        weft_send_pieces(plan, to, weft_plan_at(buf, type, own), ours, type);
        weft_recv_pieces(plan, from, weft_plan_at(buf, type, first), theirs, type);
    }
    weft_plan_fence(plan);
}

static void place_own(weft_plan *plan, const weft_coll *args)
{
    if (!args->in_place)
        weft_plan_copy(plan, weft_plan_at(args->recvbuf, args->recvtype, plan->rank * args->recvcount), args->recvcount,
                       args->recvtype, args->sendbuf, args->sendcount, args->sendtype);
}

void weft_allgather_ring(weft_plan *plan, const weft_coll *args)
{
    place_own(plan, args);
    weft_allgather_blocks(plan, args->recvbuf, args->recvcount * plan->size, args->recvtype, plan->rank, 0);
}

void weft_allgather_doubling(weft_plan *plan, const weft_coll *args)
{
    const weft_type *type = args->recvtype;

    place_own(plan, args);
    for (uint32_t bit = 1; bit < plan->size; bit *= 2) {
        uint32_t other = plan->rank ^ bit, mine = plan->rank & ~(bit - 1), theirs = other & ~(bit - 1);
        weft_plan_send(plan, other, weft_plan_at(args->recvbuf, type, mine * args->recvcount), bit * args->recvcount, type);
        weft_plan_recv(plan, other, weft_plan_at(args->recvbuf, type, theirs * args->recvcount), bit * args->recvcount, type);
        weft_plan_fence(plan);
    }
}

void weft_allgather_bruck(weft_plan *plan, const weft_coll *args)
{
    const weft_type *byte = weft_plan_bytes(), *type = args->recvtype;
    uint32_t rank = plan->rank, size = plan->size;
    uint64_t count = args->recvcount, block = count * (uint64_t)type->size;
    char *all = weft_plan_temp(plan, size * block, byte); /* block i is rank (rank + i) % size's, packed */

    if (!all)
        return;
    if (args->in_place)
        weft_plan_copy(plan, all, block, byte, weft_plan_at(args->recvbuf, type, rank * count), count, type);
    else
        weft_plan_copy(plan, all, block, byte, args->sendbuf, args->sendcount, args->sendtype);
    for (uint64_t have = 1; have < size; have *= 2) {
        uint64_t more = have * 2 <= size ? have : size - have;
        weft_plan_send(plan, (uint32_t)((rank + size - have) % size), all, more * block, byte);
        weft_plan_recv(plan, (uint32_t)((rank + have) % size), all + have * block, more * block, byte);
        weft_plan_fence(plan);
    }
    weft_plan_copy(plan, weft_plan_at(args->recvbuf, type, rank * count), (size - rank) * count, type, all,
                   (size - rank) * block, byte);
    if (rank)
        weft_plan_copy(plan, args->recvbuf, rank * count, type, all + (size - rank) * block, rank * block, byte);
}
