/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shelf: see the header. A freed object is used again only when more than REST others wait, so that a handle freed twice in a row,
 * the usual mistake, is always seen.
 */
#include "type/shelf.h"

#include <stdlib.h>
#include <string.h>

#define REST 64u
#define FIRST_CHUNK 64u

typedef struct slot {
    uint32_t number, next;
    uint64_t pad; /* keeps objects at 16-byte boundaries */
} slot;

static size_t slot_bytes(const weft_shelf *shelf)
{
    return sizeof(slot) + (shelf->bytes + 15) / 16 * 16;
}

/* Chunk c begins at number FIRST_CHUNK * (2^c - 1). */
static uint32_t number_chunk(uint32_t number, uint32_t *within)
{
    uint32_t c = 31u - (uint32_t)__builtin_clz(number / FIRST_CHUNK + 1);
    *within = number - FIRST_CHUNK * ((1u << c) - 1);
    return c;
}

static slot *shelf_slot(weft_shelf *shelf, uint32_t number)
{
    uint32_t within, c = number_chunk(number, &within);
    char *chunk = __atomic_load_n(&shelf->chunks[c], __ATOMIC_ACQUIRE);
    return (slot *)(chunk + (size_t)within * slot_bytes(shelf));
}

static slot *shelf_grow(weft_shelf *shelf)
{
    uint32_t within, c = number_chunk(shelf->made, &within);
    slot *s;
    if (c >= WEFT_SHELF_CHUNKS)
        return NULL;
    if (!shelf->chunks[c]) {
        char *chunk = calloc((size_t)FIRST_CHUNK << c, slot_bytes(shelf));
        if (!chunk)
            return NULL;
        __atomic_store_n(&shelf->chunks[c], chunk, __ATOMIC_RELEASE);
    }
    s = shelf_slot(shelf, shelf->made);
    s->number = shelf->made;
    __atomic_store_n(&shelf->made, shelf->made + 1, __ATOMIC_RELEASE);
    return s;
}

void *weft_shelf_take(weft_shelf *shelf)
{
    slot *s = NULL;
    pthread_mutex_lock(&shelf->lock);
    if (shelf->idle > REST) {
        s = shelf_slot(shelf, shelf->first);
        shelf->first = s->next;
        shelf->idle--;
    } else {
        s = shelf_grow(shelf);
    }
    pthread_mutex_unlock(&shelf->lock);
    return s ? s + 1 : NULL;
}

void weft_shelf_give(weft_shelf *shelf, void *object)
{
    slot *s = (slot *)object - 1;
    memset(object, 0, shelf->bytes);
    pthread_mutex_lock(&shelf->lock);
    if (shelf->idle)
        shelf_slot(shelf, shelf->last)->next = s->number;
    else
        shelf->first = s->number;
    shelf->last = s->number;
    shelf->idle++;
    pthread_mutex_unlock(&shelf->lock);
}

uint32_t weft_shelf_number(const void *object)
{
    return ((const slot *)object - 1)->number;
}

void *weft_shelf_find(weft_shelf *shelf, uint32_t number)
{
    if (number >= __atomic_load_n(&shelf->made, __ATOMIC_ACQUIRE))
        return NULL;
    return shelf_slot(shelf, number) + 1;
}
