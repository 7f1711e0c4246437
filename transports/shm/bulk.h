/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk: chunks of shared memory that a rank lends, filled, to the readers of its longer frames; each goes back by a flag in a line of
 * its own. Memory is O(ranks), not O(pairs); chunks are claimed a few at a time as traffic asks for more.
 */
#ifndef WEFT_TRANSPORTS_SHM_BULK_H
#define WEFT_TRANSPORTS_SHM_BULK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_BULK_CHUNK 32768
#define WEFT_BULK_COUNT 60
#define WEFT_BULK_SHARE 8 /* chunks that one ep may have out */
#define WEFT_BULK_STEP 4  /* chunks claimed at a time */

typedef struct weft_bulk_flag {
    _Alignas(WEFT_LINE) _Atomic uint32_t is_lent; /* owner sets before it publishes the frame; reader clears (release) */
} weft_bulk_flag;

typedef struct weft_bulk { /* in shared memory */
    _Alignas(WEFT_LINE) _Atomic uint32_t wanted; /* owner's: wake me when a chunk comes back */
    weft_bulk_flag flags[63];
    _Alignas(WEFT_PAGE) uint8_t chunks[WEFT_BULK_COUNT][WEFT_BULK_CHUNK];
} weft_bulk;

/* The chunks that one ep has out or had back: it uses its own again first, whose lines both sides still have in their caches, and
 * it cannot take more than its share: a neighbour that does not read holds up nobody else. */
typedef struct weft_bulk_share {
    uint8_t ids[WEFT_BULK_SHARE];
    uint8_t count, next; /* readers give back in order: only ids[next] need be looked at */
} weft_bulk_share;

typedef struct weft_bulk_owner { /* the owner's own view */
    weft_bulk *bulk;
    const weft_segment *segment;
    uint64_t offset;
    uint32_t claimed;                          /* chunks that have memory */
    weft_bulk_share *holder[WEFT_BULK_COUNT];  /* NULL: nobody's */
    bool is_blocked;                           /* a chunk was refused and none was had since */
} weft_bulk_owner;

/* Maps our pool; nothing is claimed yet. */
int weft_bulk_open(const weft_segment *segment, uint32_t local, weft_bulk_owner *owner);
void weft_bulk_close(weft_bulk_owner *owner);
/* A free chunk's index for the ep of this share, or WEFT_AGAIN (then `wanted` is set), or an error. It is lent at once: the reader
 * gives it back by weft_bulk_free. */
int weft_bulk_alloc(weft_bulk_owner *owner, weft_bulk_share *share, uint32_t *index);
/* The ep goes: its chunks are anybody's once their readers gave them back. */
void weft_bulk_leave(weft_bulk_owner *owner, weft_bulk_share *share);
/* Reader: the chunk has been read. */
static inline void weft_bulk_free(weft_bulk *bulk, uint32_t index)
{
    atomic_store_explicit(&bulk->flags[index].is_lent, 0, memory_order_release);
}

#endif
