/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_block: what members write and read in collectives of blocks: gather, scatter, allgather(v), alltoall, and the second half of an
 * allreduce. See shmcoll_exchange.h.
 */
#include "collectives/shmcoll_exchange.h"

#include "base/status.h"

typedef weft_shmcoll_exchange exchange;

static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline bool is_root(const exchange *ex) { return weft_shmcoll_is_root(ex); }

/* Every block in its member's slot: gather, allgather, allgatherv. longest: bytes of the longest block. */
static int open_blocks(exchange *ex, uint64_t longest, uint64_t most)
{
    ex->max = most;
    ex->chunk = min(longest, ex->max);
    ex->rounds = (longest + ex->max - 1) / ex->max;
    return WEFT_OK;
}

static uint64_t block_bytes(const weft_blocks *blocks, uint32_t i)
{
    weft_block block = weft_blocks_at(blocks, i);

    return weft_block_bytes(&block);
}

int weft_shmcoll_open_gather(exchange *ex)
{
    const weft_coll *args = ex->args;
    uint64_t all;

    ex->blocks = weft_blocks_received(args);
    all = is_root(ex) ? block_bytes(&ex->blocks, ex->area->rank) : args->sendcount * (uint64_t)args->sendtype->size;
    return open_blocks(ex, all, weft_shmcoll_one_way_bytes(ex->area, all, ex->area->slot_bytes));
}

int weft_shmcoll_open_allgather(exchange *ex)
{
    uint64_t longest;

    ex->blocks = weft_blocks_received(ex->args);
    longest = block_bytes(&ex->blocks, 0);
    for (uint32_t i = 1; i < ex->area->ranks && ex->blocks.layout; i++)
        longest = block_bytes(&ex->blocks, i) > longest ? block_bytes(&ex->blocks, i) : longest;
    return open_blocks(ex, longest, ex->area->slot_bytes);
}

/* The round's bytes of a block; false: none. */
static inline bool block_fragment(const exchange *ex, uint64_t round, uint64_t s, uint32_t member, const weft_block *block,
                                  weft_shmcoll_fragment *fragment)
{
    uint64_t all = weft_block_bytes(block), at = round * ex->max;

    *fragment = (weft_shmcoll_fragment){s, member, 0, block->type, block->at, block->count, at, min(all - at, ex->max)};
    return at < all;
}

void weft_shmcoll_write_block(exchange *ex, uint64_t round, uint64_t s)
{
    const weft_coll *args = ex->args;
    weft_block own = {(void *)args->sendbuf, args->sendcount, args->sendtype};
    weft_shmcoll_fragment fragment;

    if (args->in_place)
        own = weft_blocks_at(&ex->blocks, ex->area->rank);
    if (block_fragment(ex, round, s, ex->area->rank, &own, &fragment))
        weft_shmcoll_write(ex->area, &fragment, weft_shmcoll_place(ex->area, ex->area->rank, s, ex->chunk));
}

void weft_shmcoll_read_blocks(exchange *ex, uint64_t round, uint64_t s)
{
    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_block block = weft_blocks_at(&ex->blocks, i);
        weft_shmcoll_fragment fragment;
        if (i != ex->area->rank && block_fragment(ex, round, s, i, &block, &fragment))
            weft_shmcoll_read(ex->area, &fragment, weft_shmcoll_place(ex->area, i, s, ex->chunk));
    }
}

/* This member's own block goes past the slots. */
void weft_shmcoll_copy_own_block(exchange *ex)
{
    const weft_coll *args = ex->args;
    weft_block own;

    if (args->in_place || ex->area->rc)
        return;
    own = weft_blocks_at(&ex->blocks, ex->area->rank);
    weft_coll_copy(ex->area->worker, own.type, own.at, own.count, args->sendtype, args->sendbuf, args->sendcount);
}

void weft_shmcoll_close_gather(exchange *ex)
{
    if (is_root(ex))
        weft_shmcoll_copy_own_block(ex);
}

/* ---- a part of the slot for each member: scatter, alltoall ---- */

static int open_parts(exchange *ex, uint64_t all, uint64_t most)
{
    ex->max = most;
    ex->chunk = min(all, ex->max) * ex->area->ranks;
    ex->rounds = (all + ex->max - 1) / ex->max;
    return WEFT_OK;
}

