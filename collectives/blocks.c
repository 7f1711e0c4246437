/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: see blocks.h.
 */
#include "collectives/blocks.h"

weft_block weft_blocks_of_layout(const weft_blocks *blocks, uint32_t i)
{
    const weft_layout *layout = blocks->layout;
    const weft_type *type = layout->types ? weft_type_of(layout->types[i]) : blocks->type;
    int64_t displacement = weft_counts_get(layout->displs, i) * (layout->types ? 1 : type->extent);

    return (weft_block){(char *)blocks->buf + displacement, (uint64_t)weft_counts_get(layout->counts, i), type};
}

/* Consecutive blocks as one. */
static weft_block joined(const weft_blocks *blocks, uint32_t first, uint32_t count)
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

uint64_t weft_blocks_bytes(const weft_blocks *blocks, uint32_t first, uint32_t count)
{
    uint64_t bytes = 0;
    uint32_t runs = blocks->layout ? count : count != 0;

    for (uint32_t i = 0; i < runs; i++) {
        weft_block block = blocks->layout ? weft_blocks_at(blocks, first + i) : joined(blocks, first, count);
        bytes += weft_block_bytes(&block);
    }
    return bytes;
}

static uint64_t move(weft_sched *sched, const weft_blocks *blocks, uint32_t first, uint32_t count, char *bytes, bool is_pack)
{
    uint64_t done = 0;
    uint32_t runs = blocks->layout ? count : count != 0;

    for (uint32_t i = 0; i < runs; i++) {
        weft_block block = blocks->layout ? weft_blocks_at(blocks, first + i) : joined(blocks, first, count);
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

weft_blocks weft_blocks_packed(weft_sched *sched, const weft_blocks *blocks, uint32_t ranks)
{
    const weft_type *byte = weft_sched_bytes();
    weft_blocks packed = {.type = byte};
    char *bytes;

    if (blocks->layout) {
        uint64_t *starts = weft_sched_temp(sched, (ranks + (uint64_t)1) * sizeof *starts, byte);
        if (!starts)
            return packed;
        starts[0] = 0;
        for (uint32_t i = 0; i < ranks; i++)
            starts[i + 1] = starts[i] + weft_blocks_bytes(blocks, i, 1);
        packed.starts = starts;
    } else {
        packed.count = blocks->count * (uint64_t)blocks->type->size;
    }
    bytes = weft_sched_temp(sched, packed.starts ? packed.starts[ranks] : ranks * packed.count, byte);
    if (bytes)
        weft_blocks_pack(sched, blocks, 0, ranks, bytes);
    packed.buf = bytes;
    return packed;
}
