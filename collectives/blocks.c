/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: see blocks.h.
 */
#include "collectives/blocks.h"

weft_block weft_blocks_of_layout(const weft_blocks *blocks, uint32_t i)
{
    const weft_layout *layout = blocks->layout;
    const weft_type *type = !layout->types ? blocks->type : layout->held ? layout->held[i] : weft_type_of(layout->types[i]);
    int64_t displacement = weft_counts_get(layout->displs, i) * (layout->types ? 1 : type->extent);

    return (weft_block){(char *)blocks->buf + displacement, (uint64_t)weft_counts_get(layout->counts, i), type};
}

weft_block weft_blocks_joined(const weft_blocks *blocks, uint32_t first, uint32_t count)
{
    weft_block all = weft_blocks_at(blocks, first);

    if (blocks->starts)
        all.count = blocks->starts[first + count] - blocks->starts[first];
    else if (blocks->parts)
        all.count = weft_sched_block_start(blocks->count, blocks->parts, first + count) -
                    weft_sched_block_start(blocks->count, blocks->parts, first);
    else
        all.count *= count;
    return all;
}

/* Run i of these blocks: a block of the layout, or all of them. */
static weft_block run_at(const weft_blocks *blocks, uint32_t first, uint32_t count, uint32_t i)
{
    return blocks->layout ? weft_blocks_at(blocks, first + i) : weft_blocks_joined(blocks, first, count);
}

static uint32_t run_count(const weft_blocks *blocks, uint32_t count) { return blocks->layout ? count : count != 0; }

void weft_blocks_send_run(weft_sched *sched, uint32_t to, const weft_blocks *blocks, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < run_count(blocks, count); i++) {
        weft_block block = run_at(blocks, first, count, i);
        if (weft_block_bytes(&block))
            weft_sched_send(sched, to, block.at, block.count, block.type);
    }
}

void weft_blocks_recv_run(weft_sched *sched, uint32_t from, const weft_blocks *blocks, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < run_count(blocks, count); i++) {
        weft_block block = run_at(blocks, first, count, i);
        if (weft_block_bytes(&block))
            weft_sched_recv(sched, from, block.at, block.count, block.type);
    }
}

uint64_t weft_blocks_bytes(const weft_blocks *blocks, uint32_t first, uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < run_count(blocks, count); i++) {
        weft_block block = run_at(blocks, first, count, i);
        bytes += weft_block_bytes(&block);
    }
    return bytes;
}

static uint64_t move(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, char *bytes, bool is_pack)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < run_count(blocks, count); i++) {
        weft_block block = run_at(blocks, first, count, i);
        uint64_t here = weft_block_bytes(&block);
        if (is_pack)
            weft_sched_copy(sched, bytes + done, here, weft_sched_bytes(), block.at, block.count, block.type);
        else
            weft_sched_copy(sched, block.at, block.count, block.type, bytes + done, here, weft_sched_bytes());
        done += here;
    }
    return done;
}

uint64_t weft_blocks_pack(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, char *bytes)
{
    return move(sched, blocks, first, count, bytes, true);
}

uint64_t weft_blocks_unpack(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, const char *bytes)
{
    return move(sched, blocks, first, count, (char *)bytes, false);
}

const uint64_t *weft_blocks_starts(weft_sched *sched, const weft_layout *layout, uint32_t ranks)
{
    uint64_t *starts = weft_sched_temp(sched, (ranks + (uint64_t)1) * sizeof *starts, weft_sched_bytes());

    if (!starts)
        return NULL;
    starts[0] = 0;
    for (uint32_t i = 0; i < ranks; i++)
        starts[i + 1] = starts[i] + (uint64_t)weft_counts_get(layout->counts, i);
    return starts;
}

weft_blocks weft_blocks_room(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks)
{
    const weft_type *byte = weft_sched_bytes();
    weft_blocks room = {.type = byte};

    if (blocks->layout) {
        uint64_t *starts = weft_sched_temp(sched, (ranks + (uint64_t)1) * sizeof *starts, byte);
        if (!starts)
            return room;
        starts[0] = 0;
        for (uint32_t i = 0; i < ranks; i++)
            starts[i + 1] = starts[i] + weft_blocks_bytes(blocks, i, 1);
        room.starts = starts;
    } else {
        room.count = blocks->count * (uint64_t)blocks->type->size;
    }
    room.buf = weft_sched_temp(sched, room.starts ? room.starts[ranks] : ranks * room.count, byte);
    return room;
}

weft_blocks weft_blocks_packed(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks)
{
    weft_blocks packed = weft_blocks_room(sched, blocks, ranks);

    if (packed.buf)
        weft_blocks_pack(sched, blocks, 0, ranks, (char *)packed.buf);
    return packed;
}

static bool is_consecutive(const weft_layout *layout, uint32_t ranks)
{
    int64_t next = weft_counts_get(layout->displs, 0);

    for (uint32_t i = 0; i < ranks; i++) {
        int64_t count = weft_counts_get(layout->counts, i);
        if (count && weft_counts_get(layout->displs, i) != next)
            return false;
        next += count;
    }
    return !layout->types;
}

weft_blocks weft_blocks_consecutive(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks, bool *is_room)
{
    weft_blocks plain = *blocks;

    *is_room = blocks->layout && !is_consecutive(blocks->layout, ranks);
    if (*is_room)
        return weft_blocks_room(sched, blocks, ranks);
    if (blocks->layout) {
        plain.buf = weft_blocks_at(blocks, 0).at;
        plain.starts = weft_blocks_starts(sched, blocks->layout, ranks);
        plain.layout = NULL;
    }
    return plain;
}
