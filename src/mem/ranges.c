/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranges: see ranges.h. Compiled into the library and into libweft-memhooks.so.
 */
#include "mem/ranges.h"

#include <string.h>

uint32_t weft_ranges_after(const weft_ranges *set, uint64_t addr)
{
    uint32_t low = 0, high = set->count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (set->at[mid].end <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Moves the ranges from index `from` on to index `to`. */
static void move(weft_ranges *set, uint32_t from, uint32_t to)
{
    memmove(&set->at[to], &set->at[from], (set->count - from) * sizeof(weft_range));
    set->count = set->count - from + to;
}

bool weft_ranges_add(weft_ranges *set, uint64_t start, uint64_t end)
{
    uint32_t first = start ? weft_ranges_after(set, start - 1) : 0, last = first; /* - 1: adjacent ranges are merged */

    for (; last < set->count && set->at[last].start <= end; last++) {
        start = set->at[last].start < start ? set->at[last].start : start;
        end = set->at[last].end > end ? set->at[last].end : end;
    }
    if (first == last && set->count == set->capacity)
        return false;
    move(set, last, first + 1);
    set->at[first] = (weft_range){start, end};
    return true;
}

void weft_ranges_remove(weft_ranges *set, uint64_t start, uint64_t end)
{
    uint32_t at = weft_ranges_after(set, start);

    if (at < set->count && set->at[at].start < start) {
        uint64_t old_end = set->at[at].end;
        set->at[at++].end = start;
        if (old_end > end) { /* a hole within one range */
            if (set->count == set->capacity)
                return;
            move(set, at, at + 1);
            set->at[at] = (weft_range){end, old_end};
            return;
        }
    }
    uint32_t last = at;
    while (last < set->count && set->at[last].end <= end)
        last++;
    if (last < set->count && set->at[last].start < end)
        set->at[last].start = end;
    move(set, last, at);
}

bool weft_ranges_hold(const weft_ranges *set, uint64_t start, uint64_t end)
{
    uint32_t at = weft_ranges_after(set, start);
    return at < set->count && set->at[at].start <= start && set->at[at].end >= end;
}
