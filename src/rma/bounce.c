/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bounce: see bounce.h.
 */
#include "rma/bounce.h"

#include <stdlib.h>

#include "base/macros.h"
#include "mem/rank_page.h"

#define BLOCK_BYTES ((uint64_t)WEFT_BOUNCE_SLOTS * WEFT_BOUNCE_BYTES)

bool weft_bounce_serves(weft_bounce *bounce, weft_iface *iface)
{
    if (!bounce->block) {
        bounce->block = aligned_alloc(WEFT_PAGE, BLOCK_BYTES);
        bounce->free = UINT32_MAX;
    }
    if (!bounce->block || !iface->caps.mr_local)
        return bounce->block;
    if (!bounce->iface && !bounce->is_refused) {
        bounce->is_refused = iface->ops->mr_reg(iface, bounce->block, BLOCK_BYTES, 0, WEFT_MEMORY_HOST, &bounce->mr) != 0;
        bounce->iface = bounce->is_refused ? NULL : iface;
    }
    return bounce->iface == iface;
}

char *weft_bounce_take(weft_bounce *bounce)
{
    uint32_t slot;
    if (!bounce->free)
        return NULL;
    slot = (uint32_t)__builtin_ctz(bounce->free);
    bounce->free &= bounce->free - 1;
    return bounce->block + slot * WEFT_BOUNCE_BYTES;
}

void weft_bounce_give(weft_bounce *bounce, const char *slot)
{
    bounce->free |= 1u << (uint32_t)(slot - bounce->block) / WEFT_BOUNCE_BYTES;
}

void weft_bounce_close(weft_bounce *bounce)
{
    if (bounce->iface)
        bounce->iface->ops->mr_dereg(bounce->iface, &bounce->mr);
    free(bounce->block);
    *bounce = (weft_bounce){0};
}
