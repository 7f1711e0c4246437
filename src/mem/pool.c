/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: free lists by size class over malloc. Called by p2p and core under the worker's lock.
 * Invariant: kept_bytes is the sum of the sizes of all blocks in the lists and never above WEFT_POOL_KEEP.
 */
#include "mem/pool.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/macros.h"

#define CLASSES 21 /* 64 .. 65536 bytes, with midpoints */

typedef struct block {
    struct block *next;
} block;

struct weft_pool {
    block *free[CLASSES];
    weft_pool_stats stats;
};

/* 0: 64, 1: 96, 2: 128, 3: 192, ... For 0 <= bytes <= WEFT_POOL_MAX. */
static unsigned class_of(size_t bytes)
{
    if (bytes <= WEFT_POOL_MIN)
        return 0;
    unsigned log = 63u - (unsigned)__builtin_clzll(bytes - 1); /* 2^log < bytes <= 2^(log+1) */
    return 2 * (log - 6) + (bytes <= (size_t)3 << (log - 1) ? 1 : 2);
}

static size_t class_bytes(unsigned class)
{
    return (size_t)(class % 2 ? 96u : 64u) << (class / 2);
}

weft_pool *weft_pool_open(void)
{
    return calloc(1, sizeof(weft_pool));
}

void weft_pool_close(weft_pool *pool)
{
    if (!pool)
        return;
    for (unsigned class = 0; class < CLASSES; class++)
        while (pool->free[class]) {
            block *first = pool->free[class];
            pool->free[class] = first->next;
            free(first);
        }
    free(pool);
}

void *weft_pool_alloc(weft_pool *pool, size_t bytes)
{
    bool is_large = bytes > WEFT_POOL_MAX;
    unsigned class = is_large ? 0 : class_of(bytes);
    size_t size = is_large ? bytes : class_bytes(class);
    block *first = is_large ? NULL : pool->free[class];
    pool->stats.allocs++;
    if (weft_likely(first != NULL)) {
        pool->free[class] = first->next;
        pool->stats.kept_blocks--;
        pool->stats.kept_bytes -= size;
    } else {
        first = malloc(size);
        if (!first)
            return NULL;
        pool->stats.misses++;
    }
    pool->stats.live_blocks++;
    pool->stats.live_bytes += size;
    return first;
}

void weft_pool_free(weft_pool *pool, void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    bool is_large = bytes > WEFT_POOL_MAX;
    unsigned class = is_large ? 0 : class_of(bytes);
    size_t size = is_large ? bytes : class_bytes(class);
    pool->stats.live_blocks--;
    pool->stats.live_bytes -= size;
    if (is_large || pool->stats.kept_bytes + size > WEFT_POOL_KEEP) {
        free(ptr);
        return;
    }
    block *freed = ptr;
    freed->next = pool->free[class];
    pool->free[class] = freed;
    pool->stats.kept_blocks++;
    pool->stats.kept_bytes += size;
}

weft_pool_stats weft_pool_get_stats(const weft_pool *pool)
{
    return pool->stats;
}