int weft_shmcoll_open_scatter(exchange *ex)
{
    uint64_t all;

    ex->blocks = weft_blocks_sent(ex->args);
    if (!is_root(ex))
        ex->blocks = weft_blocks_received(ex->args);
    all = block_bytes(&ex->blocks, 0);
    return open_parts(ex, all, weft_shmcoll_one_way_bytes(ex->area, all, weft_shmcoll_part_bytes(ex->area)));
}

int weft_shmcoll_open_alltoall(exchange *ex)
{
    ex->blocks = ex->args->in_place ? weft_blocks_received(ex->args) : weft_blocks_sent(ex->args);
    return open_parts(ex, block_bytes(&ex->blocks, 0), weft_shmcoll_part_bytes(ex->area));
}

/* The round's bytes of block i of `blocks`, which `member` writes for member `index`. */
static inline weft_shmcoll_fragment part_fragment(const exchange *ex, uint64_t round, uint64_t s, uint32_t member, uint32_t index,
                                                  const weft_blocks *blocks, uint32_t i)
{
    weft_block block = weft_blocks_at(blocks, i);
    uint64_t at = round * ex->max;

    return (weft_shmcoll_fragment){s, member, index, block.type, block.at, block.count, at, min(weft_block_bytes(&block) - at, ex->max)};
}

static inline char *part_place(const exchange *ex, const weft_shmcoll_fragment *fragment)
{
    return weft_shmcoll_place(ex->area, fragment->member, fragment->s, ex->chunk) +
           fragment->index * fragment->bytes;
}

void weft_shmcoll_write_parts(exchange *ex, uint64_t round, uint64_t s)
{
    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_shmcoll_fragment fragment = part_fragment(ex, round, s, ex->area->rank, i, &ex->blocks, i);
        if (i != ex->area->rank)
            weft_shmcoll_write(ex->area, &fragment, part_place(ex, &fragment));
    }
}

void weft_shmcoll_read_scatter(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll_fragment fragment = part_fragment(ex, round, s, (uint32_t)ex->args->root, ex->area->rank, &ex->blocks, 0);

    weft_shmcoll_read(ex->area, &fragment, part_place(ex, &fragment));
}

void weft_shmcoll_read_alltoall(exchange *ex, uint64_t round, uint64_t s)
{
    weft_blocks received = weft_blocks_received(ex->args);

    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_shmcoll_fragment fragment = part_fragment(ex, round, s, i, ex->area->rank, &received, i);
        if (i != ex->area->rank)
            weft_shmcoll_read(ex->area, &fragment, part_place(ex, &fragment));
    }
}

void weft_shmcoll_close_scatter(exchange *ex)
{
    const weft_coll *args = ex->args;
    weft_block own;

    if (!is_root(ex) || args->in_place || ex->area->rc)
        return;
    own = weft_blocks_at(&ex->blocks, ex->area->rank);
    weft_coll_copy(ex->area->worker, args->recvtype, args->recvbuf, args->recvcount, own.type, own.at, own.count);
}

void weft_shmcoll_close_alltoall(exchange *ex)
{
    const weft_coll *args = ex->args;
    weft_blocks received = weft_blocks_received(args);
    weft_block own, to = weft_blocks_at(&received, ex->area->rank);

    if (args->in_place || ex->area->rc)
        return;
    own = weft_blocks_at(&ex->blocks, ex->area->rank);
    weft_coll_copy(ex->area->worker, to.type, to.at, to.count, own.type, own.at, own.count);
}

/* Block i of the vector in recvbuf is member i's; every member gets all. */
int weft_shmcoll_open_spread(exchange *ex)
{
    const weft_coll *args = ex->args;

    ex->blocks = weft_blocks_even(args->recvbuf, args->recvcount, args->recvtype, ex->parts);
    return open_blocks(ex, block_bytes(&ex->blocks, 0), ex->area->slot_bytes);
}

void weft_shmcoll_write_spread(exchange *ex, uint64_t round, uint64_t s)
{
    uint32_t rank = ex->area->rank;
    weft_block own = weft_blocks_at(&ex->blocks, rank);
    weft_shmcoll_fragment fragment;

    if (block_fragment(ex, round, s, rank, &own, &fragment))
        weft_shmcoll_write(ex->area, &fragment, weft_shmcoll_place(ex->area, rank, s, ex->chunk));
}
