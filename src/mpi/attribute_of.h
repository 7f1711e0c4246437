/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attribute_of: where each kind of object keeps its attributes, for callers of attribute.h.
 */
#ifndef WEFT_MPI_ATTRIBUTE_OF_H
#define WEFT_MPI_ATTRIBUTE_OF_H

#include "mpi/attribute.h"
#include "mpi/comm.h"
#include "mpi/win.h"
#include "type/type.h"

static inline weft_attributes weft_attributes_of_comm(weft_comm *comm)
{
    return (weft_attributes){WEFT_KEYVAL_COMM, weft_comm_handle(comm), &comm->traits.attributes};
}

static inline weft_attributes weft_attributes_of_win(weft_win *win)
{
    return (weft_attributes){WEFT_KEYVAL_WIN, win, &win->traits.attributes};
}

extern void *weft_type_predefined_attributes[256];

/* Predefined types are in read-only memory: their lists are a table of the process. */
static inline weft_attributes weft_attributes_of_type(const weft_type *type)
{
    if (type->is_predefined)
        return (weft_attributes){WEFT_KEYVAL_TYPE, (void *)(uintptr_t)type->handle, &weft_type_predefined_attributes[type->handle & 255]};
    return (weft_attributes){WEFT_KEYVAL_TYPE, (void *)type, (void **)(uintptr_t)&type->attributes};
}

#endif
