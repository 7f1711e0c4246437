/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errhandler: error handler objects (MPI 5.0 9.3). An MPI_Errhandler points to a weft_errhandler or is a constant of the ABI
 * (0x140..0x143). Referenced by the user's handles and by each object on which it is set. Any thread.
 */
#ifndef WEFT_MPI_ERRHANDLER_H
#define WEFT_MPI_ERRHANDLER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/language.h"
#include "base/object.h"
#include "mpi/traits.h"

#define WEFT_ERRHANDLER_MAGIC WEFT_OBJECT_MAGIC('E', 'R', 'R', 'H')

/* MPI_Comm_errhandler_function and those of windows, files and sessions: they differ in the type of the handle only. */
typedef void weft_errhandler_function(void *handle, int *code, ...);

typedef struct MPI_ABI_Errhandler weft_errhandler;
struct MPI_ABI_Errhandler {
    weft_object object; /* refs: handles of the user, objects on which it is set */
    uint32_t handles;   /* atomic: handles of the user; 0: freed, though objects may have it */
    uint8_t kind;       /* enum weft_traits_kind of the objects on which it may be set */
    weft_errhandler_function *function;
    const weft_language *language; /* of function; NULL: C */
};

extern weft_object_pool weft_errhandler_pool;

/* A predefined handler, or one of which the user has a handle? MPI_ERRHANDLER_NULL is none. */
static inline bool weft_errhandler_is_valid(const weft_errhandler *handler)
{
    if (weft_object_is_constant(handler))
        return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT || handler == MPI_ERRORS_RETURN;
    return handler->object.magic == WEFT_ERRHANDLER_MAGIC && __atomic_load_n(&handler->handles, __ATOMIC_RELAXED);
}

/* A valid handler that may be set on objects of this kind? */
static inline bool weft_errhandler_fits(const weft_errhandler *handler, enum weft_traits_kind kind)
{
    return weft_errhandler_is_valid(handler) && (weft_object_is_constant(handler) || handler->kind == kind);
}

/* Is it user-defined, not a constant of the ABI? */
static inline bool weft_errhandler_is_user(const weft_errhandler *handler) { return !weft_object_is_constant(handler); }

void weft_errhandler_drop(weft_errhandler *handler); /* no effect on constants */
/* The initial error handler (MPI 5.0 11.2.1, 11.8.4): a constant of the ABI, by WEFT_INITIAL_ERRHANDLER. It runs before MPI_Init and after
 * MPI_Finalize, and is the first of the predefined communicators. Any time. */
weft_errhandler *weft_errhandler_initial(void);
/* The object's handler; the caller drops it. */
weft_errhandler *weft_errhandler_get(weft_traits *at);
/* MPI_X_get_errhandler: the program gets a handle, which it frees. Returns 0. */
int weft_errhandler_give(weft_traits *at, weft_errhandler **errhandler);
/* MPI_X_set_errhandler. 0, or WEFT_E_ERRHANDLER: no handler, or one for another kind of object. */
int weft_errhandler_set(weft_traits *at, weft_errhandler *handler);

#endif
