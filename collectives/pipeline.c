/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pipeline: see pipeline.h.
 */
#include "collectives/pipeline.h"

#define SEGMENT_LATENCIES 4 /* of a segment */

weft_pipeline_node weft_pipeline_chain(uint32_t size, uint32_t rank, uint32_t root)
{
    uint32_t v = (rank + size - root) % size;
    weft_pipeline_node node = {WEFT_PIPELINE_NONE, WEFT_PIPELINE_NONE, WEFT_PIPELINE_NONE};

    if (v)
        node.parent = (rank + size - 1) % size;
    if (v + 1 < size)
        node.upper = (rank + 1) % size;
    return node;
}

weft_pipeline_node weft_pipeline_chain_in_order(uint32_t size, uint32_t rank, uint32_t root)
{
    weft_pipeline_node node = {WEFT_PIPELINE_NONE, WEFT_PIPELINE_NONE, WEFT_PIPELINE_NONE};

    if (rank != root)
        node.parent = rank < root ? rank + 1 : rank - 1;
    if (rank <= root && rank)
        node.lower = rank - 1;
    if (rank >= root && rank + 1 < size)
        node.upper = rank + 1;
    return node;
}

/* The top of the tree of these ranks, which is their middle. */
static uint32_t top_of(weft_members ranks) { return ranks.count ? ranks.first + ranks.count / 2 : WEFT_PIPELINE_NONE; }

weft_pipeline_node weft_pipeline_binary_in_order(uint32_t size, uint32_t rank, uint32_t root)
{
    weft_members all = {0, size};
    weft_pipeline_node node = {.parent = WEFT_PIPELINE_NONE};
    uint32_t top = root;

    for (;;) {
        weft_members below = {all.first, top - all.first}, above = {top + 1, all.first + all.count - top - 1};
        node.lower = top_of(below);
        node.upper = top_of(above);
        if (rank == top)
            return node;
        node.parent = top;
        all = rank < top ? below : above;
        top = top_of(all);
    }
}

static uint32_t turned_back(uint32_t place, uint32_t size, uint32_t shift)
{
    return place == WEFT_PIPELINE_NONE ? place : (place + shift) % size;
}

weft_pipeline_node weft_pipeline_binary(uint32_t size, uint32_t rank, uint32_t root)
{
    uint32_t middle = size / 2, shift = (root + size - middle) % size; /* of rank `place + shift`; the root is in the middle */
    weft_pipeline_node node = weft_pipeline_binary_in_order(size, (rank + size - shift) % size, middle);

    return (weft_pipeline_node){turned_back(node.parent, size, shift), turned_back(node.lower, size, shift),
                                turned_back(node.upper, size, shift)};
}

uint64_t weft_pipeline_segment(const weft_sched *sched, uint64_t count, const weft_type *type)
{
    uint64_t bytes = (uint64_t)sched->team->latency_bytes * SEGMENT_LATENCIES, size = (uint64_t)type->size;
    uint64_t segment = size && size < bytes ? bytes / size : 1;

    if (!size || segment > count)
        segment = count ? count : 1;
    return segment;
}
