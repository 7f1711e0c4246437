/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle_pool: see the header. A freed object serves again only when more than REST others wait before it, so that a handle used once
 * more soon after its free, the usual mistake, is always seen.
 */
#include "type/handle_pool.h"

#include <stdlib.h>
#include <string.h>

#define REST 64u

/* Stands before each object, and keeps it at a 16-byte boundary. */
typedef struct weft_handle_pool_item {
    _Alignas(16) struct weft_handle_pool_item *next;
} weft_handle_pool_item;

void *weft_handle_pool_alloc(weft_handle_pool *shelf)
{
    weft_handle_pool_item *slot = NULL;
    pthread_mutex_lock(&shelf->lock);
    if (shelf->idle > REST) {
        slot = shelf->first;
        shelf->first = slot->next;
        shelf->idle--;
    }
    pthread_mutex_unlock(&shelf->lock);
    if (!slot)
        slot = calloc(1, sizeof(*slot) + shelf->bytes);
    return slot ? slot + 1 : NULL;
}

void weft_handle_pool_free(weft_handle_pool *shelf, void *object)
{
    weft_handle_pool_item *slot = (weft_handle_pool_item *)object - 1;
    memset(object, 0, shelf->bytes);
    slot->next = NULL;
    pthread_mutex_lock(&shelf->lock);
    if (shelf->idle)
        shelf->last->next = slot;
    else
        shelf->first = slot;
    shelf->last = slot;
    shelf->idle++;
    pthread_mutex_unlock(&shelf->lock);
}
