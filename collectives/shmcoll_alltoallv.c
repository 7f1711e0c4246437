/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_alltoallv: what members write and read in an alltoallv or alltoallw, whose counts only pairs of members know. See
 * shmcoll_exchange.h. (gatherv and scatterv go by messages: few of them, and no member waits for others than the root.)
 * The writer of a block writes a cell for its reader: the block's length, and its data if they fit. In its line it tells the length of its
 * longest block. So each member knows the longest block of all, and all go on alike: longer blocks follow in rounds of slots, or by
 * messages (area->moved). A block that is shorter than its reader expects is accepted; a longer one is an error there, as of messages.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll_exchange.h"

#define CELL_MIN 64u   /* bytes; where cells would be shorter, these collectives go by messages */
#define ROUNDS 2       /* most rounds of longer blocks: by messages they are as fast (cost_area.c, alltoall) */

_Static_assert(WEFT_SHMCOLL_RANKS <= WEFT_MOVED_MEMBERS, "a bit for each member");

typedef weft_shmcoll_exchange exchange;

typedef struct cell {
    uint64_t bytes; /* of the block */
    char data[];
} cell;

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- cells ---- */

bool weft_shmcoll_has_cells(const weft_shmcoll *area) { return !area->csums && weft_shmcoll_part_bytes(area) >= CELL_MIN; }

int weft_shmcoll_open_alltoallv(exchange *ex)
{
    weft_shmcoll *area = ex->area;

    ex->max = weft_shmcoll_part_bytes(area);
    ex->chunk = ex->max * area->ranks;
    ex->blocks = ex->args->in_place ? weft_blocks_received(ex->args) : weft_blocks_sent(ex->args);
    ex->longest = 0;
    memset(&area->moved, 0, sizeof area->moved);
    weft_moved_set(area->moved.sent, area->rank);
    weft_moved_set(area->moved.received, area->rank);
    area->was_sent = false;
    area->left = 0;
    return WEFT_OK;
}

static inline cell *cell_of(const exchange *ex, uint32_t writer, uint64_t s, uint32_t index)
{
    return (cell *)(weft_shmcoll_place(ex->area, writer, s, ex->chunk) + index * ex->max);
}

/* The length of a member's longest block is in its line. */
static inline uint64_t *longest_of(const exchange *ex, uint32_t member, uint64_t s)
{
    return (uint64_t *)weft_shmcoll_line_of(ex->area, member, s)->data;
}

static inline void write_cell(exchange *ex, cell *to, uint32_t reader, const weft_block *block)
{
    weft_shmcoll *area = ex->area;
    uint64_t bytes = weft_block_bytes(block);

    to->bytes = bytes;
    ex->longest = most(ex->longest, bytes);
    if (weft_unlikely(bytes > ex->max - sizeof *to)) {
        area->left++;
        return;
    }
    if (bytes)
        weft_shmcoll_pack(area, block->type, block->at, block->count, 0, bytes, to->data);
    weft_moved_set(area->moved.sent, reader);
}

/* An error of this member's call only, which goes on. */
static __attribute__((noinline)) void truncate(weft_shmcoll *area, uint32_t writer, uint64_t bytes, uint64_t expected)
{
    if (area->damage)
        return;
    area->damage = weft_fail(WEFT_E_TRUNCATE, "the block from rank %u has %llu bytes, its place in the receive buffer %llu",
                             weft_shmcoll_rank_of(area, writer), (unsigned long long)bytes, (unsigned long long)expected);
    snprintf(area->damage_text, sizeof area->damage_text, "%s", weft_fail_text(area->damage));
}

/* Unpacks bytes [at, at + bytes) of the block of `all` bytes that `writer` sent. */
static inline void receive(exchange *ex, uint32_t writer, const weft_block *block, uint64_t all, uint64_t at, uint64_t bytes,
                           const char *data)
{
    uint64_t expected = weft_block_bytes(block);

    if (weft_unlikely(all > expected))
        truncate(ex->area, writer, all, expected);
    else if (bytes)
        weft_shmcoll_unpack(ex->area, block->type, block->at, block->count, at, bytes, data);
}

