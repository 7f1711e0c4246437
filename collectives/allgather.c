/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allgather: one block from each rank to every rank. Called through select.c.
 * weft_allgather_blocks_ring and weft_allgather_blocks_linear are also the last phase of allreduce algorithms.
 */
#include "collectives/algorithms.h"

/* Rounds first .. size - 2. */
static void ring_from(weft_sched *sched, const weft_blocks *blocks, uint32_t place, uint32_t shift, uint32_t first)
{
    uint32_t size = sched->size, right = (place + 1 + shift) % size, left = (place + size - 1 + shift) % size;
    weft_sched_window window = {.count = 0};

    for (uint32_t i = first; i + 1 < size && !sched->rc; i++) {
        weft_sched_message arrival;
        weft_sched_window_add(sched, &window, weft_blocks_send(sched, right, blocks, (place + size - i) % size));
        arrival = weft_blocks_recv(sched, left, blocks, (place + 2 * size - i - 1) % size);
        weft_sched_await(sched, arrival);
    }
    weft_sched_fence(sched);
}

void weft_allgather_blocks_ring(weft_sched *sched, const weft_blocks *blocks, uint32_t place, uint32_t shift)
{
    ring_from(sched, blocks, place, shift, 0);
}

void weft_allgather_blocks_linear(weft_sched *sched, const weft_blocks *blocks)
{
    uint32_t size = sched->size, rank = sched->rank;
    weft_block own = weft_blocks_at(blocks, rank);

    for (uint32_t i = 1; i < size; i++) {
        uint32_t from = (rank + size - i) % size;
        weft_block remote = weft_blocks_at(blocks, from);
        weft_send_fragments(sched, (rank + i) % size, own.at, own.count, own.type);
        weft_recv_fragments(sched, from, remote.at, remote.count, remote.type);
    }
    weft_sched_fence(sched);
}

static void place_own(weft_sched *sched, const weft_coll *args, const weft_blocks *all)
{
    if (!args->in_place)
        weft_blocks_fill(sched, all, sched->rank, args->sendbuf, args->sendcount, args->sendtype);
}

void weft_allgather_linear(weft_sched *sched, const weft_coll *args)
{
    weft_blocks all = weft_blocks_received(args);
    uint32_t size = sched->size, rank = sched->rank;
    weft_block own = {(void *)args->sendbuf, args->sendcount, args->sendtype};

    if (args->in_place)
        own = weft_blocks_at(&all, rank);
    for (uint32_t i = 1; i < size; i++)
        weft_blocks_recv(sched, (rank + size - i) % size, &all, (rank + size - i) % size);
    for (uint32_t i = 1; i < size && (!args->is_v || weft_block_bytes(&own)); i++)
        weft_sched_send(sched, (rank + i) % size, own.at, own.count, own.type);
    place_own(sched, args, &all);
    weft_sched_fence(sched);
}

void weft_allgather_ring(weft_sched *sched, const weft_coll *args)
{
    weft_blocks all = weft_blocks_received(args);
    uint32_t size = sched->size, rank = sched->rank;

    if (args->in_place || size == 1) {
        place_own(sched, args, &all);
        ring_from(sched, &all, rank, 0, 0);
        return;
    }
    /* The first round sends from sendbuf: lines just written to recvbuf are costly for the neighbour to read. */
    if (!args->is_v || (args->sendcount && args->sendtype->size))
        weft_sched_send(sched, (rank + 1) % size, args->sendbuf, args->sendcount, args->sendtype);
    weft_blocks_recv(sched, (rank + size - 1) % size, &all, (rank + size - 1) % size);
    place_own(sched, args, &all);
    weft_sched_fence(sched);
    ring_from(sched, &all, rank, 0, 1);
}

