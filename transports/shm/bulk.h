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
#define WEFT_BULK_STEP 4 /* chunks claimed at a time */

typedef struct weft_bulk_flag {
    _Alignas(WEFT_LINE) _Atomic uint32_t is_lent; /* owner sets before it publishes the frame; reader clears (release) */
} weft_bulk_flag;

typedef struct weft_bulk { /* in shared memory */
    _Alignas(WEFT_LINE) _Atomic uint32_t wanted; /* owner's: wake me when a chunk comes back */
    weft_bulk_flag flags[63];
    _Alignas(WEFT_PAGE) uint8_t chunks[WEFT_BULK_COUNT][WEFT_BULK_CHUNK];
} weft_bulk;

typedef struct weft_bulk_owner { /* the owner's own view */
    weft_bulk *bulk;
    const weft_segment *segment;
    uint64_t offset;
    uint32_t window; /* chunks claimed and in use */
    uint32_t next;
} weft_bulk_owner;

/* Maps our pool; nothing is claimed yet. */
int weft_bulk_open(const weft_segment *segment, uint32_t local, weft_bulk_owner *owner);
void weft_bulk_close(weft_bulk_owner *owner);
/* A free chunk's index, or WEFT_AGAIN (then `wanted` is set), or an error. It is lent at once: give it back by weft_bulk_return. */
int weft_bulk_lend(weft_bulk_owner *owner, uint32_t *index);
/* Reader: the chunk has been read. True when its owner wants to be woken. */
static inline bool weft_bulk_return(weft_bulk *bulk, uint32_t index)
{
    atomic_store_explicit(&bulk->flags[index].is_lent, 0, memory_order_release);
    return atomic_load_explicit(&bulk->wanted, memory_order_relaxed) != 0;
}

#endif
