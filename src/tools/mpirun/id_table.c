/* SPDX-License-Identifier: BSD-3-Clause
 *
 * id_table: see id_table.h. An id is 1 + index in its low 32 bits and the entry's use count above them.
 */
#include "tools/mpirun/id_table.h"

#include <stdlib.h>

static uint64_t id_of(const id_table *self, uint32_t index)
{
    return (uint64_t)self->items[index].uses << 32 | (index + 1);
}

uint64_t id_table_add(id_table *self, void *pointer)
{
    uint32_t index;

    if (self->free) {
        index = self->free - 1;
        self->free = self->items[index].next;
    } else {
        if (self->count == self->capacity) {
            uint32_t capacity = self->capacity ? 2 * self->capacity : 16;
            struct id_table_entry *more = realloc(self->items, capacity * sizeof(*more));
            if (!more)
                return 0;
            self->items = more;
            self->capacity = capacity;
        }
        index = self->count++;
        self->items[index].uses = 0;
    }
    self->items[index].pointer = pointer;
    return id_of(self, index);
}

void *id_table_lookup(const id_table *self, uint64_t id)
{
    uint32_t index = (uint32_t)id - 1;

    return (uint32_t)id && index < self->count && id_of(self, index) == id ? self->items[index].pointer : NULL;
}

void *id_table_remove(id_table *self, uint64_t id)
{
    void *pointer = id_table_lookup(self, id);
    uint32_t index = (uint32_t)id - 1;

    if (!pointer)
        return NULL;
    self->items[index] = (struct id_table_entry){.uses = self->items[index].uses + 1, .next = self->free};
    self->free = index + 1;
    return pointer;
}

uint64_t id_table_at(const id_table *self, uint32_t index)
{
    return self->items[index].pointer ? id_of(self, index) : 0;
}

void id_table_close(id_table *self)
{
    free(self->items);
    *self = (id_table){0};
}
