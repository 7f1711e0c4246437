/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refbuf: a buffer with a reference count; body of a pmix_msg. Constant once it is shared. References may be released by any thread.
 */
#ifndef WEFT_MPIRUN_REFBUF_H
#define WEFT_MPIRUN_REFBUF_H

#include <stdatomic.h>
#include <stddef.h>

#define REFBUF_MAX ((size_t)256 << 20) /* bytes of one body */

typedef struct refbuf {
    atomic_uint refs;
    size_t bytes;
    char data[];
} refbuf;

/* Both return one reference; NULL: out of memory or more than REFBUF_MAX. */
refbuf *refbuf_alloc(size_t bytes);
refbuf *refbuf_copy(const void *data, size_t bytes);
refbuf *refbuf_acquire(refbuf *self);
/* Releases a reference; NULL is allowed. Any thread. */
void refbuf_release(refbuf *self);

#endif
