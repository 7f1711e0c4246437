/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_cache: see modex_cache.h. The only file that defines the order of the parts.
 */
#include "launch/modex_cache.h"

#include <string.h>

static void lay_out(weft_modex_cache *far, uint32_t size)
{
    far->size = size;
    far->node_of = weft_round_up(sizeof(*far), WEFT_LINE);
    far->local_of = far->node_of + (uint64_t)size * sizeof(uint32_t);
    far->states = far->local_of + (uint64_t)size * sizeof(uint32_t);
    far->wanted = weft_round_up(far->states + (uint64_t)size * sizeof(uint32_t), sizeof(uint64_t));
    far->cards = weft_round_up(far->wanted + ((uint64_t)size + 63) / 64 * sizeof(uint64_t), WEFT_PAGE);
}

uint64_t weft_modex_cache_front_bytes(uint32_t size)
{
    weft_modex_cache far;

    lay_out(&far, size);
    return far.cards;
}

uint64_t weft_modex_cache_bytes(uint32_t size)
{
    return weft_modex_cache_front_bytes(size) + (uint64_t)size * WEFT_PAGE;
}

void weft_modex_cache_make(weft_modex_cache *far, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of,
                           const uint32_t *local_of)
{
    far->magic = WEFT_MODEX_MAGIC;
    far->nodes = nodes;
    far->node = node;
    lay_out(far, size);
    memcpy(weft_modex_cache_at(far, far->node_of), node_of, size * sizeof(*node_of));
    memcpy(weft_modex_cache_at(far, far->local_of), local_of, size * sizeof(*local_of));
}

bool weft_modex_cache_is_sound(const weft_modex_cache *far, uint64_t bytes, uint32_t size)
{
    weft_modex_cache want;

    lay_out(&want, size);
    return bytes >= weft_modex_cache_bytes(size) && far->magic == WEFT_MODEX_MAGIC && far->size == size && far->node_of == want.node_of &&
           far->local_of == want.local_of && far->states == want.states && far->wanted == want.wanted && far->cards == want.cards;
}
