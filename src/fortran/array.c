/* SPDX-License-Identifier: BSD-3-Clause
 *
 * array: see array.h. A sparse array is sent without a copy: its elements become a derived datatype of nested vectors.
 */
#include "fortran/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "fortran/runtime.h"

bool weft_f_is_sparse_deep(const weft_f_array *array)
{
    ptrdiff_t stride = 1;
    for (int d = 0; d < array->rank; d++) {
        if (array->dim[d].stride != stride)
            return true;
        stride *= array->dim[d].upper - array->dim[d].lower + 1;
    }
    return false;
}

static ptrdiff_t extent_of(const weft_f_array *array, int d)
{
    ptrdiff_t extent = array->dim[d].upper - array->dim[d].lower + 1;
    return extent > 0 ? extent : 0;
}

static ptrdiff_t stride_of(const weft_f_array *array, int d) { return array->dim[d].stride * array->span; }

static MPI_Count elements_of(const weft_f_array *array, int ranks)
{
    MPI_Count elements = 1;
    for (int d = 0; d < ranks; d++)
        elements *= extent_of(array, d);
    return elements;
}

/* Bytes from the first element to element `index` in array element order. */
static MPI_Count place_of(const weft_f_array *array, MPI_Count index)
{
    MPI_Count place = 0;
    for (int d = 0; d < array->rank; d++) {
        MPI_Count extent = extent_of(array, d);
        place += index % extent * stride_of(array, d);
        index /= extent;
    }
    return place;
}

/* Is the type one gapless stretch from displacement 0, so that items may be laid side by side? */
static bool is_dense_type(MPI_Datatype type, MPI_Count *size)
{
    MPI_Count lower, extent, true_lower, true_extent;
    return !PMPI_Type_size_c(type, size) && !PMPI_Type_get_extent_c(type, &lower, &extent) &&
           !PMPI_Type_get_true_extent_c(type, &true_lower, &true_extent) && lower == 0 && true_lower == 0 && extent == *size &&
           true_extent == *size;
}

/* Joins two types, the second at `place`, into *first; frees both parts that are not predefined. */
static int join(MPI_Datatype *first, MPI_Datatype second, MPI_Count place)
{
    MPI_Count ones[2] = {1, 1}, places[2] = {0, place};
    MPI_Datatype parts[2] = {*first, second}, made;
    int rc = PMPI_Type_create_struct_c(2, ones, places, parts, &made);
    PMPI_Type_free(first);
    PMPI_Type_free(&second);
    *first = rc ? MPI_DATATYPE_NULL : made;
    return rc;
}

/* The first n elements of the slice of dimensions 0..d: whole slices of the dimensions below, then a part of the next one. The result is
 * the caller's to free. n is at least 1. */
static int slice_type(const weft_f_array *array, int d, MPI_Count n, MPI_Datatype element, MPI_Datatype *made)
{
    MPI_Count below, whole, rest;
    MPI_Datatype inner = MPI_DATATYPE_NULL, part;
    int rc;
    if (d < 0)
        return PMPI_Type_dup(element, made);
    below = elements_of(array, d);
    whole = n / below;
    rest = n % below;
    *made = MPI_DATATYPE_NULL;
    if (whole) {
        rc = slice_type(array, d - 1, below, element, &inner);
        rc = rc ? rc : PMPI_Type_create_hvector_c(whole, 1, stride_of(array, d), inner, made);
        if (inner != MPI_DATATYPE_NULL)
            PMPI_Type_free(&inner);
        if (rc || !rest)
            return rc;
    }
    rc = slice_type(array, d - 1, rest, element, &part);
    if (rc)
        return rc;
    if (whole)
        return join(made, part, whole * stride_of(array, d));
    *made = part;
    return 0;
}

int weft_f_array_type(const weft_f_array *array, MPI_Count count, MPI_Datatype type, MPI_Datatype *made)
{
    MPI_Count size, per_element, elements, rest;
    MPI_Datatype element, tail;
    int rc;
    if (!is_dense_type(type, &size) || !size || (MPI_Count)array->bytes % size)
        return MPI_ERR_TYPE;
    per_element = (MPI_Count)array->bytes / size;
    elements = count / per_element;
    rest = count % per_element;
    if (elements + (rest != 0) > elements_of(array, array->rank))
        return MPI_ERR_COUNT;
    *made = MPI_DATATYPE_NULL;
    if (elements) {
        rc = PMPI_Type_contiguous_c(per_element, type, &element);
        rc = rc ? rc : slice_type(array, array->rank - 1, elements, element, made);
        if (!rc)
            PMPI_Type_free(&element);
    } else {
        rc = PMPI_Type_contiguous_c(rest, type, made);
        rest = 0;
    }
    if (!rc && rest) {
        rc = PMPI_Type_contiguous_c(rest, type, &tail);
        rc = rc ? rc : join(made, tail, place_of(array, elements));
    }
    return rc ? rc : PMPI_Type_commit(made);
}

