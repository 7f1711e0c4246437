/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errhandler: error handler objects. An MPI_Errhandler points to a weft_errhandler or is a constant of the ABI (0x140..0x143).
 * Referenced by the user's handle and by each communicator that uses it. Counts are atomic: objects of different workers may
 * share a handler.
 */
#ifndef WEFT_MPI_ERRHANDLER_H
#define WEFT_MPI_ERRHANDLER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/object.h"

#define WEFT_ERRHANDLER_MAGIC WEFT_OBJECT_MAGIC('E', 'R', 'R', 'H')

typedef struct MPI_ABI_Errhandler weft_errhandler;
struct MPI_ABI_Errhandler {
    weft_object object; /* refs: user's handle, objects on which it is set */
    MPI_Comm_errhandler_function *comm_function;
};

/* May this handle be set on a communicator? MPI_ERRHANDLER_NULL may not. */
static inline bool weft_errhandler_is_valid(const weft_errhandler *handler)
{
    if (weft_object_is_constant(handler))
        return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT || handler == MPI_ERRORS_RETURN;
    return handler->object.magic == WEFT_ERRHANDLER_MAGIC;
}

/* Is it user-defined, not a constant of the ABI? */
static inline bool weft_errhandler_is_user(const weft_errhandler *handler) { return !weft_object_is_constant(handler); }

extern weft_object_pool weft_errhandler_pool;
void weft_errhandler_hold(weft_errhandler *handler); /* no effect on constants */
void weft_errhandler_drop(weft_errhandler *handler);

#endif
