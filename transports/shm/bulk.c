/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk: the owner's side. See bulk.h.
 */
#include "transports/shm/bulk.h"

#include "base/status.h"

int weft_bulk_open(const weft_segment *segment, uint32_t local, weft_bulk_owner *owner)
{
    void *addr;
    int rc;
    *owner = (weft_bulk_owner){.segment = segment, .offset = segment->head->pools + local * segment->head->pool_bytes};
    rc = weft_segment_view(segment, owner->offset, sizeof *owner->bulk, &addr);
    if (rc == 0)
        owner->bulk = addr;
    return rc;
}

void weft_bulk_close(weft_bulk_owner *owner)
{
    if (owner->bulk)
        weft_segment_drop(owner->bulk, sizeof *owner->bulk);
    owner->bulk = NULL;
}

/* Round robin inside the window: the readers' lines come back in about that order. */
static bool find_free(weft_bulk_owner *owner, uint32_t *index)
{
    for (uint32_t tried = 0; tried < owner->window; tried++) {
        uint32_t i = owner->next;
        owner->next = i + 1 < owner->window ? i + 1 : 0;
        if (!atomic_load_explicit(&owner->bulk->flags[i].is_lent, memory_order_acquire)) { /* pairs with weft_bulk_return */
            *index = i;
            return true;
        }
    }
    return false;
}

static int widen(weft_bulk_owner *owner)
{
    uint64_t first = offsetof(weft_bulk, chunks) + (uint64_t)owner->window * WEFT_BULK_CHUNK;
    int rc = owner->window ? 0 : weft_segment_claim(owner->segment, owner->offset, offsetof(weft_bulk, chunks));
    if (rc == 0)
        rc = weft_segment_claim(owner->segment, owner->offset + first, WEFT_BULK_STEP * WEFT_BULK_CHUNK);
    if (rc)
        return rc;
    owner->next = owner->window;
    owner->window += WEFT_BULK_STEP;
    return 0;
}

int weft_bulk_lend(weft_bulk_owner *owner, uint32_t *index)
{
    if (!find_free(owner, index)) {
        int rc = owner->window < WEFT_BULK_COUNT ? widen(owner) : WEFT_AGAIN;
        if (rc < 0 && owner->window) /* no more memory on the machine: the chunks that we have must do */
            rc = WEFT_AGAIN;
        if (rc == WEFT_AGAIN)
            atomic_store_explicit(&owner->bulk->wanted, 1, memory_order_relaxed);
        if (rc || !find_free(owner, index))
            return rc ? rc : WEFT_AGAIN;
    }
    atomic_store_explicit(&owner->bulk->flags[*index].is_lent, 1, memory_order_relaxed);
    return 0;
}
