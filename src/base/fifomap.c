/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fifomap: open, close, growth. See fifomap.h.
 */
#include "base/fifomap.h"

#include <stdlib.h>
#include <string.h>

void weft_fifomap_open(weft_fifomap *map)
{
    memset(map, 0, sizeof *map);
    map->buckets = map->first;
    map->mask = WEFT_FIFOMAP_FIRST - 1;
}

void weft_fifomap_close(weft_fifomap *map)
{
    if (map->buckets != map->first)
        free(map->buckets);
}

void weft_fifomap_grow(weft_fifomap *map)
{
    uint32_t mask = map->mask * 2 + 1;
    weft_fifo_entry **buckets = calloc((size_t)mask + 1, sizeof *buckets);
    if (!buckets)
        return;
    for (uint32_t i = 0; i <= map->mask; i++) {
        weft_fifo_entry *entry = map->buckets[i];
        while (entry) {
            weft_fifo_entry *following = entry->chain, **bucket = &buckets[weft_fifomap_hash(entry->key) & mask];
            entry->chain = *bucket;
            *bucket = entry;
            entry = following;
        }
    }
    weft_fifomap_close(map);
    map->buckets = buckets;
    map->mask = mask;
}
