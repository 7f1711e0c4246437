/* SPDX-License-Identifier: BSD-3-Clause
 *
 * multiplying: allgather of blocks by recursive multiplying (k = 2: recursive doubling), for any number of ranks. Called by allgather.c,
 * allreduce.c and bcast.c. Block v belongs to place v, which is rank (v + shift) % size.
 * Groups of places are split into k parts (split.h). From the smallest group up, each rank sends the blocks of its part to the rank with
 * its index in each other part. A part may be longer by one than others: its last rank gets theirs from ranks that share this work.
 */
#include "collectives/algorithms.h"
#include "collectives/split.h"

typedef struct exchange {
    const weft_blocks *blocks;
    uint32_t shift, place;
    weft_members group;
    uint32_t parts, own; /* own: the part of `place` */
    bool is_scattered;
} exchange;

static uint32_t rank_at(const weft_sched *sched, const exchange *e, uint32_t place) { return (place + e->shift) % sched->size; }

/* The first rank of a scattered group has all its blocks. */
static bool needs_none(const exchange *e, uint32_t place) { return e->is_scattered && place == e->group.first; }

/* Sends the blocks of the own part to, and receives those of another part from, its ranks. */
static void with_part(weft_sched *sched, const exchange *e, uint32_t part)
{
    weft_members own = weft_split_part(e->group, e->parts, e->own), other = weft_split_part(e->group, e->parts, part);
    uint32_t i = e->place - own.first, from = other.first + (i < other.count ? i : e->own % other.count);

    if (i < other.count && !needs_none(e, other.first + i))
        weft_blocks_send_run(sched, rank_at(sched, e, other.first + i), e->blocks, own.first, own.count);
    if (other.count > own.count && i == part % own.count)
        weft_blocks_send_run(sched, rank_at(sched, e, other.first + own.count), e->blocks, own.first, own.count);
    if (!needs_none(e, e->place))
        weft_blocks_recv_run(sched, rank_at(sched, e, from), e->blocks, other.first, other.count);
}

void weft_allgather_blocks_multiplying(weft_sched *sched, const weft_blocks *blocks, uint32_t shift, uint32_t k, bool is_scattered)
{
    weft_members path[WEFT_SPLIT_LEVELS];
    exchange e = {.blocks = blocks, .shift = shift, .place = (sched->rank + sched->size - shift) % sched->size,
                  .is_scattered = is_scattered};
    uint32_t levels = weft_split_path(sched->size, k, e.place, path);

    for (uint32_t i = levels - 1; i-- > 0;) {
        e.group = path[i];
        e.parts = weft_split_count(e.group, k);
        e.own = weft_split_find(e.group, e.parts, e.place);
        for (uint32_t part = 1; part < e.parts; part++)
            with_part(sched, &e, (e.own + part) % e.parts);
        weft_sched_fence(sched);
    }
}
