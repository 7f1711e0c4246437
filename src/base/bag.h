/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bag: multiset of 32-bit keys. Add, remove and count are O(1). Open addressing with 9 bytes a slot; after a rehash at most a quarter
 * of the slots are used, and at least an eighth if there are more than 8. A key whose count fell to 0 keeps its slot until the next rehash.
 * Not thread-safe: the caller locks. Used by p2p/sendq and p2p/stall.
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
    weft_bag_slot *slots; /* [mask + 1], owned; NULL: none yet */
    uint8_t *used;        /* [mask + 1], behind slots: 1: the slot has a key */
    uint32_t mask;
    uint32_t filled;      /* slots with a key, counts of 0 included */
    uint32_t keys;        /* distinct keys with a count above 0 */
} weft_bag;

/* Frees its memory and leaves an empty bag (all bytes 0). */
void weft_bag_clear(weft_bag *bag);
/* Adds one of key. false: out of memory; the bag is unchanged. */
bool weft_bag_add(weft_bag *bag, int32_t key);
/* Removes one of key. false: there was none. */
bool weft_bag_remove(weft_bag *bag, int32_t key);
uint32_t weft_bag_count(const weft_bag *bag, int32_t key);

/* Iterates: stores the next key at or after slot *at in *key and advances *at. false: no more keys. Adds invalidate *at. */
bool weft_bag_next(const weft_bag *bag, uint32_t *at, int32_t *key);

/* Whether key is in the bag. */
static inline bool weft_bag_has(const weft_bag *bag, int32_t key) { return weft_unlikely(bag->keys) && weft_bag_count(bag, key); }

#endif
