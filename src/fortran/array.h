/* SPDX-License-Identifier: BSD-3-Clause
 *
 * array: descriptors of choice buffers declared TYPE(*), DIMENSION(..) (MPI 5.0 19.1.5, conventions 1B and 2B). The specific procedures
 * are not BIND(C), so that the compiler passes its own descriptor: weft_language_array is gfortran's.
 * Invariant: a descriptor is read only, and not kept after the call.
 */
#ifndef WEFT_FORTRAN_ARRAY_H
#define WEFT_FORTRAN_ARRAY_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/language.h"

#define WEFT_F_RANKS WEFT_LANGUAGE_RANKS

typedef weft_language_array weft_f_array;

/* Are the elements adjacent? For two dimensions and more; see weft_f_is_sparse. */
bool weft_f_is_sparse_deep(const weft_f_array *array);

/* Has the array gaps between its elements? */
static inline bool weft_f_is_sparse(const weft_f_array *array)
{
    if (array->rank == 0)
        return false;
    if (array->dim[0].stride != 1 || array->span != (ptrdiff_t)array->bytes)
        return true;
    return array->rank > 1 && weft_f_is_sparse_deep(array);
}

/* A datatype that describes `count` items of `type` stored in the elements of a sparse array, in array element order: from array->base,
 * one item. 0: the caller frees it; else an error class, raised on no object: MPI_ERR_TYPE (the type has gaps, or is not made of whole
 * elements), MPI_ERR_COUNT (more than the array holds), MPI_ERR_NO_MEM. */
int weft_f_array_type(const weft_f_array *array, MPI_Count count, MPI_Datatype type, MPI_Datatype *made);

/* A section repeats at one stride from some dimension on: slices of the dimensions below it are runs, which stand `stride` bytes apart. A
 * run is as short as that allows. */
typedef struct weft_f_run {
    int dims;           /* of a slice */
    MPI_Count items;    /* of the datatype, in a run */
    MPI_Count size;     /* bytes of an item */
    MPI_Count stride;   /* negative: the section goes downwards */
} weft_f_run;
/* The runs of a sparse array in items of `type`. False: it has no elements, or the type has gaps or is not made of whole elements. */
bool weft_f_array_run(const weft_f_array *array, MPI_Datatype type, weft_f_run *run);
/* A datatype that is one run, whose extent is the stride: n of them from array->base + i * stride are runs i .. i + n - 1. 0: the caller
 * frees it; else MPI's error class. */
int weft_f_run_type(const weft_f_array *array, MPI_Datatype type, const weft_f_run *run, MPI_Datatype *made);

/* A choice buffer of `count` items of `type`, in one stretch of an array or in a sparse one: what C gets instead. open: 0, or the error
 * class of weft_f_array_type, and nothing to close. */
typedef struct weft_f_block {
    void *address;
    MPI_Count count;
    MPI_Datatype type;
    bool is_made; /* type is own */
} weft_f_block;
int weft_f_block_open(weft_f_block *self, const weft_f_array *array, MPI_Count count, MPI_Datatype type);
void weft_f_block_close(weft_f_block *self);

/* The same of one item, which must lie in the first element. */
int weft_f_item_open(weft_f_block *self, const weft_f_array *array, MPI_Datatype type);

/* Bytes of all elements. */
size_t weft_f_array_bytes(const weft_f_array *array);
/* Moves bytes from .. to - 1 of the elements, as if they were adjacent, from the array to `packed`, or is_out: back. before: what `packed`
 * was at the last move, which is brought up to date; bytes out of elements that have not changed since are not written; NULL: all are. */
void weft_f_array_move(const weft_f_array *array, char *packed, char *before, bool is_out, size_t from, size_t to);

/* A choice buffer of a blocking call that no datatype can describe: a sparse array is copied, and copied back. open: 0 or
 * MPI_ERR_NO_MEM. */
typedef struct weft_f_copy {
    const weft_f_array *array;
    void *address, *made; /* for C; allocated, NULL: not sparse */
} weft_f_copy;
int weft_f_copy_open(weft_f_copy *self, const weft_f_array *array);
void weft_f_copy_close(weft_f_copy *self, bool is_out);

/* Raises an error of this class on a communicator, after a sparse array could not be passed to a function. Returns the class. */
int weft_f_array_refuse(MPI_Comm comm, const char *function, int class) __attribute__((cold));

#endif
