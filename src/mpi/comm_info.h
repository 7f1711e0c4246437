/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_info: hints on communicators (MPI 5.0 7.4.4). Called where communicators are made with an info and by the generated entries.
 */
#ifndef WEFT_MPI_COMM_INFO_H
#define WEFT_MPI_COMM_INFO_H

#include "mpi/comm.h"
#include "mpi/info.h"

/* Sets the supported hints that info has. Ignores other keys, and values that are neither true nor false. info NULL: none. Requires
 * the worker's lock. */
void weft_comm_set_hints(weft_comm *comm, const weft_info *info);

#endif
