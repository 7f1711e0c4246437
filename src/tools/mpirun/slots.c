/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slots: see slots.h. A number is 1 + index, and above it how often that place has been used.
 */
#include "tools/mpirun/slots.h"

#include <stdlib.h>

static uint64_t number_of(const slots *self, uint32_t index)
{
    return (uint64_t)self->items[index].turn << 32 | (index + 1);
}

uint64_t slots_put(slots *self, void *thing)
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

void *slots_look(const slots *self, uint64_t number)
{
    uint32_t index = (uint32_t)number - 1;

    return (uint32_t)number && index < self->count && number_of(self, index) == number ? self->items[index].thing : NULL;
}

void *slots_pull(slots *self, uint64_t number)
{
    void *thing = slots_look(self, number);
    uint32_t index = (uint32_t)number - 1;

    if (!thing)
        return NULL;
    self->items[index] = (struct slot){.turn = self->items[index].turn + 1, .next = self->free};
    self->free = index + 1;
    return thing;
}

uint64_t slots_number(const slots *self, uint32_t index)
{
    return self->items[index].thing ? number_of(self, index) : 0;
}

void slots_close(slots *self)
{
    free(self->items);
    *self = (slots){0};
}
