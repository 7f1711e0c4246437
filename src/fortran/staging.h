/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staging: copies of arrays with gaps that are buffers of a request (MPI 5.0 19.1.12), where no datatype describes them: of collectives and
 * partitioned messages. A copy lives until its request is freed (weft_language_keep); the descriptor is kept with it.
 * Invariant: an element that the operation does not change is never written: the program may use it meanwhile.
 */
#ifndef WEFT_FORTRAN_STAGING_H
#define WEFT_FORTRAN_STAGING_H

#include "base/language.h"
#include "fortran/array.h"

/* The buffer for C: that of the array, or if it has gaps of a copy, which is put in front of *list. is_in: the operation does not change
 * it. is_begun: it reads the buffer in this call, else from MPI_Start on. 0 or MPI_ERR_NO_MEM. */
int weft_f_stage(weft_language_copy **list, const weft_f_array *array, bool is_in, bool is_begun, void **address);
/* After the call: the request owns the copies; rc is not 0: they are freed. */
void weft_f_stage_end(weft_language_copy *list, int rc, MPI_Request request);

#endif
