/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_array: datatypes of parts of arrays (MPI 5.0 5.1.3 and 5.1.4), put together from vectors, structs and resized types of src/type.
 * Called by the generated entries, which have checked the handle and that no array is NULL; any thread.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "mpi/calls.h"
#include "mpi/type_local.h"

/* Replaces *type by one made of it; its reference is dropped, also on error. */
static int replace(int rc, weft_type **type, weft_type **made)
{
    weft_type_drop(*type);
    *type = rc ? NULL : *made;
    return rc;
}

static int order_check(int ndims, int order)
{
    if (ndims < 1)
        return weft_fail(WEFT_E_ARG, "ndims is %d: an array has one dimension at least", ndims);
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return weft_fail(WEFT_E_ARG, "order is %d: neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    return 0;
}

/* Index of the i-th dimension, the one that varies fastest first. */
static int dimension(int ndims, int order, int i) { return order == MPI_ORDER_C ? ndims - 1 - i : i; }

/* Gives the finished type the envelope of the constructor, and drops it. */
static int finish(int rc, weft_type *made, const weft_type *oldtype, enum weft_combiner combiner, uint64_t numbers, uint64_t large,
                  int64_t *values, MPI_Datatype *newtype)
{
    weft_type *type = NULL;
    if (!rc)
        rc = weft_type_wrap(made, oldtype, &type);
    if (made)
        weft_type_drop(made);
    if (rc) {
        free(values);
        return rc;
    }
    weft_type_set_envelope(type, combiner, numbers, 0, large, values);
    *newtype = type;
    return 0;
}

static int subarray_check(int ndims, weft_counts sizes, weft_counts subsizes, weft_counts starts)
{
    for (int i = 0; i < ndims; i++) {
        int64_t size = weft_counts_get(sizes, (size_t)i), part = weft_counts_get(subsizes, (size_t)i);
        int64_t start = weft_counts_get(starts, (size_t)i);
        if (size < 1)
            return weft_fail(WEFT_E_ARG, "array_of_sizes[%d] is %lld: it must be positive", i, (long long)size);
        if (part < 1 || part > size)
            return weft_fail(WEFT_E_ARG, "array_of_subsizes[%d] is %lld: it must be in 1..%lld, the size of the array", i,
                             (long long)part, (long long)size);
        if (start < 0 || start > size - part)
            return weft_fail(WEFT_E_ARG, "array_of_starts[%d] is %lld: it must be in 0..%lld, so that %lld of %lld elements fit", i,
                             (long long)start, (long long)(size - part), (long long)part, (long long)size);
    }
    return 0;
}

/* The subarray without its envelope: lb 0 and the extent of the whole array (equations of 5.1.3). */
static int subarray_make(int ndims, int order, weft_counts sizes, weft_counts subsizes, weft_counts starts, const weft_type *oldtype,
                         weft_type **out)
{
    int64_t span = oldtype->extent, first = 0, one = 1; /* bytes: a step of the dimension; from the array to the subarray */
    weft_type *type, *made = NULL;
    bool is_over = false;
    int rc;
    rc = weft_type_contiguous(weft_counts_get(subsizes, (size_t)dimension(ndims, order, 0)), oldtype, &type);
    for (int i = 0; i < ndims && !rc; i++) {
        size_t at = (size_t)dimension(ndims, order, i);
        int64_t skip;
        if (i)
            rc = replace(weft_type_vector(weft_counts_get(subsizes, at), 1, span, type, &made), &type, &made);
        is_over |= __builtin_mul_overflow(weft_counts_get(starts, at), span, &skip);
        is_over |= __builtin_add_overflow(first, skip, &first);
        is_over |= __builtin_mul_overflow(span, weft_counts_get(sizes, at), &span);
        if (!rc && is_over) {
            weft_type_drop(type);
            rc = weft_fail(WEFT_E_TOOLARGE, "an array of %d dimensions, array_of_sizes[%d] is %lld: its bytes do not fit into 63 bits",
                           ndims, (int)at, (long long)weft_counts_get(sizes, at));
        }
    }
    if (!rc)
        rc = replace(weft_type_hindexed(1, &one, &first, type, &made), &type, &made);
    if (!rc)
        rc = replace(weft_type_resized(type, 0, span, &made), &type, &made);
    if (!rc)
        *out = type;
    return rc;
}

int weft_mpi_type_create_subarray(int ndims, weft_counts array_of_sizes, weft_counts array_of_subsizes, weft_counts array_of_starts,
                                  int order, const weft_type *oldtype, MPI_Datatype *newtype)
{
    bool is_large = array_of_sizes.width == 8;
    uint64_t n = (uint64_t)ndims;
    weft_type *made = NULL;
    int64_t *values, *at;
    int rc = weft_type_old_check(oldtype);
    if (rc || (rc = order_check(ndims, order)) || (rc = subarray_check(ndims, array_of_sizes, array_of_subsizes, array_of_starts)))
        return rc;
    values = weft_type_values(3 * n + 2);
    if (!values)
        return WEFT_E_NOMEM;
    at = values;
    *at++ = ndims;
    if (is_large)
        *at++ = order; /* the only other int: the rest are large counts */
    at = weft_type_values_copy(at, array_of_sizes, n);
    at = weft_type_values_copy(at, array_of_subsizes, n);
    at = weft_type_values_copy(at, array_of_starts, n);
    if (!is_large)
        *at = order;
    rc = subarray_make(ndims, order, array_of_sizes, array_of_subsizes, array_of_starts, oldtype, &made);
    return finish(rc, made, oldtype, WEFT_COMBINER_SUBARRAY, is_large ? 2 : 3 * n + 2, is_large ? 3 * n : 0, values, newtype);
}

/* One dimension of a distributed array: gsize elements in blocks of `block`, distributed to `parts` processes of which this is number
 * `coordinate`. */
typedef struct distribution {
    int64_t gsize, block, parts, coordinate;
} distribution;

/* Reads and checks dimension i; block follows from the kind of distribution (5.1.4). */
static int distribution_read(int i, int64_t gsize, int distrib, int darg, int psize, distribution *d)
{
    bool is_default = darg == MPI_DISTRIBUTE_DFLT_DARG;
    if (gsize < 1)
        return weft_fail(WEFT_E_ARG, "array_of_gsizes[%d] is %lld: it must be positive", i, (long long)gsize);
    if (psize < 1)
        return weft_fail(WEFT_E_ARG, "array_of_psizes[%d] is %d: it must be positive", i, psize);
    if (distrib != MPI_DISTRIBUTE_NONE && distrib != MPI_DISTRIBUTE_BLOCK && distrib != MPI_DISTRIBUTE_CYCLIC)
        return weft_fail(WEFT_E_ARG, "array_of_distribs[%d] is %d: no MPI_DISTRIBUTE_ kind", i, distrib);
    if (distrib == MPI_DISTRIBUTE_NONE && psize != 1)
        return weft_fail(WEFT_E_ARG, "array_of_psizes[%d] is %d: the dimension is not distributed, so it must be 1", i, psize);
    if (distrib != MPI_DISTRIBUTE_NONE && !is_default && darg < 1)
        return weft_fail(WEFT_E_ARG, "array_of_dargs[%d] is %d: it must be positive", i, darg);
    if (distrib == MPI_DISTRIBUTE_BLOCK && !is_default && (int64_t)darg * psize < gsize)
        return weft_fail(WEFT_E_ARG, "array_of_dargs[%d] is %d: %d blocks of that length do not hold %lld elements", i, darg, psize,
                         (long long)gsize);
    d->gsize = gsize;
    d->parts = psize;
    if (distrib == MPI_DISTRIBUTE_NONE)
        d->block = gsize;
    else if (!is_default)
        d->block = darg;
    else
        d->block = distrib == MPI_DISTRIBUTE_BLOCK ? gsize / psize + (gsize % psize != 0) : 1;
    return 0;
}

/* cyclic() of 5.1.4: this process's blocks of one dimension, with lb 0 and the extent of the whole dimension. */
static int cyclic_make(const distribution *d, const weft_type *old, weft_type **out)
{
    int64_t blocks = d->gsize / d->block + (d->gsize % d->block != 0), count = blocks / d->parts + (d->coordinate < blocks % d->parts);
    int64_t tail = d->gsize % d->block, lengths[2] = {1, 0}, places[2], step, span;
    bool has_tail = count && tail && (blocks - 1) % d->parts == d->coordinate; /* the last block is shorter and belongs to this process */
    const weft_type *parts[2];
    weft_type *type = NULL, *made = NULL;
    int rc;
    if (__builtin_mul_overflow(d->gsize, old->extent, &span) || __builtin_mul_overflow(d->block * d->parts, old->extent, &step))
        return weft_fail(WEFT_E_TOOLARGE, "%lld elements of extent %lld do not fit into 63 bits", (long long)d->gsize,
                         (long long)old->extent);
    rc = weft_type_vector(has_tail ? count - 1 : count, d->block, step, old, &type);
    if (rc)
        return rc;
    parts[0] = type;
    parts[1] = old;
    places[0] = d->coordinate * d->block * old->extent;
    places[1] = count ? places[0] + (count - 1) * step : 0;
    lengths[0] = count ? 1 : 0;
    lengths[1] = has_tail ? tail : 0;
    rc = replace(weft_type_struct(2, lengths, places, parts, &made), &type, &made);
    if (!rc)
        rc = replace(weft_type_resized(type, 0, span, &made), &type, &made);
    if (!rc)
        *out = type;
    return rc;
}

static int darray_make(int ndims, int order, const distribution *d, const weft_type *oldtype, weft_type **out)
{
    weft_type *type = NULL, *made = NULL;
    int rc = 0;
    for (int i = 0; i < ndims && !rc; i++) {
        rc = cyclic_make(&d[dimension(ndims, order, i)], type ? type : oldtype, &made);
        if (type)
            weft_type_drop(type);
        type = rc ? NULL : made;
    }
    *out = type;
    return rc;
}

/* Reads all dimensions; the grid of processes is row-major. */
static int darray_check(int size, int rank, int ndims, weft_counts gsizes, const int *distribs, const int *dargs, const int *psizes,
                        distribution *d)
{
    int64_t all = 1, left = size, position = rank;
    int rc = 0;
    if (size < 1)
        return weft_fail(WEFT_E_ARG, "size is %d: a group has one process at least", size);
    if (rank < 0 || rank >= size)
        return weft_fail(WEFT_E_ARG, "rank is %d: not in 0..%d", rank, size - 1);
    for (int i = 0; i < ndims && !rc; i++) {
        rc = distribution_read(i, weft_counts_get(gsizes, (size_t)i), distribs[i], dargs[i], psizes[i], &d[i]);
        if (!rc && all <= size)
            all *= psizes[i];
    }
    if (!rc && all != size)
        rc = weft_fail(WEFT_E_ARG, "size is %d: array_of_psizes has a grid of %lld%s processes", size, (long long)all,
                       all > size ? " or more" : "");
    for (int i = 0; i < ndims && !rc; i++) {
        left /= psizes[i];
        d[i].coordinate = position / left;
        position %= left;
    }
    return rc;
}

/* The arguments in the order of 5.1.13; those of the large form but gsizes are ints. */
static int64_t *darray_values(int size, int rank, int ndims, weft_counts gsizes, const int *distribs, const int *dargs, const int *psizes,
                              int order)
{
    bool is_large = gsizes.width == 8;
    uint64_t n = (uint64_t)ndims;
    int64_t *values = weft_type_values(4 * n + 4), *at = values;
    if (!values)
        return NULL;
    *at++ = size;
    *at++ = rank;
    *at++ = ndims;
    if (!is_large)
        at = weft_type_values_copy(at, gsizes, n);
    at = weft_type_values_copy(at, (weft_counts){distribs, sizeof *distribs}, n);
    at = weft_type_values_copy(at, (weft_counts){dargs, sizeof *dargs}, n);
    at = weft_type_values_copy(at, (weft_counts){psizes, sizeof *psizes}, n);
    *at++ = order;
    if (is_large)
        weft_type_values_copy(at, gsizes, n);
    return values;
}

int weft_mpi_type_create_darray(int size, int rank, int ndims, weft_counts array_of_gsizes, const int *array_of_distribs,
                                const int *array_of_dargs, const int *array_of_psizes, int order, const weft_type *oldtype,
                                MPI_Datatype *newtype)
{
    bool is_large = array_of_gsizes.width == 8;
    uint64_t n = (uint64_t)ndims;
    weft_type *made = NULL;
    distribution *d;
    int64_t *values;
    int rc = weft_type_old_check(oldtype);
    if (rc || (rc = order_check(ndims, order)))
        return rc;
    d = malloc((size_t)n * sizeof *d);
    if (!d)
        return weft_fail(WEFT_E_NOMEM, "no memory for an array of %d dimensions", ndims);
    rc = darray_check(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, d);
    values = rc ? NULL : darray_values(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order);
    if (!rc)
        rc = values ? darray_make(ndims, order, d, oldtype, &made) : WEFT_E_NOMEM;
    free(d);
    return finish(rc, made, oldtype, WEFT_COMBINER_DARRAY, is_large ? 3 * n + 4 : 4 * n + 4, is_large ? n : 0, values, newtype);
}
