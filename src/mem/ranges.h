/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranges: a set of addresses, as ascending ranges that do not touch, in room that the owner gives. Never allocates: the
 * interposer keeps one within mmap itself. Called by watch and preload, which guard it.
 */
#ifndef WEFT_MEM_RANGES_H
#define WEFT_MEM_RANGES_H

#include "mem/memmon.h"

typedef struct weft_ranges {
    uint32_t count, room;
    weft_range *at;
} weft_ranges;

/* The first range that ends after addr; count when there is none. */
uint32_t weft_ranges_after(const weft_ranges *set, uint64_t addr);
/* false: there was no room, and nothing happened. */
bool weft_ranges_add(weft_ranges *set, uint64_t start, uint64_t end);
/* When a range must be split and there is no room, its upper part goes too: the set is never too large. */
void weft_ranges_remove(weft_ranges *set, uint64_t start, uint64_t end);
bool weft_ranges_hold(const weft_ranges *set, uint64_t start, uint64_t end);

#endif
