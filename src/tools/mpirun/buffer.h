/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer: byte queue; bytes are added at the end and dropped from the start. All-zero is an empty buffer.
 */
#ifndef WEFT_MPIRUN_BUFFER_H
#define WEFT_MPIRUN_BUFFER_H

#include <stddef.h>

typedef struct buffer {
    char *bytes;
    size_t start, used, capacity;
} buffer;

/* 0 or -1: out of memory, and nothing was added. */
int buffer_add(buffer *self, const void *bytes, size_t count);
void buffer_drop(buffer *self, size_t count);
void buffer_free(buffer *self);

#endif
