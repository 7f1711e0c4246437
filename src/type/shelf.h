/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shelf: type-stable storage for objects whose handles users hold (datatypes, operators). Memory of a freed object stays an object
 * of the same kind with its magic cleared, so a stale handle is found out instead of read after free; and every object has a number
 * (MPI_Type_toint). Called by type.c and op.c. Like malloc's, its state is the process's, not a world's: it has its own lock, which
 * is never held across a call out.
 */
#ifndef WEFT_TYPE_SHELF_H
#define WEFT_TYPE_SHELF_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_SHELF_CHUNKS 25 /* chunk c holds 64 << c objects: 2^31 in all */

typedef struct weft_shelf {
    pthread_mutex_t lock;
    size_t bytes;                    /* of one object */
    char *chunks[WEFT_SHELF_CHUNKS]; /* written once, under the lock; read without: pairs with weft_shelf_find */
    uint32_t made;                   /* objects ever made: numbers 0..made-1 */
    uint32_t first, last, idle;      /* freed ones, first in first out, so that a number rests before it serves again */
} weft_shelf;

#define WEFT_SHELF_OF(type) {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = sizeof(type)}

/* A zeroed object; NULL when memory is out. */
void *weft_shelf_take(weft_shelf *shelf);
/* Zeroes the object and lays it back. */
void weft_shelf_give(weft_shelf *shelf, void *object);
/* The object's number, 0..2^31-1: constant while it lives. */
uint32_t weft_shelf_number(const void *object);
/* The object with that number, alive or freed; NULL when there never was one. */
void *weft_shelf_find(weft_shelf *shelf, uint32_t number);

#endif
