/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counts: an array of counts or displacements of the caller, which has elements of 4 bytes in MPI_X and of 8 in MPI_X_c. Passed by the
 * generated entry points to their checks and to src/mpi, and in weft_layout to collectives. Not owned.
 */
#ifndef WEFT_BASE_COUNTS_H
#define WEFT_BASE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft_counts {
    const void *at;
    size_t width; /* bytes of an element */
} weft_counts;

static inline int64_t weft_counts_get(weft_counts counts, size_t index)
{
    return counts.width == 4 ? ((const int32_t *)counts.at)[index] : ((const int64_t *)counts.at)[index];
}

#endif
