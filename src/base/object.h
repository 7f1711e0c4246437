/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object: base of every MPI object that a handle can name: datatype, operator, group, communicator, info, error handler, attribute key,
 * message, session, window, file. (Requests have a pool of their own, core/req.) One pool per kind of object and process.
 * Any thread. The pool's lock is never held across a callback.
 * Invariant: the memory of an object stays an object of its kind for the life of the process, and a freed one is reused only after 64
 * others were freed. So a stale handle, pointer or int, is recognized and never crashes.
 */
#ifndef WEFT_BASE_OBJECT_H
#define WEFT_BASE_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slot_table.h"

/* First member of each object. */
typedef struct weft_object {
    uint32_t magic;     /* its pool's while the handle is valid; 0: retired or freed */
    uint32_t refs;      /* atomic: the user's handle, and each use by others; unused if predefined */
    int32_t number;     /* the handle as an int (MPI_X_toint); atomic: another one as soon as the handle is invalid */
    uint32_t private;   /* of the pool */
} weft_object;

#define WEFT_OBJECT_CONSTANTS 4096     /* handles below are constants of the ABI (MPI 5.0 20.3) */
#define WEFT_OBJECT_ADDRESS_MIN 65536  /* no object has a lower address: the kernel maps nothing there */

/* Is this handle below all addresses? Then it is a constant, or invalid. */
static inline bool weft_object_is_constant(const void *handle) { return (uintptr_t)handle < WEFT_OBJECT_ADDRESS_MIN; }

typedef struct weft_object_pool {
    pthread_mutex_t lock;
    size_t bytes;         /* of one object */
    uint32_t magic;
    weft_slot_table made; /* all objects ever made */
    uint32_t idle;        /* freed objects, FIFO from first to last */
    uint32_t first, last; /* indices; valid if idle is not 0 */
} weft_object_pool;

/* text: four letters, unique among pools. */
#define WEFT_OBJECT_MAGIC(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))
#define WEFT_OBJECT_POOL(type, magic_) {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = sizeof(type), .magic = (magic_)}

/* An object with its base set, one reference, and all else zero; NULL: out of memory. */
void *weft_object_new(weft_object_pool *pool);
/* The last reference is gone: zeroes the object and returns it to the pool. */
void weft_object_free(weft_object_pool *pool, void *object);
/* The valid object with this number; NULL: none. */
void *weft_object_by_number(weft_object_pool *pool, int number);

static inline void weft_object_hold(weft_object *object) { __atomic_add_fetch(&object->refs, 1, __ATOMIC_RELAXED); }
/* True: it was the last reference, and the caller frees the object. */
static inline bool weft_object_drop(weft_object *object) { return __atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) == 0; }
/* Invalidates the handle; others may still use the object. The caller drops the handle's reference. False: another thread was first. */
bool weft_object_retire(weft_object *object);
/* Gives a predefined object its constant of the ABI, below WEFT_OBJECT_CONSTANTS, as its number. weft_object_by_number does not find it. */
void weft_object_set_constant(weft_object *object, int constant);

#endif
