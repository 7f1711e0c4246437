/* SPDX-License-Identifier: BSD-3-Clause
 *
 * id_table: see id_table.h. An id is 1 + index in its low 32 bits and the entry's use count above them.
 */
#include "tools/mpirun/id_table.h"

#include <stdlib.h>

static uint64_t number_of(const slots *self, uint32_t index)
{
    return (uint64_t)self->items[index].turn << 32 | (index + 1);
}

uint64_t id_table_put(slots *self, void *thing)
{
    uint32_t index;

    if (self->free) {
        index = self->free - 1;
        self->free = self->items[index].next;
    } else {
        if (self->count == self->room) {
            uint32_t room = self->room ? 2 * self->room : 16;
            struct slot *more = realloc(self->items, room * sizeof(*more));
            if (!more)
                return 0;
            self->items = more;
            self->room = room;
        }
        index = self->count++;
        self->items[index].turn = 0;
    }
    self->items[index].thing = thing;
    return number_of(self, index);
}

void *id_table_lookup(const slots *self, uint64_t number)
{
    uint32_t index = (uint32_t)number - 1;

    return (uint32_t)number && index < self->count && number_of(self, index) == number ? self->items[index].thing : NULL;
}

void *id_table_remove(slots *self, uint64_t number)
{
    void *thing = id_table_lookup(self, number);
    uint32_t index = (uint32_t)number - 1;

    if (!thing)
        return NULL;
    self->items[index] = (struct slot){.turn = self->items[index].turn + 1, .next = self->free};
    self->free = index + 1;
    return thing;
}

uint64_t id_table_add(const slots *self, uint32_t index)
{
    return self->items[index].thing ? number_of(self, index) : 0;
}

void id_table_close(slots *self)
{
    free(self->items);
    *self = (slots){0};
}
