/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle_pool: type-stable storage of user-visible objects (datatypes, operators, error handlers). The memory of a freed object stays
 * an object of the same type with its magic cleared, so that a stale handle is detected. Called by type.c, op.c, mpi/errhandler.c.
 * Any thread; one pool per process and type, not per world. It has its own lock, never held across a callback.
 */
#ifndef WEFT_TYPE_HANDLE_POOL_H
#define WEFT_TYPE_HANDLE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_handle_pool {
    pthread_mutex_t lock;
    size_t bytes;                               /* of one object */
    struct weft_handle_pool_item *first, *last; /* freed objects, FIFO; valid if idle is not 0 */
    uint32_t idle;                              /* number of freed objects */
} weft_handle_pool;

#define WEFT_HANDLE_POOL_OF(type) {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = sizeof(type)}

/* A zeroed object; NULL: out of memory. */
void *weft_handle_pool_alloc(weft_handle_pool *pool);
/* Zeroes the object and returns it to the pool; its memory is never unmapped. */
void weft_handle_pool_free(weft_handle_pool *pool, void *object);

#endif
