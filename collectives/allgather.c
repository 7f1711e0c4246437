/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allgather: one block from each rank to every rank. Called through select.c.
 * weft_allgather_blocks_ring and weft_allgather_blocks_linear are also the last phase of allreduce algorithms.
 */
#include "collectives/algorithms.h"

void weft_allgather_blocks_ring(weft_sched *sched, void *buf, uint64_t count, const weft_type *type, uint32_t place, uint32_t shift)
{
    uint32_t size = sched->size, right = (place + 1 + shift) % size, left = (place + size - 1 + shift) % size;

    for (uint32_t i = 0; i + 1 < size; i++) {
        uint32_t out = (place + size - i) % size, in = (place + 2 * size - i - 1) % size;
        uint64_t from = weft_sched_block_start(count, size, out), to = weft_sched_block_start(count, size, in);
        weft_sched_send(sched, right, weft_sched_at(buf, type, from), weft_sched_block_start(count, size, out + 1) - from, type);
        weft_sched_recv(sched, left, weft_sched_at(buf, type, to), weft_sched_block_start(count, size, in + 1) - to, type);
        weft_sched_fence(sched);
    }
}

void weft_allgather_blocks_linear(weft_sched *sched, void *buf, uint64_t count, const weft_type *type, uint32_t blocks)
{
    uint32_t size = sched->size, rank = sched->rank;
    uint64_t own = rank < blocks ? weft_sched_block_start(count, blocks, rank) : 0;
    uint64_t own_count = rank < blocks ? weft_sched_block_start(count, blocks, rank + 1) - own : 0;

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = (rank + i) % size, from = (rank + size - i) % size;
        uint64_t first = from < blocks ? weft_sched_block_start(count, blocks, from) : 0;
        uint64_t remote_count = from < blocks ? weft_sched_block_start(count, blocks, from + 1) - first : 0;
        weft_send_fragments(sched, to, weft_sched_at(buf, type, own), own_count, type);
        weft_recv_fragments(sched, from, weft_sched_at(buf, type, first), remote_count, type);
    }
    weft_sched_fence(sched);
}

static void place_own(weft_sched *sched, const weft_coll *args)
{
    if (!args->in_place)
        weft_sched_copy(sched, weft_sched_at(args->recvbuf, args->recvtype, sched->rank * args->recvcount), args->recvcount,
                       args->recvtype, args->sendbuf, args->sendcount, args->sendtype);
}

void weft_allgather_ring(weft_sched *sched, const weft_coll *args)
{
    place_own(sched, args);
    weft_allgather_blocks_ring(sched, args->recvbuf, args->recvcount * sched->size, args->recvtype, sched->rank, 0);
}

void weft_allgather_doubling(weft_sched *sched, const weft_coll *args)
{
    const weft_type *type = args->recvtype;

    place_own(sched, args);
    for (uint32_t bit = 1; bit < sched->size; bit *= 2) {
        uint32_t other = sched->rank ^ bit, own_first = sched->rank & ~(bit - 1), remote_first = other & ~(bit - 1);
        weft_sched_send(sched, other, weft_sched_at(args->recvbuf, type, own_first * args->recvcount), bit * args->recvcount, type);
        weft_sched_recv(sched, other, weft_sched_at(args->recvbuf, type, remote_first * args->recvcount), bit * args->recvcount, type);
        weft_sched_fence(sched);
    }
}

void weft_allgather_bruck(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes(), *type = args->recvtype;
    uint32_t rank = sched->rank, size = sched->size;
    uint64_t count = args->recvcount, block = count * (uint64_t)type->size;
    char *all = weft_sched_temp(sched, size * block, byte); /* block i: of rank (rank + i) % size, packed */

    if (!all)
        return;
    if (args->in_place)
        weft_sched_copy(sched, all, block, byte, weft_sched_at(args->recvbuf, type, rank * count), count, type);
    else
        weft_sched_copy(sched, all, block, byte, args->sendbuf, args->sendcount, args->sendtype);
    for (uint64_t have = 1; have < size; have *= 2) {
        uint64_t more = have * 2 <= size ? have : size - have;
        weft_sched_send(sched, (uint32_t)((rank + size - have) % size), all, more * block, byte);
        weft_sched_recv(sched, (uint32_t)((rank + have) % size), all + have * block, more * block, byte);
        weft_sched_fence(sched);
    }
    weft_sched_copy(sched, weft_sched_at(args->recvbuf, type, rank * count), (size - rank) * count, type, all,
                   (size - rank) * block, byte);
    if (rank)
        weft_sched_copy(sched, args->recvbuf, rank * count, type, all + (size - rank) * block, rank * block, byte);
}