bool weft_f_array_run(const weft_f_array *array, MPI_Datatype type, weft_f_run *run)
{
    bool has_stride = false;
    *run = (weft_f_run){.dims = array->rank, .stride = (MPI_Count)array->bytes};
    if (!elements_of(array, array->rank) || !is_dense_type(type, &run->size) || !run->size || (MPI_Count)array->bytes % run->size)
        return false;
    for (int d = array->rank - 1; d >= 0; d--) {
        MPI_Count extent = extent_of(array, d);
        if (extent > 1) { /* else its stride leads nowhere */
            if (has_stride && run->stride != extent * stride_of(array, d))
                break;
            run->stride = stride_of(array, d);
            has_stride = true;
        }
        run->dims = d;
    }
    run->items = elements_of(array, run->dims) * ((MPI_Count)array->bytes / run->size);
    return true;
}

int weft_f_run_type(const weft_f_array *array, MPI_Datatype type, const weft_f_run *run, MPI_Datatype *made)
{
    MPI_Datatype element, slice = MPI_DATATYPE_NULL;
    int rc = PMPI_Type_contiguous_c((MPI_Count)array->bytes / run->size, type, &element);
    if (rc)
        return rc;
    rc = slice_type(array, run->dims - 1, elements_of(array, run->dims), element, &slice);
    rc = rc ? rc : PMPI_Type_create_resized_c(slice, 0, run->stride, made);
    rc = rc ? rc : PMPI_Type_commit(made);
    PMPI_Type_free(&element);
    if (slice != MPI_DATATYPE_NULL)
        PMPI_Type_free(&slice);
    return rc;
}

int weft_f_block_open(weft_f_block *self, const weft_f_array *array, MPI_Count count, MPI_Datatype type)
{
    int rc;
    *self = (weft_f_block){weft_f_buffer(array->base), count, type, false};
    if (count <= 0 || type == MPI_DATATYPE_NULL || !weft_f_is_sparse(array))
        return 0; /* an invalid argument is reported by the call itself */
    rc = weft_f_array_type(array, count, type, &self->type);
    self->is_made = !rc;
    self->count = 1;
    return rc;
}

void weft_f_block_close(weft_f_block *self)
{
    if (self->is_made)
        PMPI_Type_free(&self->type);
}

int weft_f_item_open(weft_f_block *self, const weft_f_array *array, MPI_Datatype type)
{
    MPI_Count size;
    *self = (weft_f_block){weft_f_buffer(array->base), 1, type, false};
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_c(type, &size))
        return 0; /* reported by the call itself */
    return size <= (MPI_Count)array->bytes ? 0 : MPI_ERR_TYPE;
}

size_t weft_f_array_bytes(const weft_f_array *array) { return (size_t)elements_of(array, array->rank) * array->bytes; }

void weft_f_array_move(const weft_f_array *array, char *packed, char *before, bool is_out, size_t from, size_t to)
{
    while (from < to) {
        size_t skip = from % array->bytes, part = array->bytes - skip < to - from ? array->bytes - skip : to - from;
        char *at = (char *)array->base + place_of(array, (MPI_Count)(from / array->bytes)) + skip;
        bool is_changed = !is_out || !before || memcmp(packed + from, before + from, part) != 0;
        if (is_changed)
            memcpy(is_out ? at : packed + from, is_out ? packed + from : at, part);
        if (is_changed && before)
            memcpy(before + from, packed + from, part);
        from += part;
    }
}

int weft_f_copy_open(weft_f_copy *self, const weft_f_array *array)
{
    *self = (weft_f_copy){array, weft_f_buffer(array->base), NULL};
    if (!weft_f_is_sparse(array))
        return 0;
    self->address = self->made = malloc(weft_f_array_bytes(array) + 1);
    if (!self->made)
        return MPI_ERR_NO_MEM;
    weft_f_array_move(array, self->made, NULL, false, 0, weft_f_array_bytes(array));
    return 0;
}

void weft_f_copy_close(weft_f_copy *self, bool is_out)
{
    if (self->made && is_out)
        weft_f_array_move(self->array, self->made, NULL, true, 0, weft_f_array_bytes(self->array));
    free(self->made);
}

int weft_f_array_refuse(MPI_Comm comm, const char *function, int class)
{
    static const struct {
        int class, code;
        const char *text;
    } causes[] = {
        {MPI_ERR_BUFFER, WEFT_E_BUFFER,
         "memory that outlives the call has no gaps (MPI 5.0 3.6, 12.2): pass a whole array or its first element"},
        {MPI_ERR_COUNT, WEFT_E_COUNT, "the count is larger than the number of items in the section of the array"},
        {MPI_ERR_TYPE, WEFT_E_TYPE, "a section with gaps needs a datatype without gaps that divides its elements: pass a contiguous array"},
        {MPI_ERR_NO_MEM, WEFT_E_NOMEM, "no memory to copy a section with gaps"},
    };
    for (size_t i = 0; i < weft_count(causes); i++)
        if (causes[i].class == class)
            return weft_language_refuse(comm, function, causes[i].code, causes[i].text);
    return class; /* raised by the call that made a datatype */
}
