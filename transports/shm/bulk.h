/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk: chunks of shared memory for the bodies of longer frames. The sender (owner) allocates and fills a chunk, the reader frees it by a
 * flag in a cache line of its own. Memory is O(ranks), not O(pairs); chunks are claimed WEFT_BULK_STEP at a time on demand.
 */
#ifndef WEFT_TRANSPORTS_SHM_BULK_H
#define WEFT_TRANSPORTS_SHM_BULK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_BULK_CHUNK 16384
#define WEFT_BULK_COUNT 240
#define WEFT_BULK_SHARE 96      /* chunks that one ep may use at a time */
#define WEFT_BULK_SHARE_USUAL 32 /* ... of which it comes to use these if its reader frees them at once */
#define WEFT_BULK_ROUNDS 64     /* ... WEFT_BULK_STEP more after so many rounds through those that it has */
#define WEFT_BULK_SHARE_SURE 16 /* ... of which it may use these also if others have taken most */
#define WEFT_BULK_RESERVE 48    /* chunks that no ep takes beyond its sure ones */
#define WEFT_BULK_STEP 8        /* chunks claimed at a time */

typedef struct weft_bulk_flag {
    _Alignas(WEFT_LINE) _Atomic uint32_t is_allocated; /* set by the owner before publication; cleared by the reader (is_back()) */
} weft_bulk_flag;

typedef struct weft_bulk { /* in shared memory */
    _Alignas(WEFT_LINE) _Atomic uint32_t wanted; /* set by the owner: wake it when a chunk is freed */
    weft_bulk_flag flags[255];
    _Alignas(WEFT_PAGE) uint8_t chunks[WEFT_BULK_COUNT][WEFT_BULK_CHUNK];
} weft_bulk;

/* Chunks held by one ep, in use or free, reused in turn. A line that the reader has just read costs both sides more than an older one, but
 * the first touch of a page costs each side a fault, in some virtual machines 6 us more, and a longer round would push the program's data
 * out of the cache. So a round of STEP chunks grows to SHARE_USUAL with the data sent. An ep that finds all of its chunks unread takes more
 * at once. Where ranks share CPUs, a chunk is read long after it was written, and many eps would fill the caches: an ep takes only what it
 * needs then. The limits keep a peer that does not read from blocking others. */
typedef struct weft_bulk_share {
    uint8_t ids[WEFT_BULK_SHARE];
    uint8_t count, next; /* readers free in order: only ids[next] need be checked */
    uint8_t rounds;      /* through all chunks, since it last took one */
} weft_bulk_share;

typedef struct weft_bulk_owner { /* owner's private state */
    weft_bulk *bulk;
    const weft_segment *segment;
    uint64_t offset;
    bool is_sparing;
    uint32_t claimed;                          /* chunks that have memory */
    uint32_t held;                             /* chunks with a holder */
    weft_bulk_share *holder[WEFT_BULK_COUNT];  /* ep that holds the chunk; NULL: none */
    bool is_blocked;                           /* an allocation failed and none succeeded since */
    bool is_out_of_memory;                     /* streams do not grow any more */
} weft_bulk_owner;

/* Maps the owner's pool; claims nothing. is_sparing: no ep takes a chunk before it needs one. */
int weft_bulk_open(const weft_segment *segment, uint32_t local, bool is_sparing, weft_bulk_owner *owner);
void weft_bulk_close(weft_bulk_owner *owner);
/* Allocates a chunk for the ep of `share`. 0, WEFT_AGAIN (then `wanted` is set), or an error. The reader frees it by weft_bulk_free. */
int weft_bulk_alloc(weft_bulk_owner *owner, weft_bulk_share *share, uint32_t *index);
/* The ep is closed: releases its chunks to other eps, once their readers have freed them. */
void weft_bulk_leave(weft_bulk_owner *owner, weft_bulk_share *share);
/* Reader: frees the chunk. Pairs with is_back(). */
static inline void weft_bulk_free(weft_bulk *bulk, uint32_t index)
{
    atomic_store_explicit(&bulk->flags[index].is_allocated, 0, memory_order_release);
}

#endif
