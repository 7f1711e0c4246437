/* SPDX-License-Identifier: BSD-3-Clause
 *
 * far: see far.h. The one place that knows the order of the parts.
 */
#include "launch/far.h"

#include <string.h>

static void lay_out(weft_far_hdr *far, uint32_t size)
{
    far->size = size;
    far->node_of = weft_round_up(sizeof(*far), WEFT_LINE);
    far->local_of = far->node_of + (uint64_t)size * sizeof(uint32_t);
    far->states = far->local_of + (uint64_t)size * sizeof(uint32_t);
    far->wanted = weft_round_up(far->states + (uint64_t)size * sizeof(uint32_t), sizeof(uint64_t));
    far->cards = weft_round_up(far->wanted + ((uint64_t)size + 63) / 64 * sizeof(uint64_t), WEFT_PAGE);
}

uint64_t weft_far_front_bytes(uint32_t size)
{
    weft_far_hdr far;

    lay_out(&far, size);
    return far.cards;
}

uint64_t weft_far_bytes(uint32_t size)
{
    return weft_far_front_bytes(size) + (uint64_t)size * WEFT_PAGE;
}

void weft_far_make(weft_far_hdr *far, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of, const uint32_t *local_of)
{
    far->magic = WEFT_FAR_MAGIC;
    far->nodes = nodes;
    far->node = node;
    lay_out(far, size);
    memcpy(weft_far_at(far, far->node_of), node_of, size * sizeof(*node_of));
    memcpy(weft_far_at(far, far->local_of), local_of, size * sizeof(*local_of));
}

bool weft_far_is_sound(const weft_far_hdr *far, uint64_t bytes, uint32_t size)
{
    weft_far_hdr want;

    lay_out(&want, size);
    return bytes >= weft_far_bytes(size) && far->magic == WEFT_FAR_MAGIC && far->size == size && far->node_of == want.node_of &&
           far->local_of == want.local_of && far->states == want.states && far->wanted == want.wanted && far->cards == want.cards;
}
