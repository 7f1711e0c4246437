/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_cache: see modex_cache.h. The only file that defines the order of the parts.
 */
#include "launch/modex_cache.h"

#include <string.h>

static void lay_out(weft_modex_cache *cache, uint32_t size)
{
    cache->size = size;
    cache->node_of = weft_round_up(sizeof(*cache), WEFT_LINE);
    cache->local_of = cache->node_of + (uint64_t)size * sizeof(uint32_t);
    cache->states = cache->local_of + (uint64_t)size * sizeof(uint32_t);
    cache->stages = cache->states + (uint64_t)size * sizeof(uint32_t);
    cache->requested = weft_round_up(cache->stages + (uint64_t)size * sizeof(uint32_t), sizeof(uint64_t));
    cache->entries = weft_round_up(cache->requested + ((uint64_t)size + 63) / 64 * sizeof(uint64_t), WEFT_PAGE);
}

uint64_t weft_modex_cache_front_bytes(uint32_t size)
{
    weft_modex_cache cache;

    lay_out(&cache, size);
    return cache.entries;
}

uint64_t weft_modex_cache_bytes(uint32_t size)
{
    return weft_modex_cache_front_bytes(size) + (uint64_t)size * WEFT_PAGE;
}

void weft_modex_cache_make(weft_modex_cache *cache, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of,
                           const uint32_t *local_of)
{
    cache->magic = WEFT_MODEX_MAGIC;
    cache->nodes = nodes;
    cache->node = node;
    lay_out(cache, size);
    memcpy(weft_modex_cache_at(cache, cache->node_of), node_of, size * sizeof(*node_of));
    memcpy(weft_modex_cache_at(cache, cache->local_of), local_of, size * sizeof(*local_of));
}

bool weft_modex_cache_is_sound(const weft_modex_cache *cache, uint64_t bytes, uint32_t size)
{
    weft_modex_cache expected;

    lay_out(&expected, size);
    return bytes >= weft_modex_cache_bytes(size) && cache->magic == WEFT_MODEX_MAGIC && cache->size == size &&
           cache->node_of == expected.node_of && cache->local_of == expected.local_of && cache->states == expected.states &&
           cache->stages == expected.stages && cache->requested == expected.requested && cache->entries == expected.entries;
}

const char *weft_modex_find(const char *modex, uint32_t bytes, const char *key, uint16_t *length)
{
    uint32_t end = bytes < WEFT_MODEX_CAPACITY ? bytes : WEFT_MODEX_CAPACITY;

    for (uint32_t at = 0; at < end;) {
        size_t key_bytes = strnlen(modex + at, end - at) + 1, value_at = at + key_bytes + sizeof(*length);
        if (value_at > end)
            return NULL;
        memcpy(length, modex + at + key_bytes, sizeof(*length));
        if (*length > end - value_at)
            return NULL;
        if (strcmp(modex + at, key) == 0)
            return modex + value_at;
        at = (uint32_t)value_at + *length;
    }
    return NULL;
}
