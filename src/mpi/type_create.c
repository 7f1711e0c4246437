/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_create: constructors of datatypes (MPI 5.0 5.1.2, 5.1.7, 5.1.10) on top of src/type. Each records its arguments as the envelope.
 * Called by the generated entries, which have checked handles, pointers, counts and block lengths; any thread.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/type_local.h"

_Static_assert((int)WEFT_COMBINER_NAMED == MPI_COMBINER_NAMED && (int)WEFT_COMBINER_VECTOR == MPI_COMBINER_VECTOR &&
                   (int)WEFT_COMBINER_STRUCT == MPI_COMBINER_STRUCT && (int)WEFT_COMBINER_DARRAY == MPI_COMBINER_DARRAY &&
                   (int)WEFT_COMBINER_F90_INTEGER == MPI_COMBINER_F90_INTEGER && (int)WEFT_COMBINER_RESIZED == MPI_COMBINER_RESIZED,
               "src/type counts combiners as the ABI does");

/* Ends a constructor: sets the envelope of `type`, or frees the values after an error. */
static int finish(int rc, weft_type *type, enum weft_combiner combiner, uint64_t counts, uint64_t addresses, int64_t *values,
                  bool is_large, MPI_Datatype *newtype)
{
    if (rc) {
        free(values);
        return rc;
    }
    weft_type_set_arguments(type, combiner, counts, addresses, values, is_large);
    *newtype = type;
    return 0;
}

int weft_mpi_type_contiguous(MPI_Count count, const weft_type *oldtype, MPI_Datatype *newtype, bool is_large)
{
    weft_type *type = NULL;
    int rc = weft_type_old_check(oldtype);
    int64_t *values = rc ? NULL : weft_type_values(1);
    if (!values)
        return rc ? rc : WEFT_E_NOMEM;
    values[0] = count;
    rc = weft_type_contiguous(count, oldtype, &type);
    return finish(rc, type, WEFT_COMBINER_CONTIGUOUS, 1, 0, values, is_large, newtype);
}

static int vector(enum weft_combiner combiner, MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Count stride_bytes,
                  const weft_type *oldtype, MPI_Datatype *newtype, bool is_large)
{
    weft_type *type = NULL;
    int64_t *values = weft_type_values(3);
    int is_hvector = combiner == WEFT_COMBINER_HVECTOR, rc;
    if (!values)
        return WEFT_E_NOMEM;
    values[0] = count;
    values[1] = blocklength;
    values[2] = stride;
    rc = weft_type_vector(count, blocklength, stride_bytes, oldtype, &type);
    return finish(rc, type, combiner, is_hvector ? 2 : 3, is_hvector ? 1 : 0, values, is_large, newtype);
}

int weft_mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const weft_type *oldtype,
                                 MPI_Datatype *newtype, bool is_large)
{
    int rc = weft_type_old_check(oldtype);
    return rc ? rc : vector(WEFT_COMBINER_HVECTOR, count, blocklength, stride, stride, oldtype, newtype, is_large);
}

int weft_mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const weft_type *oldtype, MPI_Datatype *newtype,
                         bool is_large)
{
    int64_t stride_bytes;
    int rc = weft_type_old_check(oldtype);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(stride, oldtype->extent, &stride_bytes))
        return weft_fail(WEFT_E_TOOLARGE, "stride %lld times the old type's extent %lld does not fit into 63 bits", (long long)stride,
                         (long long)oldtype->extent);
    return vector(WEFT_COMBINER_VECTOR, count, blocklength, stride, stride_bytes, oldtype, newtype, is_large);
}

int weft_mpi_type_dup(const weft_type *oldtype, MPI_Datatype *newtype)
{
    weft_type *type;
    int rc = weft_type_old_check(oldtype);
    if (rc || (rc = weft_type_dup(oldtype, &type)))
        return rc;
    rc = weft_attributes_copy(weft_attributes_of_type(oldtype), &type->attributes);
    if (rc) {
        weft_attributes_delete_all(weft_attributes_of_type(type));
        weft_type_retire(type);
        return rc;
    }
    *newtype = type;
    return 0;
}

int weft_mpi_type_create_resized(const weft_type *oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype, bool is_large)
{
    weft_type *type = NULL;
    int rc = weft_type_old_check(oldtype);
    int64_t *values = rc ? NULL : weft_type_values(2);
    if (!values)
        return rc ? rc : WEFT_E_NOMEM;
    values[0] = lb;
    values[1] = extent;
    rc = weft_type_resized(oldtype, lb, extent, &type);
    return finish(rc, type, WEFT_COMBINER_RESIZED, 0, 2, values, is_large, newtype);
}

/* Displacements in bytes of those in extents of the old type. */
static int scaled(int64_t *bytes, const int64_t *displacements, int64_t count, const weft_type *oldtype)
{
    for (int64_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(displacements[i], oldtype->extent, &bytes[i]))
            return weft_fail(WEFT_E_TOOLARGE, "array_of_displacements[%lld] is %lld: times the old type's extent %lld it does not fit "
                             "into 63 bits", (long long)i, (long long)displacements[i], (long long)oldtype->extent);
    return 0;
}

