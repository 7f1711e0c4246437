/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_cache: what the ranks of a node know of other nodes, in the segment's last part: who stands where, and the addresses that somebody here
 * has asked for. The launcher's process on the node (mpirun or its daemon) writes; a rank that wants an address that is not there yet
 * marks it and rings the launcher. All-zero but for the hdr is a valid start.
 * Layout: hdr | node of each rank | its index there | state of each address | which are wanted | a page per address.
 */
#ifndef WEFT_LAUNCH_MODEX_CACHE_H
#define WEFT_LAUNCH_MODEX_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_MODEX_MAGIC 0x46415221u

enum weft_modex_state {
    WEFT_MODEX_NONE,   /* nobody here has asked */
    WEFT_MODEX_REQUESTED, /* asked; a futex */
    WEFT_MODEX_READY,   /* there */
    WEFT_MODEX_FAILED,   /* never will be: the rank ended without telling */
};

typedef struct weft_modex_cache {
    uint32_t magic, size, nodes, node; /* ranks of the job; where we are */
    _Atomic uint64_t fenced; /* fences of the whole job that are passed; a futex on its low half */
    _Atomic uint32_t owed;   /* not 0: somebody elsewhere waits for an address of ours; who commits rings */
    uint64_t node_of, local_of, states, wanted, cards; /* offsets from this hdr */
    weft_rank_page wakeup;     /* of the launcher: chime and chime_deaf only */
} weft_modex_cache;

typedef struct weft_modex_entry {
    uint32_t bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_modex_entry;

_Static_assert(sizeof(weft_modex_entry) <= WEFT_PAGE, "one page per address");

/* Bytes for a job of so many ranks, and how many of them are claimed at the start. */
uint64_t weft_modex_cache_bytes(uint32_t size);
uint64_t weft_modex_cache_front_bytes(uint32_t size);
/* Launcher: writes hdr and tables into a fresh view of the segment's extra part. */
void weft_modex_cache_make(weft_modex_cache *far, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of, const uint32_t *local_of);
/* Whether a view of so many bytes holds one for such a job. */
bool weft_modex_cache_is_sound(const weft_modex_cache *far, uint64_t bytes, uint32_t size);

static inline void *weft_modex_cache_at(const weft_modex_cache *far, uint64_t offset)
{
    return (char *)far + offset;
}

static inline _Atomic uint32_t *weft_modex_state(const weft_modex_cache *far, uint32_t rank)
{
    return (_Atomic uint32_t *)weft_modex_cache_at(far, far->states) + rank;
}

/* Bit r % 64 of word r / 64. */
static inline _Atomic uint64_t *weft_modex_requested(const weft_modex_cache *far)
{
    return weft_modex_cache_at(far, far->wanted);
}

static inline weft_modex_entry *weft_modex_entry_of(const weft_modex_cache *far, uint32_t rank)
{
    return weft_modex_cache_at(far, far->cards + (uint64_t)rank * WEFT_PAGE);
}

#endif
