/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: allocator for per-message memory: bodies of unexpected messages, pending frames. One per worker; requires worker->lock.
 * Size classes are powers of two and the midpoints between (64, 96, 128, 192 .. 65536 bytes); at most a third of a block is unused.
 * Larger blocks go straight to malloc and free. Freed blocks are kept for reuse, up to WEFT_POOL_KEEP.
 */
#ifndef WEFT_MEM_POOL_H
#define WEFT_MEM_POOL_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_POOL_MIN 64u
#define WEFT_POOL_MAX 65536u
#define WEFT_POOL_KEEP (4u << 20) /* upper bound of kept_bytes */

typedef struct weft_pool weft_pool;

typedef struct weft_pool_stats {
    uint64_t live_bytes, live_blocks; /* allocated; as rounded up */
    uint64_t kept_bytes, kept_blocks; /* free, kept for reuse */
    uint64_t allocs, misses;           /* allocations; those that called malloc */
} weft_pool_stats;

/* Creates an empty pool; NULL when out of memory. */
weft_pool *weft_pool_open(void);
/* Frees the pool and its free blocks. The caller must have given all blocks back; live ones leak. pool may be NULL. */
void weft_pool_close(weft_pool *pool);
/* Allocates at least `bytes`, aligned to 16, not zeroed; NULL when out of memory. bytes may be 0. */
void *weft_pool_alloc(weft_pool *pool, size_t bytes);
/* Frees a block; `bytes` must be those of the allocation. ptr may be NULL. */
void weft_pool_free(weft_pool *pool, void *ptr, size_t bytes);
weft_pool_stats weft_pool_get_stats(const weft_pool *pool);

#endif
