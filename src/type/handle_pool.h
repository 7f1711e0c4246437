/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle_pool: type-stable storage for objects whose handles users hold (datatypes, operators, error handlers). Memory of a freed object stays an object
 * of the same kind with its magic cleared, so a stale handle is found out instead of read after free. Called by type.c, op.c and mpi/errhandler.c.
 * Like malloc's, its state is the process's, not a world's: it has its own lock, which is never held across a call out.
 */
#ifndef WEFT_TYPE_HANDLE_POOL_H
#define WEFT_TYPE_HANDLE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_handle_pool {
    pthread_mutex_t lock;
    size_t bytes;                    /* of one object */
    struct weft_handle_pool_item *first, *last;  /* freed ones, first in first out */
    uint32_t idle;                   /* how many those are */
} weft_handle_pool;

#define WEFT_SHELF_OF(type) {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = sizeof(type)}

/* A zeroed object; NULL when memory is out. */
void *weft_handle_pool_alloc(weft_handle_pool *shelf);
/* Zeroes the object and lays it back. */
void weft_handle_pool_free(weft_handle_pool *shelf, void *object);

#endif
