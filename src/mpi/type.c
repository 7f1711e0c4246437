/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type: datatype calls of MPI (MPI 5.0 chapter 5; names: 7.8) on top of src/type: constructors, queries, free, addresses, MPI_Pack.
 * Called by the generated entries, which have checked handles, pointers and counts.
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
#include "mpi/calls.h"
#include "type/pack.h"
#include "type/type.h"

_Static_assert((int)WEFT_COMBINER_NAMED == MPI_COMBINER_NAMED && (int)WEFT_COMBINER_VECTOR == MPI_COMBINER_VECTOR &&
                   (int)WEFT_COMBINER_STRUCT == MPI_COMBINER_STRUCT && (int)WEFT_COMBINER_RESIZED == MPI_COMBINER_RESIZED,
               "src/type counts combiners as the ABI does");
_Static_assert(sizeof(((weft_type *)0)->name) == MPI_MAX_OBJECT_NAME, "names are as long as MPI allows");

static pthread_mutex_t names_guard = PTHREAD_MUTEX_INITIALIZER;
static char *names[256]; /* new names of predefined types, by handle & 255; NULL: not renamed */

/* May new types be created from it? */
static int old_check(const weft_type *old)
{
    if (old->is_absent)
        return weft_fail(WEFT_E_TYPE, "oldtype is %s, which does not exist with this compiler", old->name);
    return 0;
}

int weft_mpi_type_contiguous(MPI_Count count, const weft_type *oldtype, MPI_Datatype *newtype)
{
    int rc = old_check(oldtype);
    return rc ? rc : weft_type_contiguous(count, oldtype, newtype);
}

int weft_mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const weft_type *oldtype,
                                 MPI_Datatype *newtype)
{
    int rc = old_check(oldtype);
    return rc ? rc : weft_type_vector(count, blocklength, stride, oldtype, newtype);
}

int weft_mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const weft_type *oldtype, MPI_Datatype *newtype)
{
    int64_t numbers[3] = {count, blocklength, stride}, stride_bytes;
    weft_type *type;
    int rc = old_check(oldtype);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(stride, oldtype->extent, &stride_bytes))
        return weft_fail(WEFT_E_TOOLARGE, "stride %lld times the old type's extent %lld does not fit into 63 bits", (long long)stride,
                         (long long)oldtype->extent);
    rc = weft_type_vector(count, blocklength, stride_bytes, oldtype, &type);
    if (rc)
        return rc;
    rc = weft_type_set_envelope(type, WEFT_COMBINER_VECTOR, 3, numbers, 0, NULL);
    if (rc)
        weft_type_drop(type);
    else
        *newtype = type;
    return rc;
}

int weft_mpi_type_dup(const weft_type *oldtype, MPI_Datatype *newtype)
{
    int rc = old_check(oldtype);
    return rc ? rc : weft_type_dup(oldtype, newtype);
}

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
    if (!type)
        return weft_fail(WEFT_E_TYPE, "datatype %p is no datatype, or was freed already", (void *)*datatype);
    if (type->is_predefined)
        return weft_fail(WEFT_E_TYPE, "%s is predefined: it cannot be freed", type->name);
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
    if (type && type->is_predefined && names[type->handle & 255])
        name = names[type->handle & 255];
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", name);
    pthread_mutex_unlock(&names_guard);
    return 0;
}

int weft_mpi_type_set_name(const weft_type *datatype, const char *type_name)
{
    char *name = (char *)datatype->name; /* derived types are on the heap */
    int rc = 0;
    pthread_mutex_lock(&names_guard);
    if (datatype->is_predefined) {
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

static int packed_bytes(MPI_Count count, const weft_type *type, MPI_Count *bytes)
{
    if (__builtin_mul_overflow(count, type->size, bytes))
        return weft_fail(WEFT_E_TOOLARGE, "%lld elements of %lld bytes do not fit into 63 bits", (long long)count, (long long)type->size);
    return 0;
}

/* Do `bytes` fit between position and the end? */
static int position_check(const char *what, MPI_Count size, MPI_Count position, MPI_Count bytes)
{
    if (position < 0 || position > size)
        return weft_fail(WEFT_E_ARG, "position %lld is not in 0..%lld, the size of %s", (long long)position, (long long)size, what);
    if (bytes > size - position)
        return weft_fail(WEFT_E_TRUNCATE, "%lld bytes at position %lld do not fit into the %lld bytes of %s", (long long)bytes,
                         (long long)position, (long long)size, what);
    return 0;
}

int weft_mpi_pack(const void *inbuf, MPI_Count incount, const weft_type *datatype, void *outbuf, MPI_Count outsize,
                  MPI_Count *position, weft_comm *comm)
{
    MPI_Count bytes;
    int rc = packed_bytes(incount, datatype, &bytes);
    (void)comm; /* all ranks use the same format */
    if (rc || (rc = position_check("outbuf", outsize, *position, bytes)))
        return rc;
    weft_pack(datatype, inbuf, (uint64_t)incount, 0, (uint64_t)bytes, (char *)outbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                    const weft_type *datatype, weft_comm *comm)
{
    MPI_Count bytes;
    int rc = packed_bytes(outcount, datatype, &bytes);
    (void)comm;
    if (rc || (rc = position_check("inbuf", insize, *position, bytes)))
        return rc;
    weft_unpack(datatype, outbuf, (uint64_t)outcount, 0, (uint64_t)bytes, (const char *)inbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_pack_size(MPI_Count incount, const weft_type *datatype, weft_comm *comm, MPI_Count *size)
{
    (void)comm;
    if (datatype->is_absent)
        return weft_fail(WEFT_E_TYPE, "%s does not exist with this compiler", datatype->name);
    return packed_bytes(incount, datatype, size);
}
