/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_csum: CRC32C of data in the slots of a node area, from user buffer to user buffer (WEFT_CHECKSUM on any member).
 * The writer of a fragment sums the user's buffer. The reader sums its own buffer after the copy, or the slot if it reduces from there.
 * Called by shmcoll.c. Without checksums (area->csums is NULL) each fragment costs one branch.
 * Invariant: a member that finds damage completes all its operations, then returns the error: the others and the area continue.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_CSUM_H
#define WEFT_COLLECTIVES_SHMCOLL_CSUM_H

#include "collectives/shmcoll_area.h"

/* A fragment of the data that `member` writes in operation s: bytes [offset, offset + bytes), in pack order, of count elements of type at
 * buf. index: of the fragment in the member's data of s, 0 .. ranks - 1. */
typedef struct weft_shmcoll_fragment {
    uint64_t s;
    uint32_t member, index;
    const weft_type *type;
    const void *buf;
    uint64_t count, offset, bytes;
} weft_shmcoll_fragment;

/* Writer: stores the checksum. Must precede the post. */
void weft_shmcoll_csum_write(weft_shmcoll *area, const weft_shmcoll_fragment *fragment);
/* Writer: marks the fragment as tainted. Must follow csum_write and precede the post. */
void weft_shmcoll_taint(weft_shmcoll *area, const weft_shmcoll_fragment *fragment);
/* Reader: checks the fragment. `at`: offset of the fragment in the writer's vector or block, for the text. Counts damage in area->damages;
 * the first damage of a call sets area->damage. */
void weft_shmcoll_check(weft_shmcoll *area, const weft_shmcoll_fragment *fragment, uint64_t at);

#endif
