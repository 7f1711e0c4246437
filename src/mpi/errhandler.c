/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errhandler: creates and frees error handlers (MPI 5.0 9.3). Called by the generated entries. comm.c sets them, errors.c runs them.
 * Invariant: a communicator's handler is never NULL and not freed while it is set. Freed handlers keep their memory
 * (base/object.h), so that a stale handle is detected.
 */
#include "mpi/errhandler.h"

#include "base/status.h"
#include "mpi/calls.h"

weft_object_pool weft_errhandler_pool = WEFT_OBJECT_POOL(weft_errhandler, WEFT_ERRHANDLER_MAGIC);

void weft_errhandler_hold(weft_errhandler *handler)
{
    if (weft_errhandler_is_user(handler))
        weft_object_hold(&handler->object);
}

void weft_errhandler_drop(weft_errhandler *handler)
{
    if (weft_errhandler_is_user(handler) && weft_object_drop(&handler->object))
        weft_object_free(&weft_errhandler_pool, handler);
}

int weft_mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    weft_errhandler *handler;
    if (!comm_errhandler_fn)
        return weft_fail(WEFT_E_ARG, "the error handler function is NULL");
    handler = weft_object_new(&weft_errhandler_pool);
    if (!handler)
        return weft_fail(WEFT_E_NOMEM, "no memory for an error handler (%zu bytes)", sizeof *handler);
    handler->comm_function = comm_errhandler_fn;
    *errhandler = handler;
    return 0;
}

int weft_mpi_errhandler_free(MPI_Errhandler *errhandler)
{
    if (!weft_errhandler_is_valid(*errhandler))
        return weft_fail(WEFT_E_ERRHANDLER, "errhandler %p is %s", (void *)*errhandler,
                         *errhandler == MPI_ERRHANDLER_NULL ? "MPI_ERRHANDLER_NULL" : "not a live error handler");
    weft_errhandler_drop(*errhandler);
    *errhandler = MPI_ERRHANDLER_NULL;
    return 0;
}
