/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staging: see staging.h.
 */
#include "fortran/staging.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/macros.h"
#include "fortran/runtime.h"

typedef struct staging {
    weft_language_copy copy;
    weft_f_array array;
    char *before; /* what the copy was when it was last moved; NULL: the operation does not change it */
    size_t bytes;
    char packed[] __attribute__((aligned(16))); /* the copy; then the memory of before */
} staging;

static void move(weft_language_copy *copy, bool is_out, size_t from, size_t to)
{
    staging *self = weft_container(copy, staging, copy);
    if (!is_out || self->before)
        weft_f_array_move(&self->array, self->packed, self->before, is_out, from, to < self->bytes ? to : self->bytes);
}

static void free_staging(weft_language_copy *copy) { free(weft_container(copy, staging, copy)); }

int weft_f_stage(weft_language_copy **list, const weft_f_array *array, bool is_in, bool is_begun, void **address)
{
    size_t bytes;
    staging *self;
    *address = weft_f_buffer(array->base);
    if (!weft_f_is_sparse(array))
        return 0;
    bytes = weft_f_array_bytes(array);
    self = bytes < SIZE_MAX / 4 ? malloc(sizeof *self + bytes * (is_in ? 1 : 2)) : NULL;
    if (!self)
        return MPI_ERR_NO_MEM;
    self->copy = (weft_language_copy){.next = *list, .move = move, .free = free_staging};
    self->array = *array;
    self->bytes = bytes;
    self->before = is_in ? NULL : self->packed + bytes;
    if (is_begun)
        move(&self->copy, false, 0, bytes);
    *list = &self->copy;
    *address = self->packed;
    return 0;
}

void weft_f_stage_end(weft_language_copy *list, int rc, MPI_Request request)
{
    if (list && !rc)
        weft_language_keep(request, list);
    for (weft_language_copy *next; rc && list; list = next) {
        next = list->next;
        list->free(list);
    }
}
