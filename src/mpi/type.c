/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type: commit, free and queries of datatypes (MPI 5.0 5.1.5 to 5.1.11; names: 7.8), elements of a status, addresses.
 * Called by the generated entries, which have checked handles, pointers and counts. Constructors: type_create.c, type_array.c.
 * Names that a program gives to predefined types are stored here, since these types are in read-only memory. They are process-wide
 * and never freed.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/status.h"
#include "type/signature.h"
#include "type/type.h"

_Static_assert(sizeof(((weft_type *)0)->name) == MPI_MAX_OBJECT_NAME, "names are as long as MPI allows");

static pthread_mutex_t names_guard = PTHREAD_MUTEX_INITIALIZER;
static char *names[256]; /* new names of predefined types, by handle & 255; NULL: not renamed */

int weft_mpi_type_commit(MPI_Datatype *datatype)
{
    weft_type *type = (weft_type *)weft_type_of(*datatype);
    if (!type)
        return weft_fail(WEFT_E_TYPE, "datatype %p is no datatype, or was freed", (void *)*datatype);
    return weft_type_commit(type);
}

int weft_mpi_type_free(MPI_Datatype *datatype)
{
    weft_type *type = (weft_type *)weft_type_of(*datatype);
    int rc;
    if (!type)
        return weft_fail(WEFT_E_TYPE, "datatype %p is no datatype, or was freed already", (void *)*datatype);
    if (type->is_predefined)
        return weft_fail(WEFT_E_TYPE, "%s is predefined: it cannot be freed", type->name);
    rc = weft_attributes_delete_all(weft_attributes_of_type(type));
    if (rc)
        return rc;
    weft_type_retire(type);
    *datatype = MPI_DATATYPE_NULL;
    return 0;
}

int weft_mpi_type_size(const weft_type *datatype, MPI_Count *size)
{
    *size = datatype->is_absent ? MPI_UNDEFINED : datatype->size;
    return 0;
}

int weft_mpi_type_get_extent(const weft_type *datatype, MPI_Count *lb, MPI_Count *extent)
{
    *lb = datatype->is_absent ? MPI_UNDEFINED : datatype->lb;
    *extent = datatype->is_absent ? MPI_UNDEFINED : datatype->extent;
    return 0;
}

int weft_mpi_type_get_true_extent(const weft_type *datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    *true_lb = datatype->is_absent ? MPI_UNDEFINED : datatype->true_lb;
    *true_extent = datatype->is_absent ? MPI_UNDEFINED : datatype->true_extent;
    return 0;
}

int weft_mpi_type_size_x(const weft_type *datatype, MPI_Count *size)
{
    return weft_mpi_type_size(datatype, size);
}

int weft_mpi_type_get_extent_x(const weft_type *datatype, MPI_Count *lb, MPI_Count *extent)
{
    return weft_mpi_type_get_extent(datatype, lb, extent);
}

int weft_mpi_type_get_true_extent_x(const weft_type *datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return weft_mpi_type_get_true_extent(datatype, true_lb, true_extent);
}

int weft_mpi_type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
    const weft_type *type = weft_type_of(datatype);
    const char *name = type ? type->name : "MPI_DATATYPE_NULL";
    if (!type && datatype != MPI_DATATYPE_NULL)
        return weft_fail(WEFT_E_TYPE, "datatype is %p: freed or never a datatype", (void *)datatype);
    pthread_mutex_lock(&names_guard);
    if (type && type->handle && names[type->handle & 255])
        name = names[type->handle & 255];
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", name);
    pthread_mutex_unlock(&names_guard);
    return 0;
}

int weft_mpi_type_set_name(const weft_type *datatype, const char *type_name)
{
    char *name = (char *)datatype->name; /* types without a constant are on the heap */
    int rc = 0;
    pthread_mutex_lock(&names_guard);
    if (datatype->handle) {
        char **renamed = &names[datatype->handle & 255];
        if (!*renamed)
            *renamed = malloc(MPI_MAX_OBJECT_NAME);
        name = *renamed;
    }
    if (name)
        snprintf(name, MPI_MAX_OBJECT_NAME, "%s", type_name);
    else
        rc = weft_fail(WEFT_E_NOMEM, "no memory for a name of %s", datatype->name);
    pthread_mutex_unlock(&names_guard);
    return rc;
}

/* MPI_Get_elements (5.1.11), exact for messages that end within an element: MPI_UNDEFINED only within a basic element. */
int weft_mpi_get_elements(const MPI_Status *status, const weft_type *datatype, MPI_Count *count)
{
    int64_t elements = weft_type_elements_in(datatype, weft_status_word(status) & ~WEFT_STATUS_CANCELLED);
    *count = elements < 0 ? MPI_UNDEFINED : elements;
    return 0;
}

int weft_mpi_get_elements_x(const MPI_Status *status, const weft_type *datatype, MPI_Count *count)
{
    return weft_mpi_get_elements(status, datatype, count);
}

int weft_mpi_get_address(const void *location, MPI_Aint *address)
{
    *address = (MPI_Aint)location;
    return 0;
}

/* Unsigned arithmetic: sums across the middle of the address space must be defined (MPI 5.0 5.1.5). */
MPI_Aint weft_mpi_aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint weft_mpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
