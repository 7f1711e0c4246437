/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: choice buffers of one block per rank (MPI 5.0 6.5 to 6.8, 8.6): a block begins at a displacement, which counts in the elements of
 * the array as if they were adjacent (19.1.12). A sparse array that repeats at one stride is passed as it is: an item is a run of it
 * (weft_f_array_run), and counts and displacements count runs. Where they do not divide by a run, or no datatype describes the runs, the
 * array is copied.
 */
#ifndef WEFT_FORTRAN_BLOCKS_H
#define WEFT_FORTRAN_BLOCKS_H

#include "fortran/array.h"

/* How the arguments address the blocks. */
typedef struct weft_f_layout {
    const void *counts; /* int or MPI_Count: one for each block, or one for all */
    const void *displs; /* int or MPI_Aint, in items, in bytes where each block has its own datatype; NULL: blocks are adjacent */
    size_t count_bytes, displ_bytes; /* of one count and of one displacement */
    int number;                      /* of counts */
    MPI_Datatype type;               /* of all blocks */
    const MPI_Datatype *types;       /* of each block; NULL: type */
    bool is_ignored;                 /* this rank is not the root: nothing of this is read */
} weft_f_layout;

/* What C gets instead; the layout must outlive it. */
typedef struct weft_f_blocks {
    void *address;
    const void *counts, *displs;
    const MPI_Datatype *types; /* one, or one for each block */
    const weft_f_layout *given;
    struct weft_f_numbers *numbers; /* translated counts, displacements and datatypes; NULL: the given ones */
    weft_f_copy copy;
} weft_f_blocks;

/* Of a blocking call. 0 or MPI_ERR_NO_MEM. */
int weft_f_blocks_open(weft_f_blocks *self, const weft_f_array *array, const weft_f_layout *layout);
/* Of a call that makes a request: the copy, or the translated numbers, are put in front of *list (staging.h, also for is_in, is_begun). */
int weft_f_blocks_stage(weft_f_blocks *self, const weft_f_array *array, const weft_f_layout *layout, weft_language_copy **list, bool is_in,
                        bool is_begun);
/* After either, before weft_f_stage_end. is_out: the call has changed the buffer. */
void weft_f_blocks_close(weft_f_blocks *self, bool is_out);

#endif
