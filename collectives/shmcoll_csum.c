/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_csum: see shmcoll_csum.h.
 */
#include "collectives/shmcoll_csum.h"

#include <stdio.h>

#include "base/crc.h"
#include "base/status.h"
#include "collectives/calls.h"
#include "type/pack.h"

#define PACK_BYTES 2048 /* bytes packed at a time, on the stack */

static struct weft_shmcoll_csum *csum_of(const weft_shmcoll *area, const weft_shmcoll_fragment *fragment)
{
    uint64_t slot = (uint64_t)fragment->member * WEFT_SHMCOLL_SLOTS + fragment->s % WEFT_SHMCOLL_SLOTS;

    return &area->csums[slot * area->ranks + fragment->index];
}

static uint32_t csum_compute(const weft_shmcoll_fragment *fragment)
{
    uint8_t packed[PACK_BYTES];
    uint32_t sum = 0;

    if (fragment->type->is_dense)
        return weft_crc32c(0, (const char *)fragment->buf + fragment->offset, fragment->bytes);
    for (uint64_t at = 0; at < fragment->bytes; at += PACK_BYTES) {
        uint64_t here = fragment->bytes - at < PACK_BYTES ? fragment->bytes - at : PACK_BYTES;
        weft_pack(fragment->type, fragment->buf, fragment->count, fragment->offset + at, here, packed);
        sum = weft_crc32c(sum, packed, here);
    }
    return sum;
}

void weft_shmcoll_csum_write(weft_shmcoll *area, const weft_shmcoll_fragment *fragment)
{
    *csum_of(area, fragment) = (struct weft_shmcoll_csum){.sum = csum_compute(fragment), .is_tainted = area->is_tainted};
}

void weft_shmcoll_taint(weft_shmcoll *area, const weft_shmcoll_fragment *fragment) { csum_of(area, fragment)->is_tainted = 1; }

static void describe_damage(char *text, size_t capacity, uint32_t difference, uint64_t at, uint64_t bytes)
{
    uint64_t bit;

    if (!weft_crc32c_find_bit(difference, bytes, &bit))
        snprintf(text, capacity, "more than one bit is wrong, somewhere in its bytes %llu to %llu", (unsigned long long)at,
                 (unsigned long long)(at + bytes) - 1);
    else if (bit >= 8 * bytes)
        snprintf(text, capacity, "the checksum is wrong, the data is intact");
    else
        snprintf(text, capacity, "bit %d of its byte %llu is wrong", (int)(bit % 8), (unsigned long long)(at + bit / 8));
}

void weft_shmcoll_check(weft_shmcoll *area, const weft_shmcoll_fragment *fragment, uint64_t at)
{
    const struct weft_shmcoll_csum *written = csum_of(area, fragment);
    uint32_t got = fragment->bytes ? csum_compute(fragment) : written->sum;
    char where[100];

    if (weft_likely(got == written->sum && !written->is_tainted))
        return;
    area->damages++;
    if (area->damage)
        return;
    if (got == written->sum)
        snprintf(where, sizeof where, "it was damaged before rank %u reduced it", weft_shmcoll_rank_of(area, fragment->member));
    else
        describe_damage(where, sizeof where, written->sum ^ got, at, fragment->bytes);
    area->damage = weft_fail(WEFT_E_CORRUPT,
                             "the data of rank %u in %s, root %u, was damaged before rank %u read it: %s.\n"
                             "(operation %llu of the node area; CRC32C %08x written, %08x read)\n"
                             "Likely failing memory, or rank %u changed its send buffer during the call.",
                             weft_shmcoll_rank_of(area, fragment->member), weft_coll_name(area->kind),
                             weft_shmcoll_rank_of(area, (uint32_t)area->root),
                             weft_shmcoll_rank_of(area, area->rank), where,
                             (unsigned long long)fragment->s, written->sum, got, weft_shmcoll_rank_of(area, fragment->member));
}
