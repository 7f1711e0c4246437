/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_create: makes and frees windows, attaches memory (MPI 5.0 12.2). Called by the generated entries; all but finalize under the worker's
 * lock. A member that cannot make its part takes part in the exchange, so that the call fails on all members.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/knob.h"
#include "base/status.h"
#include "core/callout.h"
#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/errors.h"
#include "mpi/win_epoch.h"
#include "mpi/win_info.h"
#include "rma/open.h"
#include "rma/regions.h"

weft_object_pool weft_win_pool = WEFT_OBJECT_POOL(weft_win, WEFT_WIN_MAGIC);

/* Frees what a window has, but not weft_window. */
static void win_close(weft_win *win)
{
    if (win->link.next)
        weft_list_remove(&win->link);
    if (win->comm)
        weft_comm_drop(win->comm);
    free(win->epoch.access);
    free(win->epoch.started.ranks);
    free(win->epoch.posted.ranks);
    weft_errhandler_drop(win->traits.errhandler);
    weft_object_free(&weft_win_pool, win);
}

void weft_win_drop(weft_win *win)
{
    if (weft_object_drop(&win->traits.object))
        win_close(win);
}

void weft_win_close_all(weft_mpi_world *mpi)
{
    while (!weft_list_is_empty(&mpi->windows)) {
        weft_win *win = weft_container(mpi->windows.prev, weft_win, link);
        weft_window_abandon(win->window);
        win_close(win);
    }
}

/* The local part. *win: what was made, also on an error. */
static int win_new(weft_comm *comm, const weft_window_own *own, const weft_info *info, weft_win **out)
{
    static const int flavors[] = {[WEFT_WINDOW_CREATE] = MPI_WIN_FLAVOR_CREATE, [WEFT_WINDOW_ALLOCATE] = MPI_WIN_FLAVOR_ALLOCATE,
                                  [WEFT_WINDOW_DYNAMIC] = MPI_WIN_FLAVOR_DYNAMIC, [WEFT_WINDOW_SHARED] = MPI_WIN_FLAVOR_SHARED};
    weft_win *win = weft_object_new(&weft_win_pool);
    *out = win;
    if (!win)
        return weft_fail(WEFT_E_NOMEM, "no memory for a window (%zu bytes)", sizeof *win);
    win->worker = comm->worker;
    win->traits.kind = WEFT_TRAITS_WIN;
    win->traits.errhandler = MPI_ERRORS_ARE_FATAL; /* MPI 5.0 9.3 */
    win->size = (MPI_Aint)own->bytes;
    win->disp_unit = own->unit <= INT32_MAX ? (int)own->unit : MPI_UNDEFINED; /* the attribute is an int */
    win->flavor = flavors[own->flavor];
    win->model = MPI_WIN_UNIFIED;
    win->ordering = WEFT_WIN_ORDERED;
    win->hints = weft_knob.rma_device_atomics ? WEFT_WIN_DEVICE_ATOMICS : 0;
    win->epoch.access = calloc((size_t)comm->size, sizeof *win->epoch.access);
    weft_win_set_hints(win, info, true);
    return win->epoch.access ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for the epochs of a window of %d members", comm->size);
}

static int check(const weft_comm *comm, int64_t bytes, int64_t unit, const void *base, enum weft_window_flavor flavor)
{
    if (comm->is_inter)
        return weft_fail(WEFT_E_COMM, "argument comm is an intercommunicator: a window is made on an intracommunicator");
    if (bytes < 0)
        return weft_fail(WEFT_E_SIZE, "argument size is %lld bytes: it must not be negative", (long long)bytes);
    if (unit <= 0)
        return weft_fail(WEFT_E_DISP, "argument disp_unit is %lld bytes: it must be positive", (long long)unit);
    if (flavor == WEFT_WINDOW_CREATE && bytes && !base)
        return weft_fail(WEFT_E_BASE, "argument base is NULL, but size is %lld bytes", (long long)bytes);
    return 0;
}

