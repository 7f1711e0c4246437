/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: memory that comes and goes with messages: unexpected bodies, frames that wait. One per worker and guarded by it: no locks.
 * Sizes are rounded up to powers of two and the halves between (64, 96, 128, 192 .. 65536 bytes), so at most a third is lost;
 * larger blocks go to malloc and back at once. Blocks that come back are kept for the next taker, up to a bound.
 */
#ifndef WEFT_MEM_POOL_H
#define WEFT_MEM_POOL_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_POOL_MIN 64u
#define WEFT_POOL_MAX 65536u
#define WEFT_POOL_KEEP (4u << 20) /* bytes of free blocks that a pool keeps at most */

typedef struct weft_pool weft_pool;

typedef struct weft_pool_stats {
    uint64_t live_bytes, live_blocks; /* taken and not given back; as rounded up */
    uint64_t held_bytes, held_blocks; /* free, kept for the next taker */
    uint64_t takes, misses;           /* misses: takes that went to malloc */
} weft_pool_stats;

/* An empty pool, or NULL when out of memory. */
weft_pool *weft_pool_open(void);
/* Frees what the pool holds. Blocks still live are lost to it: the caller gives them back before. NULL is allowed. */
void weft_pool_close(weft_pool *pool);
/* At least `bytes` of memory, aligned to 16, not cleared; NULL when out of memory. bytes may be 0. */
void *weft_pool_take(weft_pool *pool, size_t bytes);
/* Gives a block back; `bytes` as in take. ptr may be NULL. */
void weft_pool_give(weft_pool *pool, void *ptr, size_t bytes);
weft_pool_stats weft_pool_look(const weft_pool *pool);

#endif
