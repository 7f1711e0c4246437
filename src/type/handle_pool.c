/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle_pool: see handle_pool.h. A freed object is reused only after more than REST others were freed, so that a use of a handle
 * shortly after its free is always detected.
 */
#include "type/handle_pool.h"

#include <stdlib.h>
#include <string.h>

#define REST 64u

/* Header before each object; keeps the object 16-byte aligned. */
typedef struct weft_handle_pool_item {
    _Alignas(16) struct weft_handle_pool_item *next;
} weft_handle_pool_item;

void *weft_handle_pool_alloc(weft_handle_pool *pool)
{
    weft_handle_pool_item *slot = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle > REST) {
        slot = pool->first;
        pool->first = slot->next;
        pool->idle--;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!slot)
        slot = calloc(1, sizeof(*slot) + pool->bytes);
    return slot ? slot + 1 : NULL;
}

void weft_handle_pool_free(weft_handle_pool *pool, void *object)
{
    weft_handle_pool_item *slot = (weft_handle_pool_item *)object - 1;
    memset(object, 0, pool->bytes);
    slot->next = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle)
        pool->last->next = slot;
    else
        pool->first = slot;
    pool->last = slot;
    pool->idle++;
    pthread_mutex_unlock(&pool->lock);
}
