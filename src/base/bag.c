/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bag: see bag.h.
 */
#include "base/bag.h"

#include <stdlib.h>

#define FIRST 8

void weft_bag_clear(weft_bag *bag)
{
    free(bag->slots);
    *bag = (weft_bag){.slots = NULL};
}

static uint32_t hash(int32_t key) { return (uint32_t)(((uint64_t)(uint32_t)key * 0x9e3779b97f4a7c15u) >> 32); }

/* The slot of key, else the free slot to insert it. Invariant: at least one slot is free. */
static uint32_t place_of(const weft_bag *bag, int32_t key)
{
    uint32_t at = hash(key) & bag->mask;
    while (bag->used[at] && bag->slots[at].key != key)
        at = (at + 1) & bag->mask;
    return at;
}

static bool rehash(weft_bag *bag)
{
    weft_bag more = {.slots = NULL};
    uint32_t capacity = FIRST;
    while (capacity < 4ull * bag->keys && capacity < 1u << 31)
        capacity *= 2;
    more.slots = malloc(capacity * (sizeof *more.slots + 1ull));
    if (!more.slots)
        return false;
    more.used = (uint8_t *)(more.slots + capacity);
    more.mask = capacity - 1;
    for (uint32_t i = 0; i < capacity; i++)
        more.used[i] = 0;
    for (uint32_t i = 0; bag->slots && i <= bag->mask; i++)
        if (bag->used[i] && bag->slots[i].count) {
            uint32_t at = place_of(&more, bag->slots[i].key);
            more.slots[at] = bag->slots[i];
            more.used[at] = 1;
            more.filled++;
        }
    more.keys = more.filled;
    free(bag->slots);
    *bag = more;
    return true;
}

bool weft_bag_add(weft_bag *bag, int32_t key)
{
    uint32_t at;
    if (!bag->slots && !rehash(bag))
        return false;
    at = place_of(bag, key);
    if (!bag->used[at]) {
        if (bag->filled >= bag->mask / 2) {
            if (!rehash(bag) && bag->filled >= bag->mask) /* no memory: fill beyond half, but keep one slot free */
                return false;
            at = place_of(bag, key);
        }
        bag->used[at] = 1;
        bag->slots[at] = (weft_bag_slot){key, 0};
        bag->filled++;
    }
    bag->keys += bag->slots[at].count++ == 0;
    return true;
}

bool weft_bag_remove(weft_bag *bag, int32_t key)
{
    uint32_t at;
    if (!bag->keys)
        return false;
    at = place_of(bag, key);
    if (!bag->used[at] || !bag->slots[at].count)
        return false;
    bag->keys -= --bag->slots[at].count == 0;
    return true;
}

uint32_t weft_bag_count(const weft_bag *bag, int32_t key)
{
    uint32_t at;
    if (!bag->keys)
        return 0;
    at = place_of(bag, key);
    return bag->used[at] ? bag->slots[at].count : 0;
}

bool weft_bag_next(const weft_bag *bag, uint32_t *at, int32_t *key)
{
    for (; bag->keys && *at <= bag->mask; ++*at)
        if (bag->used[*at] && bag->slots[*at].count) {
            *key = bag->slots[(*at)++].key;
            return true;
        }
    return false;
}
