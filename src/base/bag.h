/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bag: a multiset of 32-bit keys: how often each is in it. Add, remove and count are O(1); 8 bytes for each distinct key, at least a
 * quarter of the slots used. Open addressing: a key whose count fell to 0 keeps its slot until the next rehash.
 * Single-threaded. Used by p2p/sendq and p2p/stall.
 */
#ifndef WEFT_BASE_BAG_H
#define WEFT_BASE_BAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

typedef struct weft_bag_slot {
    int32_t key;
    uint32_t count;
} weft_bag_slot;

typedef struct weft_bag {
    weft_bag_slot *slots; /* mask + 1; NULL: none yet */
    uint8_t *used;        /* mask + 1: the slot has a key */
    uint32_t mask;
    uint32_t filled;      /* slots with a key, also of count 0 */
    uint32_t keys;        /* distinct keys of a count above 0 */
} weft_bag;

/* All bytes 0 is an empty bag. Frees its memory and leaves an empty bag. */
void weft_bag_clear(weft_bag *bag);
/* One more of key. false: no memory, the bag is as it was. */
bool weft_bag_add(weft_bag *bag, int32_t key);
/* One less of key; false: there was none. */
bool weft_bag_remove(weft_bag *bag, int32_t key);
uint32_t weft_bag_count(const weft_bag *bag, int32_t key);

/* Some key of the bag, found from slot *at on, which moves behind it; false: there is none. Adds invalidate *at. */
bool weft_bag_next(const weft_bag *bag, uint32_t *at, int32_t *key);

/* Is key in the bag? */
static inline bool weft_bag_has(const weft_bag *bag, int32_t key) { return weft_unlikely(bag->keys) && weft_bag_count(bag, key); }

#endif
