/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attribute_calls: the calls of MPI on attributes and their keys (MPI 5.0 7.7, and the deprecated ones of 16.1). Called by the generated
 * entries without locks. Predefined attributes (9.1.2, 11.10.1, 11.10.3) are those of MPI_COMM_WORLD on every communicator.
 */
#include <limits.h>
#include <mpi.h>

#include "base/language.h"
#include "base/status.h"
#include "mpi/attribute.h"
#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/error_class.h"

void *weft_type_predefined_attributes[256]; /* by handle & 255 */

int weft_mpi_comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn, MPI_Comm_delete_attr_function *comm_delete_attr_fn,
                                int *comm_keyval, void *extra_state)
{
    return weft_keyval_create(WEFT_KEYVAL_COMM, (uintptr_t)comm_copy_attr_fn, (uintptr_t)comm_delete_attr_fn, extra_state, comm_keyval);
}

int weft_mpi_type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn, MPI_Type_delete_attr_function *type_delete_attr_fn,
                                int *type_keyval, void *extra_state)
{
    return weft_keyval_create(WEFT_KEYVAL_TYPE, (uintptr_t)type_copy_attr_fn, (uintptr_t)type_delete_attr_fn, extra_state, type_keyval);
}

int weft_mpi_win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn, MPI_Win_delete_attr_function *win_delete_attr_fn,
                               int *win_keyval, void *extra_state)
{
    return weft_keyval_create(WEFT_KEYVAL_WIN, (uintptr_t)win_copy_attr_fn, (uintptr_t)win_delete_attr_fn, extra_state, win_keyval);
}

int weft_mpi_keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state)
{
    return weft_keyval_create(WEFT_KEYVAL_COMM, (uintptr_t)copy_fn, (uintptr_t)delete_fn, extra_state, keyval);
}

int weft_mpi_comm_free_keyval(int *comm_keyval) { return weft_keyval_retire(WEFT_KEYVAL_COMM, comm_keyval); }

int weft_mpi_type_free_keyval(int *type_keyval) { return weft_keyval_retire(WEFT_KEYVAL_TYPE, type_keyval); }

int weft_mpi_win_free_keyval(int *win_keyval) { return weft_keyval_retire(WEFT_KEYVAL_WIN, win_keyval); }

int weft_mpi_keyval_free(int *keyval) { return weft_keyval_retire(WEFT_KEYVAL_COMM, keyval); }

/* A predefined attribute's value, which the program gets as a pointer to an int. False: not predefined. *flag 0: not set. */
static bool get_predefined(const weft_comm *comm, int key, void *attribute_val, int *flag)
{
    static int tag_ub = INT_MAX, io = MPI_ANY_SOURCE, host = MPI_PROC_NULL, wtime_is_global;
    static int universe, app; /* the same for all communicators of the process */
    const weft_boot *boot = comm->worker->world->boot;
    int *value;
    switch (key) {
    case MPI_TAG_UB: value = &tag_ub; break;
    case MPI_IO: value = &io; break;
    case MPI_HOST: value = &host; break;
    case MPI_WTIME_IS_GLOBAL: value = &wtime_is_global; break;
    case MPI_LASTUSEDCODE: value = &weft_error_last_code; break;
    case MPI_APPNUM:
        __atomic_store_n(&app, (int)boot->app, __ATOMIC_RELAXED);
        value = &app;
        break;
    case MPI_UNIVERSE_SIZE:
        __atomic_store_n(&universe, (int)boot->universe, __ATOMIC_RELAXED);
        value = boot->universe ? &universe : NULL;
        break;
    default: return false;
    }
    *flag = value != NULL;
    if (value)
        *(int **)attribute_val = value;
    return true;
}

int weft_mpi_comm_get_attr(weft_comm *comm, int comm_keyval, void *attribute_val, int *flag)
{
    const weft_language *language = weft_language_take();
    if (get_predefined(comm, comm_keyval, attribute_val, flag)) {
        if (*flag && language)
            *(intptr_t *)attribute_val = **(int **)attribute_val;
        return 0;
    }
    weft_language_set(language);
    return weft_attribute_get(weft_attributes_of_comm(comm), comm_keyval, attribute_val, flag);
}

int weft_mpi_comm_set_attr(weft_comm *comm, int comm_keyval, void *attribute_val)
{
    return weft_attribute_set(weft_attributes_of_comm(comm), comm_keyval, attribute_val);
}

int weft_mpi_comm_delete_attr(weft_comm *comm, int comm_keyval)
{
    return weft_attribute_delete(weft_attributes_of_comm(comm), comm_keyval);
}

int weft_mpi_attr_get(weft_comm *comm, int keyval, void *attribute_val, int *flag)
{
    return weft_mpi_comm_get_attr(comm, keyval, attribute_val, flag);
}

int weft_mpi_attr_put(weft_comm *comm, int keyval, void *attribute_val) { return weft_mpi_comm_set_attr(comm, keyval, attribute_val); }

int weft_mpi_attr_delete(weft_comm *comm, int keyval) { return weft_mpi_comm_delete_attr(comm, keyval); }

int weft_mpi_type_get_attr(const weft_type *datatype, int type_keyval, void *attribute_val, int *flag)
{
    return weft_attribute_get(weft_attributes_of_type(datatype), type_keyval, attribute_val, flag);
}

int weft_mpi_type_set_attr(const weft_type *datatype, int type_keyval, void *attribute_val)
{
    return weft_attribute_set(weft_attributes_of_type(datatype), type_keyval, attribute_val);
}

int weft_mpi_type_delete_attr(const weft_type *datatype, int type_keyval)
{
    return weft_attribute_delete(weft_attributes_of_type(datatype), type_keyval);
}

/* Predefined attributes of a window (MPI 5.0 12.2.6): base is the value itself, of the others the program gets the address in C. False: not
 * predefined. */
static bool get_predefined_of_win(weft_win *win, int key, bool in_c, void *attribute_val)
{
    void *address = NULL;
    intptr_t value = 0;
    switch (key) {
    case MPI_WIN_BASE: address = win->base; value = (intptr_t)win->base; break;
    case MPI_WIN_SIZE: address = &win->size; value = win->size; break;
    case MPI_WIN_DISP_UNIT: address = &win->disp_unit; value = win->disp_unit; break;
    case MPI_WIN_CREATE_FLAVOR: address = &win->flavor; value = win->flavor; break;
    case MPI_WIN_MODEL: address = &win->model; value = win->model; break;
    default: return false;
    }
    if (in_c)
        *(void **)attribute_val = address;
    else
        *(intptr_t *)attribute_val = value;
    return true;
}

int weft_mpi_win_get_attr(weft_win *win, int win_keyval, void *attribute_val, int *flag)
{
    const weft_language *language = weft_language_take();
    *flag = 1;
    if (get_predefined_of_win(win, win_keyval, !language, attribute_val))
        return 0;
    weft_language_set(language);
    return weft_attribute_get(weft_attributes_of_win(win), win_keyval, attribute_val, flag);
}

int weft_mpi_win_set_attr(weft_win *win, int win_keyval, void *attribute_val)
{
    return weft_attribute_set(weft_attributes_of_win(win), win_keyval, attribute_val);
}

int weft_mpi_win_delete_attr(weft_win *win, int win_keyval)
{
    return weft_attribute_delete(weft_attributes_of_win(win), win_keyval);
}