/* Collective. failed: an error in the arguments that the entry has found; then the other arguments are not read. */
static int make(weft_comm *comm, weft_window_own *own, int64_t unit, weft_info *info, int failed, weft_win **out)
{
    weft_win *win = NULL;
    bool is_noncontig = false;
    int rc = failed ? failed : check(comm, (int64_t)own->bytes, unit, own->base, own->flavor);
    *out = NULL;
    if (comm->is_inter)
        return rc;
    own->unit = (uint64_t)unit;
    if (!rc)
        rc = win_new(comm, own, info, &win);
    if (win)
        is_noncontig = win->hints & WEFT_WIN_NONCONTIG;
    own->wants_words = win && win->hints & WEFT_WIN_DEVICE_ATOMICS;
    own->is_unordered = win && !win->ordering;
    own->is_contiguous = own->flavor == WEFT_WINDOW_SHARED && !is_noncontig;
    rc = weft_comm_create(comm, (uint32_t)comm->size, (uint32_t)comm->rank, NULL, rc, win ? &win->comm : &(weft_comm *){NULL});
    if (!rc)
        rc = weft_window_open(win->comm->chan, &win->comm->team, own, &win->window);
    if (rc) {
        if (win)
            win_close(win);
        return rc;
    }
    weft_win_check_same(win);
    win->base = own->flavor == WEFT_WINDOW_DYNAMIC ? NULL : win->window->targets[win->window->rank].mapped;
    weft_list_append(&((weft_mpi_world *)comm->worker->world->mpi)->windows, &win->link);
    *out = win;
    return 0;
}

int weft_mpi_win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, weft_info *info, weft_comm *comm, MPI_Win *win, int failed)
{
    weft_window_own own = {.flavor = WEFT_WINDOW_CREATE, .base = base, .bytes = (uint64_t)size};
    weft_win *made;
    int rc = make(comm, &own, disp_unit, info, failed, &made);
    *win = made ? made : MPI_WIN_NULL;
    return rc;
}

static int allocate(enum weft_window_flavor flavor, MPI_Aint size, MPI_Aint disp_unit, weft_info *info, weft_comm *comm, void *baseptr,
                    MPI_Win *win, int failed)
{
    weft_window_own own = {.flavor = flavor, .bytes = (uint64_t)size};
    weft_win *made;
    int rc = make(comm, &own, disp_unit, info, failed, &made);
    *win = made ? made : MPI_WIN_NULL;
    if (!rc)
        *(void **)baseptr = made->base;
    return rc;
}

int weft_mpi_win_allocate(MPI_Aint size, MPI_Aint disp_unit, weft_info *info, weft_comm *comm, void *baseptr, MPI_Win *win, int failed)
{
    return allocate(WEFT_WINDOW_ALLOCATE, size, disp_unit, info, comm, baseptr, win, failed);
}

int weft_mpi_win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, weft_info *info, weft_comm *comm, void *baseptr, MPI_Win *win,
                                 int failed)
{
    return allocate(WEFT_WINDOW_SHARED, size, disp_unit, info, comm, baseptr, win, failed);
}

int weft_mpi_win_create_dynamic(weft_info *info, weft_comm *comm, MPI_Win *win, int failed)
{
    weft_window_own own = {.flavor = WEFT_WINDOW_DYNAMIC};
    weft_win *made;
    int rc = make(comm, &own, 1, info, failed, &made);
    *win = made ? made : MPI_WIN_NULL;
    return rc;
}

static int check_dynamic(const weft_win *win)
{
    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return 0;
    return weft_fail(WEFT_E_RMA_FLAVOR, "the window was not made by MPI_Win_create_dynamic: no memory can be attached to it");
}

int weft_mpi_win_attach(weft_win *win, void *base, MPI_Aint size)
{
    int rc = check_dynamic(win);
    if (!rc && size && !base)
        rc = weft_fail(WEFT_E_BASE, "argument base is NULL, but size is %lld bytes", (long long)size);
    return rc ? rc : weft_rma_attach(win->window, base, (uint64_t)size);
}

int weft_mpi_win_detach(weft_win *win, const void *base)
{
    int rc = check_dynamic(win);
    return rc ? rc : weft_rma_detach(win->window, base);
}

/* Runs the delete functions of the window's attributes, with the worker unlocked meanwhile. */
static int delete_attributes(weft_win *win)
{
    int rc;
    if (!weft_attributes_any(weft_attributes_of_win(win)))
        return 0;
    weft_worker_callout_begin(win->worker);
    rc = weft_attributes_delete_all(weft_attributes_of_win(win));
    weft_worker_callout_end(win->worker);
    return rc;
}

static int win_free(weft_win *win)
{
    int rc = weft_win_epoch_check_free(win);
    if (!rc)
        rc = delete_attributes(win);
    if (rc)
        return rc;
    rc = weft_window_close(win->window);
    weft_object_retire(&win->traits.object);
    weft_win_drop(win);
    return rc;
}

int weft_mpi_win_free(MPI_Win *handle)
{
    weft_win *win = weft_win_of(*handle);
    weft_worker *worker;
    int rc;
    if (!win)
        return weft_fail(WEFT_E_WIN, "win %p is not a live window", (void *)*handle);
    worker = win->worker;
    weft_worker_lock(worker);
    rc = win_free(win);
    weft_worker_unlock(worker);
    if (rc)
        return weft_errors_set_object(&win->traits, rc);
    *handle = MPI_WIN_NULL;
    return 0;
}
