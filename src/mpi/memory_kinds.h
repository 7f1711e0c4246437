/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory_kinds: memory allocation kinds (MPI 5.0 11.4.3), the values of the info key mpi_memory_alloc_kinds. Called by session.c and
 * comm_info.c; any thread.
 */
#ifndef WEFT_MPI_MEMORY_KINDS_H
#define WEFT_MPI_MEMORY_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/info.h"

/* The supported kinds: "mpi" with each restrictor, "system", and what is supported of `requested` (comma separated, as the program wrote
 * it; NULL: what mpirun --memory-alloc-kinds or WEFT_MEMORY_ALLOC_KINDS asked for). */
void weft_memory_kinds(const char *requested, char kinds[WEFT_INFO_VALUE_BYTES]);
/* Are all elements of a list supported? An empty list is. mpi_assert_memory_alloc_kinds is ignored unless they are. */
bool weft_memory_kinds_known(const char *list);
/* Keeps a list for the life of the process, so that objects refer to it by a small number; equal lists share one. 0: too many, or no
 * memory. */
uint8_t weft_memory_kinds_keep(const char *list);
/* The list of a number from weft_memory_kinds_keep; NULL for 0. */
const char *weft_memory_kinds_kept(uint8_t number);

/* Adds mpi_memory_alloc_kinds to an object's info, and mpi_assert_memory_alloc_kinds unless `asserted` (of weft_memory_kinds_keep) is 0.
 * 0 or an error. */
int weft_memory_kinds_add(weft_info *info, uint8_t asserted);

#endif
