/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_slot: copies data of the user into a slot of a node area, and out of one. Used by shmcoll.c and shmcoll_reduction.c.
 * Requires worker->lock, which a copy of more than WEFT_SHMCOLL_OFFER_BYTES offers to other threads.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_SLOT_H
#define WEFT_COLLECTIVES_SHMCOLL_SLOT_H

#include <string.h>

#include "collectives/shmcoll_csum.h"
#include "type/pack.h"

/* Packs bytes [offset, offset + bytes) of count elements of type at buf. */
static inline void weft_shmcoll_pack(weft_shmcoll *area, const weft_type *type, const void *buf, uint64_t count, uint64_t offset,
                                     uint64_t bytes, void *slot)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(area, bytes);
        weft_pack(type, buf, count, offset, bytes, slot);
    } else if (bytes == 8) {
        memcpy(slot, (const char *)buf + offset, 8);
    } else {
        weft_shmcoll_offer(area, bytes);
        weft_nt_copy_body(&area->store, slot, (const char *)buf + offset, (uint32_t)bytes);
    }
}

static inline void weft_shmcoll_unpack(weft_shmcoll *area, const weft_type *type, void *buf, uint64_t count, uint64_t offset,
                                       uint64_t bytes, const void *slot)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(area, bytes);
        weft_unpack(type, buf, count, offset, bytes, slot);
    } else if (bytes == 8) {
        memcpy((char *)buf + offset, slot, 8);
    } else {
        weft_shmcoll_offer(area, bytes);
        memcpy((char *)buf + offset, slot, bytes);
    }
}

/* Writer: packs a fragment into this member's slot, with its checksum. */
static inline void weft_shmcoll_write(weft_shmcoll *area, const weft_shmcoll_fragment *fragment, void *slot)
{
    weft_shmcoll_pack(area, fragment->type, fragment->buf, fragment->count, fragment->offset, fragment->bytes, slot);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_csum_write(area, fragment);
}

/* Reader: unpacks a fragment of another member, and checks it. */
static inline void weft_shmcoll_read(weft_shmcoll *area, const weft_shmcoll_fragment *fragment, const void *slot)
{
    weft_shmcoll_unpack(area, fragment->type, (void *)fragment->buf, fragment->count, fragment->offset, fragment->bytes, slot);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_check(area, fragment, fragment->offset);
}

#endif
