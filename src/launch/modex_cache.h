/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_cache: node map of the job and the modex data of ranks on other nodes that were requested here; the segment's `extra` part.
 * Written by the launcher's process on the node (mpirun or its daemon). A rank that needs an entry sets its state to REQUESTED and its
 * bit in `requested`, and wakes the launcher by `wakeup`. All zero but the hdr and the node map is a valid initial state.
 * The same request tells the rank's stage: a rank that wants to know it sets `stages` to 0 before. An entry that is READY stays as it is.
 * Layout: hdr | node of each rank | its node-local rank | state of each entry | stage of each rank | bits of requested entries | one page
 * per entry.
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
    WEFT_MODEX_NONE,      /* not requested on this node */
    WEFT_MODEX_REQUESTED, /* requested; ranks wait on the state by futex */
    WEFT_MODEX_READY,     /* the entry is complete */
    WEFT_MODEX_FAILED,    /* final: the rank ended without a commit */
};

/* `state` of an answer: an enum weft_modex_state, and the rank's enum weft_rank_state when it was given. */
#define WEFT_MODEX_STAGE_SHIFT 8
#define WEFT_MODEX_STATE_MASK 0xffu

typedef struct weft_modex_cache {
    uint32_t magic, size, nodes, node; /* size: ranks of the job; node: index of this node */
    _Atomic uint64_t fenced; /* fences completed by the whole job; a futex on its low half */
    _Atomic uint32_t has_requests; /* not 0: another node waits for data of a rank here; a commit must then wake the launcher */
    uint64_t node_of, local_of, states, stages, requested, entries; /* offsets from the start of this struct */
    _Alignas(WEFT_LINE) weft_wakeup_sock wakeup; /* of the launcher */
} weft_modex_cache;

typedef struct weft_modex_entry {
    uint32_t bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_modex_entry;

_Static_assert(sizeof(weft_modex_entry) <= WEFT_PAGE, "one page per address");

/* Bytes for a job of `size` ranks; of these, the bytes before the entries, which the launcher claims at the start. */
uint64_t weft_modex_cache_bytes(uint32_t size);
uint64_t weft_modex_cache_front_bytes(uint32_t size);
/* Launcher: writes hdr and node map to a zeroed view of the segment's `extra` part. */
void weft_modex_cache_make(weft_modex_cache *cache, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of,
                           const uint32_t *local_of);
/* Finds a key in the `bytes` of keys and values that a rank has put: each the key with its NUL, two bytes of length, the value. Returns the
 * value and sets *length; NULL: it is not there, or what the rank wrote is damaged. */
const char *weft_modex_find(const char *modex, uint32_t bytes, const char *key, uint16_t *length);
/* True if a view of `bytes` holds a modex_cache for `size` ranks. */
bool weft_modex_cache_is_sound(const weft_modex_cache *cache, uint64_t bytes, uint32_t size);

static inline void *weft_modex_cache_at(const weft_modex_cache *cache, uint64_t offset)
{
    return (char *)cache + offset;
}

static inline _Atomic uint32_t *weft_modex_state(const weft_modex_cache *cache, uint32_t rank)
{
    return (_Atomic uint32_t *)weft_modex_cache_at(cache, cache->states) + rank;
}

/* 0: not told; else 1 + the enum weft_rank_state of a rank on another node. */
static inline _Atomic uint32_t *weft_modex_stage(const weft_modex_cache *cache, uint32_t rank)
{
    return (_Atomic uint32_t *)weft_modex_cache_at(cache, cache->stages) + rank;
}

/* The half of a 64-bit count of fences that each increment changes: the word of its futex. */
static inline void *weft_modex_futex(_Atomic uint64_t *count)
{
    return (char *)count + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0);
}

/* Bitmap of requested ranks: bit r % 64 of word r / 64. */
static inline _Atomic uint64_t *weft_modex_requested(const weft_modex_cache *cache)
{
    return weft_modex_cache_at(cache, cache->requested);
}

static inline weft_modex_entry *weft_modex_entry_of(const weft_modex_cache *cache, uint32_t rank)
{
    return weft_modex_cache_at(cache, cache->entries + (uint64_t)rank * WEFT_PAGE);
}

#endif
