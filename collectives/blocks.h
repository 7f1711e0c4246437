/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: where the blocks of a buffer are, one for each rank, so that an algorithm is written once for blocks of equal length, for an
 * even partition of a vector, and for blocks with counts, displacements and types of their own. Called by the algorithms.
 */
#ifndef WEFT_COLLECTIVES_BLOCKS_H
#define WEFT_COLLECTIVES_BLOCKS_H

#include "collectives/sched.h"

typedef struct weft_block {
    void *at;
    uint64_t count;
    const weft_type *type;
} weft_block;

/* Values; what they point to is the caller's, or temporary memory of the schedule. At most one of layout, starts, parts is set. */
typedef struct weft_blocks {
    const void *buf;
    const weft_type *type;
    uint64_t count;            /* of each block; if parts is set: of all */
    const weft_layout *layout; /* counts, displacements, types; NULL: consecutive blocks */
    const uint64_t *starts;    /* block i is elements starts[i] .. starts[i + 1] - 1 */
    uint32_t parts;            /* count is split evenly into so many blocks (weft_sched_block_start); ranks beyond have an empty one */
    const uint64_t *moved;     /* set of blocks that are not to be sent, or received: weft_moved; NULL: none */
} weft_blocks;

static inline bool weft_moved_has(const uint64_t *set, uint32_t member) { return set[member / 64] >> member % 64 & 1; }
static inline void weft_moved_set(uint64_t *set, uint32_t member) { set[member / 64] |= (uint64_t)1 << member % 64; }

static inline weft_blocks weft_blocks_sent(const weft_coll *args)
{
    return (weft_blocks){.buf = args->sendbuf, .type = args->sendtype, .count = args->sendcount, .layout = args->send_layout,
                         .moved = args->moved ? args->moved->sent : NULL};
}

static inline weft_blocks weft_blocks_received(const weft_coll *args)
{
    return (weft_blocks){.buf = args->recvbuf, .type = args->recvtype, .count = args->recvcount, .layout = args->recv_layout,
                         .moved = args->moved ? args->moved->received : NULL};
}

static inline weft_blocks weft_blocks_even(const void *buf, uint64_t count, const weft_type *type, uint32_t parts)
{
    return (weft_blocks){.buf = buf, .type = type, .count = count, .parts = parts};
}

weft_block weft_blocks_of_layout(const weft_blocks *blocks, uint32_t i);

/* Block i; not one of a rank without a block (the root of an intercommunicator's call). */
static inline weft_block weft_blocks_at(const weft_blocks *blocks, uint32_t i)
{
    uint64_t first = i * blocks->count, end = first + blocks->count;

    if (weft_unlikely(blocks->layout))
        return weft_blocks_of_layout(blocks, i);
    if (blocks->starts) {
        first = blocks->starts[i];
        end = blocks->starts[i + 1];
    } else if (blocks->parts) {
        first = i < blocks->parts ? weft_sched_block_start(blocks->count, blocks->parts, i) : blocks->count;
        end = i < blocks->parts ? weft_sched_block_start(blocks->count, blocks->parts, i + 1) : first;
    }
    return (weft_block){weft_sched_at(blocks->buf, blocks->type, first), end - first, blocks->type};
}

static inline uint64_t weft_block_bytes(const weft_block *block) { return block->count * (uint64_t)block->type->size; }

/* Messages of one block. Where each rank has its own count, both sides know an empty block: it needs no message. */
static inline bool weft_blocks_need_message(const weft_blocks *blocks, uint32_t i, const weft_block *block)
{
    if (weft_unlikely(blocks->moved != NULL)) /* its length was told, whatever this member expects */
        return !weft_moved_has(blocks->moved, i);
    return weft_block_bytes(block) || !(blocks->layout || blocks->starts);
}

static inline weft_sched_message weft_blocks_send(weft_sched *sched, uint32_t to, const weft_blocks *blocks, uint32_t i)
{
    weft_block block = weft_blocks_at(blocks, i);

    if (weft_blocks_need_message(blocks, i, &block))
        return weft_sched_send(sched, to, block.at, block.count, block.type);
    return WEFT_SCHED_NO_MESSAGE;
}

static inline weft_sched_message weft_blocks_recv(weft_sched *sched, uint32_t from, const weft_blocks *blocks, uint32_t i)
{
    weft_block block = weft_blocks_at(blocks, i);

    if (weft_blocks_need_message(blocks, i, &block))
        return weft_sched_recv(sched, from, block.at, block.count, block.type);
    return WEFT_SCHED_NO_MESSAGE;
}

/* Copies into, or out of, block i. */
static inline void weft_blocks_fill(weft_sched *sched, const weft_blocks *blocks, uint32_t i, const void *from, uint64_t count,
                                    const weft_type *type)
{
    weft_block block = weft_blocks_at(blocks, i);

    weft_sched_copy(sched, block.at, block.count, block.type, from, count, type);
}

static inline void weft_blocks_take(weft_sched *sched, const weft_blocks *blocks, uint32_t i, void *to, uint64_t count,
                                    const weft_type *type)
{
    weft_block block = weft_blocks_at(blocks, i);

    weft_sched_copy(sched, to, count, type, block.at, block.count, block.type);
}

/* Consecutive blocks as one: not with a layout. */
weft_block weft_blocks_joined(const weft_blocks *blocks, uint32_t first, uint32_t count);
/* Messages of blocks first .. first + count - 1: one, or none if they are empty; with a layout one for each that is not empty. */
void weft_blocks_send_run(weft_sched *sched, uint32_t to, const weft_blocks *blocks, uint32_t first, uint32_t count);
void weft_blocks_recv_run(weft_sched *sched, uint32_t from, const weft_blocks *blocks, uint32_t first, uint32_t count);
/* Bytes of blocks first .. first + count - 1, packed. */
uint64_t weft_blocks_bytes(const weft_blocks *blocks, uint32_t first, uint32_t count);
/* Packs these blocks, or unpacks them, from consecutive bytes; in one step if they are consecutive. Returns their bytes. */
uint64_t weft_blocks_pack(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, char *bytes);
uint64_t weft_blocks_unpack(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, const char *bytes);
/* Where the blocks of a vector with these counts begin, and its end: ranks + 1 values in temporary memory. NULL: out of memory. */
const uint64_t *weft_blocks_starts(weft_sched *sched, const weft_layout *layout, uint32_t ranks);
/* Temporary memory for the first `ranks` blocks, packed and consecutive, with `starts` unless all have one length. buf is NULL: out of
 * memory. */
weft_blocks weft_blocks_room(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks);
/* The same, filled. */
weft_blocks weft_blocks_packed(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks);
/* The first `ranks` blocks where they are, without a layout, if they are consecutive; else an empty room for them, and *is_room is set. */
weft_blocks weft_blocks_consecutive(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks, bool *is_room);

#endif
