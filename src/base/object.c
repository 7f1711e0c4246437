/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object: see object.h. A number is 4,096 + (generation << 24 | index), generation 0..126: an int of an object that was freed is
 * recognized until its memory was reused 127 times. `private` is the number of this life, also of a predefined object, whose `number` is a
 * constant; of a freed object it is the index of the next freed one, and `number` that of the next life.
 */
#include "base/object.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 64u /* freed objects that are not reused yet */
#define INDEX_BITS 24
#define INDEX_MAX ((1u << INDEX_BITS) - 1)
#define GENERATIONS 127u

static uint32_t index_of(int number) { return (uint32_t)(number - WEFT_OBJECT_CONSTANTS) & INDEX_MAX; }

static int next_number(int number)
{
    uint32_t bits = (uint32_t)(number - WEFT_OBJECT_CONSTANTS), generation = (bits >> INDEX_BITS) + 1;
    return (int)((generation % GENERATIONS) << INDEX_BITS | (bits & INDEX_MAX)) + WEFT_OBJECT_CONSTANTS;
}

/* Oldest freed object; NULL: fewer than KEPT. Requires the lock. */
static weft_object *reuse(weft_object_pool *pool)
{
    weft_object *object;
    if (pool->idle <= KEPT)
        return NULL;
    object = weft_slot_get(&pool->made, pool->first);
    pool->first = object->private;
    pool->idle--;
    object->private = (uint32_t)object->number;
    return object;
}

/* Requires the lock. */
static weft_object *make(weft_object_pool *pool)
{
    weft_object *object = pool->made.used > INDEX_MAX ? NULL : calloc(1, pool->bytes);
    uint32_t index = object ? weft_slot_add(&pool->made, object) : UINT32_MAX;
    if (index == UINT32_MAX) {
        free(object);
        return NULL;
    }
    object->number = (int32_t)index + WEFT_OBJECT_CONSTANTS;
    object->private = (uint32_t)object->number;
    return object;
}

void *weft_object_new(weft_object_pool *pool)
{
    weft_object *object;
    pthread_mutex_lock(&pool->lock);
    object = reuse(pool);
    if (!object)
        object = make(pool);
    pthread_mutex_unlock(&pool->lock);
    if (object) {
        __atomic_store_n(&object->refs, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&object->magic, pool->magic, __ATOMIC_RELEASE);
    }
    return object;
}

/* No look-up by the number of this life finds the object from now on. */
static void invalidate_number(weft_object *object)
{
    __atomic_store_n(&object->number, next_number((int)object->private), __ATOMIC_RELAXED);
}

bool weft_object_retire(weft_object *object)
{
    if (!__atomic_exchange_n(&object->magic, 0, __ATOMIC_ACQ_REL))
        return false;
    invalidate_number(object);
    return true;
}

void weft_object_set_constant(weft_object *object, int constant) { __atomic_store_n(&object->number, constant, __ATOMIC_RELAXED); }

void weft_object_free(weft_object_pool *pool, void *given)
{
    weft_object *object = given;
    uint32_t index = index_of((int)object->private);
    __atomic_store_n(&object->magic, 0, __ATOMIC_RELAXED);
    invalidate_number(object);
    memset(object + 1, 0, pool->bytes - sizeof *object);
    pthread_mutex_lock(&pool->lock);
    if (pool->idle)
        ((weft_object *)weft_slot_get(&pool->made, pool->last))->private = index;
    else
        pool->first = index;
    pool->last = index;
    pool->idle++;
    pthread_mutex_unlock(&pool->lock);
}

void *weft_object_by_number(weft_object_pool *pool, int number)
{
    weft_object *object = number < WEFT_OBJECT_CONSTANTS ? NULL : weft_slot_get(&pool->made, index_of(number));
    if (!object || __atomic_load_n(&object->number, __ATOMIC_RELAXED) != number ||
        __atomic_load_n(&object->magic, __ATOMIC_ACQUIRE) != pool->magic)
        return NULL;
    return object;
}
