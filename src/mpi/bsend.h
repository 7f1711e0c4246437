/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bsend: buffered sends, for persistent requests (persistent.c), and what finalize does about buffers (init.c).
 */
#ifndef WEFT_MPI_BSEND_H
#define WEFT_MPI_BSEND_H

#include "mpi/comm.h"

/* A buffered send on the buffer attached to comm, else to the process. 0 or an error. Requires the worker's lock. */
int weft_bsend(weft_comm *comm, int dest, int tag, const void *buf, uint64_t count, const weft_type *type);
struct MPI_ABI_Session;
/* MPI_Session_finalize: sends what is in the session's buffer, and detaches it. Takes worker 0's lock. */
void weft_bsend_close_session(struct MPI_ABI_Session *session);
/* Finalize: sends what is in the buffers, and detaches them. Requires worker 0's lock. */
void weft_bsend_close_all(weft_mpi_world *mpi);

#endif