static inline void read_cell(exchange *ex, const cell *from, uint32_t writer, const weft_block *block)
{
    weft_shmcoll *area = ex->area;
    uint64_t bytes = from->bytes;

    if (weft_unlikely(bytes > ex->max - sizeof *from)) {
        ex->starts[writer] = bytes;
        area->left++;
        return;
    }
    receive(ex, writer, block, bytes, 0, bytes, from->data);
    weft_moved_set(area->moved.received, writer);
}

void weft_shmcoll_write_alltoallv(exchange *ex, uint64_t round, uint64_t s)
{
    uint32_t rank = ex->area->rank;
    char *place = weft_shmcoll_place(ex->area, rank, s, ex->chunk);

    (void)round;
    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_block block = weft_blocks_at(&ex->blocks, i);
        if (i != rank)
            write_cell(ex, (cell *)(place + i * ex->max), i, &block);
    }
    *longest_of(ex, rank, s) = ex->longest;
}

void weft_shmcoll_read_alltoallv(exchange *ex, uint64_t round, uint64_t s)
{
    weft_blocks received = weft_blocks_received(ex->args);

    (void)round;
    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_block block = weft_blocks_at(&received, i);
        if (i == ex->area->rank)
            continue;
        ex->longest = most(ex->longest, *longest_of(ex, i, s));
        read_cell(ex, cell_of(ex, i, s, ex->area->rank), i, &block);
    }
}

/* ---- longer blocks, in rounds ---- */

bool weft_shmcoll_alltoallv_goes_on(const exchange *ex)
{
    weft_shmcoll *area = ex->area;
    bool is_done = ex->longest <= ex->max - sizeof(cell);

    area->was_sent = ex->longest > ROUNDS * weft_shmcoll_part_bytes(area);
    return !is_done && !area->was_sent;
}

int weft_shmcoll_open_rest(exchange *ex)
{
    ex->max = least(weft_shmcoll_part_bytes(ex->area), weft_round_up(ex->longest, 16));
    ex->chunk = ex->max * ex->area->ranks;
    ex->rounds = (ex->longest + ex->max - 1) / ex->max;
    return WEFT_OK;
}

void weft_shmcoll_write_rest(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    char *place = weft_shmcoll_place(area, area->rank, s, ex->chunk);
    uint64_t at = round * ex->max;

    for (uint32_t i = 0; i < area->ranks; i++) {
        weft_block block;
        if (weft_moved_has(area->moved.sent, i))
            continue;
        block = weft_blocks_at(&ex->blocks, i);
        if (at < weft_block_bytes(&block))
            weft_shmcoll_pack(area, block.type, block.at, block.count, at, least(weft_block_bytes(&block) - at, ex->max),
                              place + i * ex->max);
    }
}

static inline void read_rest(exchange *ex, uint64_t round, uint64_t s, uint32_t writer, const weft_block *block)
{
    uint64_t all = ex->starts[writer], at = round * ex->max;

    if (at < all)
        receive(ex, writer, block, all, at, least(all - at, ex->max),
                weft_shmcoll_place(ex->area, writer, s, ex->chunk) + ex->area->rank * ex->max);
}

void weft_shmcoll_read_rest(exchange *ex, uint64_t round, uint64_t s)
{
    weft_blocks received = weft_blocks_received(ex->args);

    for (uint32_t i = 0; i < ex->area->ranks; i++) {
        weft_block block;
        if (weft_moved_has(ex->area->moved.received, i))
            continue;
        block = weft_blocks_at(&received, i);
        read_rest(ex, round, s, i, &block);
    }
}

void weft_shmcoll_close_rest(exchange *ex) { ex->area->left = 0; }
