/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errhandler: creates and frees error handlers, and sets them on objects (MPI 5.0 9.3). Called by the generated entries; errors.c runs
 * handlers. Invariant: an object's handler is never NULL, and not freed while it is set.
 */
#include "mpi/errhandler.h"

#include <pthread.h>

#include "base/knob.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/stage.h"

weft_object_pool weft_errhandler_pool = WEFT_OBJECT_POOL(weft_errhandler, WEFT_ERRHANDLER_MAGIC);

/* Guards traits.errhandler of all objects: raising and setting are rare. Never held across a handler. */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const kinds[] = {
    [WEFT_TRAITS_COMM] = "communicators", [WEFT_TRAITS_WIN] = "windows", [WEFT_TRAITS_FILE] = "files", [WEFT_TRAITS_SESSION] = "sessions"};

void weft_errhandler_drop(weft_errhandler *handler)
{
    if (weft_errhandler_is_user(handler) && weft_object_drop(&handler->object))
        weft_object_free(&weft_errhandler_pool, handler);
}

weft_errhandler *weft_errhandler_get(weft_traits *at)
{
    weft_errhandler *handler;
    pthread_mutex_lock(&set_lock);
    handler = at->errhandler;
    if (weft_errhandler_is_user(handler))
        weft_object_hold(&handler->object);
    pthread_mutex_unlock(&set_lock);
    return handler;
}

static int check(const weft_errhandler *handler)
{
    if (weft_errhandler_is_valid(handler))
        return 0;
    return weft_fail(WEFT_E_ERRHANDLER, "errhandler %p is %s", (const void *)handler,
                     handler == MPI_ERRHANDLER_NULL ? "MPI_ERRHANDLER_NULL" : "not an error handler, or was freed");
}

/* The program gets a handle, with a reference that the caller has. */
static MPI_Errhandler give(weft_errhandler *handler)
{
    if (weft_errhandler_is_user(handler))
        __atomic_add_fetch(&handler->handles, 1, __ATOMIC_RELAXED);
    return handler;
}

int weft_errhandler_set(weft_traits *at, weft_errhandler *handler)
{
    weft_errhandler *before;
    int rc = check(handler);
    if (rc)
        return rc;
    if (weft_errhandler_is_user(handler) && handler->kind != at->kind)
        return weft_fail(WEFT_E_ERRHANDLER, "errhandler %p is for %s, and cannot be set on %s", (void *)handler, kinds[handler->kind],
                         kinds[at->kind]);
    pthread_mutex_lock(&set_lock);
    before = at->errhandler;
    if (weft_errhandler_is_user(handler))
        weft_object_hold(&handler->object);
    at->errhandler = handler;
    pthread_mutex_unlock(&set_lock);
    weft_errhandler_drop(before);
    return 0;
}

static void load_knobs(void)
{
    if (weft_init_stage() == WEFT_STAGE_BEFORE)
        weft_knobs_load(false);
}

weft_errhandler *weft_errhandler_initial(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static weft_errhandler *const handlers[] = {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN};
    pthread_once(&once, load_knobs);
    return handlers[weft_knob.initial_errhandler];
}

static int create(enum weft_traits_kind kind, weft_errhandler_function *function, MPI_Errhandler *errhandler)
{
    weft_errhandler *handler;
    if (!function)
        return weft_fail(WEFT_E_ARG, "the error handler function is NULL");
    handler = weft_object_new(&weft_errhandler_pool);
    if (!handler)
        return weft_fail(WEFT_E_NOMEM, "no memory for an error handler (%zu bytes)", sizeof *handler);
    handler->kind = (uint8_t)kind;
    handler->function = function;
    handler->language = weft_language_take();
    *errhandler = give(handler);
    return 0;
}

int weft_mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create(WEFT_TRAITS_COMM, (weft_errhandler_function *)comm_errhandler_fn, errhandler);
}

int weft_mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create(WEFT_TRAITS_WIN, (weft_errhandler_function *)win_errhandler_fn, errhandler);
}

int weft_mpi_file_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create(WEFT_TRAITS_FILE, (weft_errhandler_function *)file_errhandler_fn, errhandler);
}

int weft_mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create(WEFT_TRAITS_SESSION, (weft_errhandler_function *)session_errhandler_fn, errhandler);
}

int weft_mpi_comm_set_errhandler(weft_comm *comm, MPI_Errhandler errhandler) { return weft_errhandler_set(&comm->traits, errhandler); }

/* The user gets a reference and must free it (MPI 5.0 9.3.4: "as if a new object"). */
int weft_mpi_comm_get_errhandler(weft_comm *comm, MPI_Errhandler *errhandler)
{
    return weft_errhandler_give(&comm->traits, errhandler);
}

int weft_errhandler_give(weft_traits *at, weft_errhandler **errhandler)
{
    *errhandler = give(weft_errhandler_get(at));
    return 0;
}

/* An object that has the handler keeps it: only as many handles are freed as the program got. */
int weft_mpi_errhandler_free(MPI_Errhandler *errhandler)
{
    weft_errhandler *handler = *errhandler;
    int rc = check(handler);
    uint32_t handles;
    if (rc)
        return rc;
    *errhandler = MPI_ERRHANDLER_NULL;
    if (!weft_errhandler_is_user(handler))
        return 0;
    handles = __atomic_load_n(&handler->handles, __ATOMIC_RELAXED);
    while (handles && !__atomic_compare_exchange_n(&handler->handles, &handles, handles - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    if (!handles)
        return weft_fail(WEFT_E_ERRHANDLER, "errhandler %p is freed already, by another thread", (void *)handler);
    weft_errhandler_drop(handler);
    return 0;
}
