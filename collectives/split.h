/* SPDX-License-Identifier: BSD-3-Clause
 *
 * split: recursive division of consecutive places into groups, down to single ones, for any number of places. Called by the algorithms of
 * halving.c and multiplying.c. A group of n is split into min(k, n) parts; the first n % k of them are longer by one.
 */
#ifndef WEFT_COLLECTIVES_SPLIT_H
#define WEFT_COLLECTIVES_SPLIT_H

#include "collectives/sched.h"

#define WEFT_SPLIT_LEVELS 33 /* groups that hold one place: at most 32 levels, and the place itself */

static inline uint32_t weft_split_count(weft_members group, uint32_t k) { return k < group.count ? k : group.count; }

/* Part i of a group of which weft_split_count() is `parts`. */
static inline weft_members weft_split_part(weft_members group, uint32_t parts, uint32_t i)
{
    uint32_t first = (uint32_t)weft_sched_block_start(group.count, parts, i);

    return (weft_members){group.first + first, (uint32_t)weft_sched_block_start(group.count, parts, i + 1) - first};
}

/* The part that holds this place. */
static inline uint32_t weft_split_find(weft_members group, uint32_t parts, uint32_t place)
{
    uint32_t each = group.count / parts, longer = group.count % parts, i = place - group.first;

    return i < longer * (each + 1) ? i / (each + 1) : longer + (i - longer * (each + 1)) / each;
}

/* The groups that hold this place: from all of `size` places to the place itself. Returns their number. */
static inline uint32_t weft_split_path(uint32_t size, uint32_t k, uint32_t place, weft_members path[WEFT_SPLIT_LEVELS])
{
    uint32_t levels = 1;

    path[0] = (weft_members){0, size};
    while (path[levels - 1].count > 1) {
        uint32_t parts = weft_split_count(path[levels - 1], k);
        path[levels] = weft_split_part(path[levels - 1], parts, weft_split_find(path[levels - 1], parts, place));
        levels++;
    }
    return levels;
}

#endif