/* A combiner of blocks that may differ in length, over one old type. Displacements are in bytes, but for INDEXED. */
static int indexed(enum weft_combiner combiner, MPI_Count count, weft_counts blocklengths, weft_counts displacements,
                   const weft_type *oldtype, MPI_Datatype *newtype)
{
    bool is_scaled = combiner == WEFT_COMBINER_INDEXED, is_large = blocklengths.width == 8;
    weft_type *type = NULL;
    uint64_t n = (uint64_t)count;
    int rc = weft_type_old_check(oldtype);
    int64_t *values = rc ? NULL : weft_type_values(2 * n + 1), *lengths, *places, *bytes;
    if (!values)
        return rc ? rc : WEFT_E_NOMEM;
    values[0] = count;
    lengths = values + 1;
    places = bytes = weft_type_values_copy(lengths, blocklengths, n);
    weft_type_values_copy(places, displacements, n);
    if (is_scaled) {
        bytes = weft_type_values(n);
        rc = bytes ? scaled(bytes, places, count, oldtype) : WEFT_E_NOMEM;
    }
    if (!rc)
        rc = weft_type_hindexed(count, lengths, bytes, oldtype, &type);
    if (is_scaled)
        free(bytes);
    return finish(rc, type, combiner, is_scaled ? 2 * n + 1 : n + 1, is_scaled ? 0 : n, values, is_large, newtype);
}

int weft_mpi_type_indexed(MPI_Count count, weft_counts array_of_blocklengths, weft_counts array_of_displacements,
                          const weft_type *oldtype, MPI_Datatype *newtype)
{
    return indexed(WEFT_COMBINER_INDEXED, count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}

int weft_mpi_type_create_hindexed(MPI_Count count, weft_counts array_of_blocklengths, weft_counts array_of_displacements,
                                  const weft_type *oldtype, MPI_Datatype *newtype)
{
    return indexed(WEFT_COMBINER_HINDEXED, count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}

/* Blocks of one length. Displacements are in bytes, but for INDEXED_BLOCK. */
static int indexed_block(enum weft_combiner combiner, MPI_Count count, MPI_Count blocklength, weft_counts displacements,
                         const weft_type *oldtype, MPI_Datatype *newtype, bool is_large)
{
    bool is_scaled = combiner == WEFT_COMBINER_INDEXED_BLOCK;
    weft_type *type = NULL;
    uint64_t n = (uint64_t)count;
    int rc = weft_type_old_check(oldtype);
    int64_t *values = rc ? NULL : weft_type_values(n + 2), *lengths, *bytes;
    if (!values)
        return rc ? rc : WEFT_E_NOMEM;
    values[0] = count;
    values[1] = blocklength;
    weft_type_values_copy(values + 2, displacements, n);
    lengths = weft_type_values(2 * n);
    if (!lengths) {
        free(values);
        return WEFT_E_NOMEM;
    }
    bytes = lengths + n;
    for (uint64_t i = 0; i < n; i++) {
        lengths[i] = blocklength;
        bytes[i] = values[2 + i];
    }
    if (is_scaled)
        rc = scaled(bytes, values + 2, count, oldtype);
    if (!rc)
        rc = weft_type_hindexed(count, lengths, bytes, oldtype, &type);
    free(lengths);
    return finish(rc, type, combiner, is_scaled ? n + 2 : 2, is_scaled ? 0 : n, values, is_large, newtype);
}

int weft_mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength, weft_counts array_of_displacements,
                                       const weft_type *oldtype, MPI_Datatype *newtype, bool is_large)
{
    return indexed_block(WEFT_COMBINER_INDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype, newtype, is_large);
}

int weft_mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, weft_counts array_of_displacements,
                                        const weft_type *oldtype, MPI_Datatype *newtype, bool is_large)
{
    return indexed_block(WEFT_COMBINER_HINDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype, newtype, is_large);
}

int weft_mpi_type_create_struct(MPI_Count count, weft_counts array_of_blocklengths, weft_counts array_of_displacements,
                                const MPI_Datatype *array_of_types, MPI_Datatype *newtype)
{
    weft_type *type = NULL;
    uint64_t n = (uint64_t)count;
    int64_t *values = weft_type_values(2 * n + 1), *places;
    const weft_type **types;
    int rc = WEFT_E_NOMEM;
    if (!values)
        return rc;
    values[0] = count;
    places = weft_type_values_copy(values + 1, array_of_blocklengths, n);
    weft_type_values_copy(places, array_of_displacements, n);
    types = malloc((size_t)(n ? n : 1) * sizeof(*types));
    if (types) {
        for (uint64_t i = 0; i < n; i++)
            types[i] = weft_type_of(array_of_types[i]);
        rc = weft_type_struct(count, values + 1, places, types, &type);
    } else {
        weft_fail(rc, "no memory for a datatype of %lld members", (long long)count);
    }
    free(types);
    return finish(rc, type, WEFT_COMBINER_STRUCT, n + 1, n, values, array_of_blocklengths.width == 8, newtype);
}