/* Blocks that are not consecutive travel packed. */
static void multiply(weft_sched *sched, const weft_coll *args, uint32_t k)
{
    weft_blocks all = weft_blocks_received(args), blocks;
    uint32_t rank = sched->rank, size = sched->size;
    bool is_room;
    char *packed;

    place_own(sched, args, &all);
    blocks = weft_blocks_consecutive(sched, &all, size, &is_room);
    if (sched->rc)
        return;
    packed = (char *)blocks.buf;
    if (is_room)
        weft_blocks_pack(sched, &all, rank, 1, packed + blocks.starts[rank]);
    weft_allgather_blocks_multiplying(sched, &blocks, 0, k, false);
    if (!is_room)
        return;
    weft_blocks_unpack(sched, &all, 0, rank, packed);
    weft_blocks_unpack(sched, &all, rank + 1, size - rank - 1, packed + blocks.starts[rank + 1]);
}

void weft_allgather_doubling(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 2); }
void weft_allgather_multiplying_4(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 4); }
void weft_allgather_multiplying_8(weft_sched *sched, const weft_coll *args) { multiply(sched, args, 8); }

/* Ranks 2 p and 2 p + 1 are pair p. They exchange their blocks; then each rank exchanges the two blocks of a pair with its neighbours in
 * turn, and passes on what it got in the round before. So an even rank receives the pairs p - 1, p + 1, p - 2, p + 2 .., an odd one the
 * same in the other direction. */
void weft_allgather_neighbor(weft_sched *sched, const weft_coll *args)
{
    weft_blocks all = weft_blocks_received(args);
    uint32_t rank = sched->rank, size = sched->size, pairs = size / 2, own = rank / 2, last = own;
    uint32_t inner = rank ^ 1, outer = rank % 2 ? (rank + 1) % size : (rank + size - 1) % size;

    place_own(sched, args, &all);
    weft_blocks_send_run(sched, inner, &all, rank, 1);
    weft_blocks_recv_run(sched, inner, &all, inner, 1);
    weft_sched_fence(sched);
    for (uint32_t i = 1; i < pairs; i++) {
        uint32_t far = (i + 1) / 2, other = i % 2 ? outer : inner;
        uint32_t next = (i % 2) == (rank % 2) ? (own + far) % pairs : (own + pairs - far) % pairs;
        weft_blocks_send_run(sched, other, &all, 2 * last, 2);
        weft_blocks_recv_run(sched, other, &all, 2 * next, 2);
        weft_sched_fence(sched);
        last = next;
    }
}

/* Bytes of `count` blocks from `first` on, modulo the number of ranks. */
static uint64_t wrapped_bytes(const weft_blocks *blocks, uint32_t size, uint32_t first, uint32_t count)
{
    uint32_t upper = first + count <= size ? count : size - first;

    return weft_blocks_bytes(blocks, first, upper) + weft_blocks_bytes(blocks, 0, count - upper);
}

void weft_allgather_bruck(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t rank = sched->rank, size = sched->size;
    weft_blocks blocks = weft_blocks_received(args);
    uint64_t upper = weft_blocks_bytes(&blocks, rank, size - rank), lower = weft_blocks_bytes(&blocks, 0, rank);
    uint64_t own = weft_blocks_bytes(&blocks, rank, 1), filled = own;
    char *all = weft_sched_temp(sched, upper + lower, byte); /* block i: of rank (rank + i) % size, packed */

    if (!all)
        return;
    if (args->in_place)
        weft_blocks_pack(sched, &blocks, rank, 1, all);
    else
        weft_sched_copy(sched, all, own, byte, args->sendbuf, args->sendcount, args->sendtype);
    for (uint32_t have = 1; have < size; have = have < size - have ? have * 2 : size) {
        uint32_t more = have < size - have ? have : size - have;
        uint64_t out = wrapped_bytes(&blocks, size, rank, more), in = wrapped_bytes(&blocks, size, (rank + have) % size, more);
        if (out || !args->is_v)
            weft_sched_send(sched, (rank + size - have) % size, all, out, byte);
        if (in || !args->is_v)
            weft_sched_recv(sched, (rank + have) % size, all + filled, in, byte);
        weft_sched_fence(sched);
        filled += in;
    }
    weft_blocks_unpack(sched, &blocks, rank, size - rank, all);
    weft_blocks_unpack(sched, &blocks, 0, rank, all + upper);
}
