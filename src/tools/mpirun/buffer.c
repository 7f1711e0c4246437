/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer: see buffer.h.
 */
#include "tools/mpirun/buffer.h"

#include <stdlib.h>
#include <string.h>

int buffer_add(buffer *self, const void *bytes, size_t count)
{
    if (self->start && self->start + self->used + count > self->capacity) {
        memmove(self->bytes, self->bytes + self->start, self->used);
        self->start = 0;
    }
    if (self->used + count > self->capacity) {
        size_t capacity = self->capacity ? self->capacity * 2 : 4096;
        while (capacity < self->used + count)
            capacity *= 2;
        char *more = realloc(self->bytes, capacity);
        if (!more)
            return -1;
        self->bytes = more;
        self->capacity = capacity;
    }
    if (count)
        memcpy(self->bytes + self->start + self->used, bytes, count);
    self->used += count;
    return 0;
}

void buffer_drop(buffer *self, size_t count)
{
    self->used -= count;
    self->start = self->used ? self->start + count : 0;
}

void buffer_free(buffer *self)
{
    free(self->bytes);
    *self = (buffer){0};
}
