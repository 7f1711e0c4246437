/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fifomap: hash table of FIFO queues, one per 64-bit key. Insert, find the oldest entry of a key, and remove any entry are O(1) for any
 * number of keys and of entries per key. A bucket chains the oldest entry of each key; younger entries are linked to their oldest.
 * Intrusive, not thread-safe; the caller owns the entries; an entry is in at most one map. Used by core/worker and p2p/match.
 */
#ifndef WEFT_BASE_FIFOMAP_H
#define WEFT_BASE_FIFOMAP_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_FIFOMAP_FIRST 8

/* May overlay parts that owners read as narrower fields (core/req_type). */
typedef uint64_t __attribute__((may_alias)) weft_fifo_key;

typedef struct weft_fifo_entry weft_fifo_entry;
struct weft_fifo_entry {
    weft_fifo_key key;
    weft_fifo_entry *chain;      /* next key's oldest entry in the bucket; valid in the oldest entry of a key */
    weft_fifo_entry *next, *prev; /* same key, by age; prev of the oldest: the youngest; next of the youngest: NULL */
};

typedef struct weft_fifomap {
    weft_fifo_entry **buckets;
    uint32_t mask;
    uint32_t keys; /* distinct keys in the map */
    weft_fifo_entry *first[WEFT_FIFOMAP_FIRST];
} weft_fifomap;

void weft_fifomap_open(weft_fifomap *map);
void weft_fifomap_close(weft_fifomap *map); /* frees the buckets, not the entries */
/* Doubles the buckets; out of memory: no effect, operations become slower. */
void weft_fifomap_grow(weft_fifomap *map);

static inline uint32_t weft_fifomap_hash(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32);
}

/* The oldest entry of the key; NULL: none. */
static inline weft_fifo_entry *weft_fifomap_find(const weft_fifomap *map, uint64_t key)
{
    weft_fifo_entry *entry = map->buckets[weft_fifomap_hash(key) & map->mask];
    while (entry && entry->key != key)
        entry = entry->chain;
    return entry;
}

static inline void weft_fifomap_insert(weft_fifomap *map, weft_fifo_entry *entry, uint64_t key)
{
    weft_fifo_entry **bucket = &map->buckets[weft_fifomap_hash(key) & map->mask], *oldest = *bucket;
    entry->key = key;
    entry->next = NULL;
    while (oldest && oldest->key != key)
        oldest = oldest->chain;
    if (oldest) {
        entry->prev = oldest->prev;
        oldest->prev->next = entry;
        oldest->prev = entry;
        return;
    }
    entry->prev = entry;
    entry->chain = *bucket;
    *bucket = entry;
    if (__builtin_expect(++map->keys > map->mask, 0))
        weft_fifomap_grow(map);
}

static inline void weft_fifomap_remove(weft_fifomap *map, weft_fifo_entry *entry)
{
    weft_fifo_entry **place;
    if (entry->prev->next == entry) { /* not the oldest: an older entry precedes it */
        weft_fifo_entry *youngest = entry->next;
        entry->prev->next = entry->next;
        if (youngest) {
            youngest->prev = entry->prev;
            return;
        }
        weft_fifomap_find(map, entry->key)->prev = entry->prev;
        return;
    }
    place = &map->buckets[weft_fifomap_hash(entry->key) & map->mask];
    while (*place != entry)
        place = &(*place)->chain;
    if (entry->next) {
        entry->next->prev = entry->prev;
        entry->next->chain = entry->chain;
        *place = entry->next;
    } else {
        *place = entry->chain;
        map->keys--;
    }
}

#endif
