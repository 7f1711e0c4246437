/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranges: a set of addresses as a sorted array of disjoint, non-adjacent ranges in memory of the owner. No allocation, as memhooks
 * uses it within mmap. No lock: memmon and memhooks guard their sets.
 */
#ifndef WEFT_MEM_RANGES_H
#define WEFT_MEM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_range { uint64_t start, end; } weft_range;
typedef struct weft_ranges {
    uint32_t count, capacity; /* ranges; capacity: of `at` */
    weft_range *at;       /* the owner's array */
} weft_ranges;

/* Index of the first range that ends after addr; count: none. */
uint32_t weft_ranges_after(const weft_ranges *set, uint64_t addr);
/* Adds [start, end), merging ranges that overlap or touch it. False: full, and the set is unchanged. */
bool weft_ranges_add(weft_ranges *set, uint64_t start, uint64_t end);
/* Removes [start, end). If a range must be split and the set is full, its upper part is removed too. */
void weft_ranges_remove(weft_ranges *set, uint64_t start, uint64_t end);
/* True if one range contains all of [start, end). */
bool weft_ranges_hold(const weft_ranges *set, uint64_t start, uint64_t end);

#endif
