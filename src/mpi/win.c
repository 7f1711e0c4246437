/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win: what a window tells: group, shared memory, name, error handler (MPI 5.0 12.2, 7.8, 9.3). Called by the generated entries.
 * Attributes: attribute_calls.c.
 */
#include "mpi/win.h"

#include <stdio.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/errors.h"
#include "mpi/group.h"

int weft_mpi_win_get_group(weft_win *win, MPI_Group *group)
{
    weft_group_hold(win->comm->group);
    *group = weft_group_handle(win->comm->group);
    return 0;
}

/* The member of this node with the lowest rank that has memory; NULL: none. */
static const weft_window_target *first_with_memory(const weft_window *window)
{
    for (uint32_t i = 0; i < window->size; i++)
        if (weft_window_is_mapped(&window->targets[i]) && window->targets[i].bytes)
            return &window->targets[i];
    return NULL;
}

int weft_mpi_win_shared_query(weft_win *win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
{
    const weft_window *window = win->window;
    const weft_window_target *target;
    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return weft_fail(WEFT_E_RMA_FLAVOR, "the window is dynamic: it has no memory of its own, whose address could be told");
    if (rank != MPI_PROC_NULL && (uint32_t)rank >= window->size)
        return weft_fail(WEFT_E_RANK, "argument rank is %d: neither a rank of the window (0..%u) nor MPI_PROC_NULL", rank,
                         window->size - 1);
    target = rank == MPI_PROC_NULL ? first_with_memory(window) : &window->targets[rank];
    *size = 0;
    *disp_unit = target ? (MPI_Aint)target->unit : 1;
    *(void **)baseptr = NULL;
    if (target && weft_window_is_mapped(target)) {
        *size = (MPI_Aint)target->bytes;
        *(void **)baseptr = target->mapped;
    }
    return 0;
}

int weft_mpi_win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
    weft_win *named = weft_win_of(win);
    if (!named && win != MPI_WIN_NULL)
        return weft_fail(WEFT_E_WIN, "win is %p: freed or never a window", (void *)win);
    if (named)
        weft_worker_lock(named->worker); /* another thread may rename it */
    *resultlen = snprintf(win_name, MPI_MAX_OBJECT_NAME, "%s", named ? named->traits.name : "MPI_WIN_NULL");
    if (named)
        weft_worker_unlock(named->worker);
    return 0;
}

/* A name longer than MPI_MAX_OBJECT_NAME - 1 is truncated (MPI 5.0 7.8). */
int weft_mpi_win_set_name(weft_win *win, const char *win_name)
{
    if (!win_name)
        return weft_fail(WEFT_E_ARG, "win_name is NULL");
    snprintf(win->traits.name, sizeof win->traits.name, "%s", win_name);
    return 0;
}

int weft_mpi_win_set_errhandler(weft_win *win, MPI_Errhandler errhandler) { return weft_errhandler_set(&win->traits, errhandler); }

/* The user gets a reference and must free it (MPI 5.0 9.3.4). */
int weft_mpi_win_get_errhandler(weft_win *win, MPI_Errhandler *errhandler) { return weft_errhandler_give(&win->traits, errhandler); }

int weft_mpi_win_call_errhandler(weft_win *win, int errorcode)
{
    return weft_errors_call(&win->traits, "MPI_Win_call_errhandler", errorcode);
}
