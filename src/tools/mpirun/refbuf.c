/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refbuf: see refbuf.h.
 */
#include "tools/mpirun/refbuf.h"

#include <stdlib.h>
#include <string.h>

refbuf *refbuf_alloc(size_t bytes)
{
    refbuf *self = bytes <= REFBUF_MAX ? malloc(sizeof(*self) + bytes) : NULL;

    if (self) {
        atomic_init(&self->refs, 1);
        self->bytes = bytes;
    }
    return self;
}

refbuf *refbuf_copy(const void *data, size_t bytes)
{
    refbuf *self = refbuf_alloc(bytes);

    if (self && bytes)
        memcpy(self->data, data, bytes);
    return self;
}

refbuf *refbuf_acquire(refbuf *self)
{
    if (self)
        atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

void refbuf_release(refbuf *self)
{
    if (self && atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) == 1)
        free(self);
}
