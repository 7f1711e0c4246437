/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errors: inner codes become MPI classes here and error handlers run here, nowhere else.
 */
#ifndef WEFT_MPI_ERRORS_H
#define WEFT_MPI_ERRORS_H

#include "mpi/comm.h"

#define WEFT_ERRHANDLER_MAGIC 0x45525248u

/* The MPI error class (MPI_ERR_...) of an inner code; 0 for 0. */
int weft_errors_class(int code);
/* Runs the right error handler for `code` (inner, negative) and returns the MPI class to the user if the handler returns.
 * comm NULL: the communicator that weft_errors_blame named in this thread, else MPI_COMM_SELF's handler (MPI 5.0, 9.3); before
 * init and after finalize: fatal.
 * The text shown by fatal handlers: function, communicator, weft_fail_text(code). Called without the worker's lock. A handler that runs
 * on this thread is not entered again on the same communicator: the error is returned. */
int weft_errors_raise(weft_comm *comm, const char *function, int code) __attribute__((cold));
/* Calls that complete requests know the communicator only once a request has failed: whose handler the next raise with comm
 * NULL in this thread shall run. Gives `code` back. The communicator must live until then. */
int weft_errors_blame(weft_comm *comm, int code) __attribute__((cold));
/* MPI_Comm_call_errhandler: runs comm's handler for an MPI code. Returns if the handler does: 0, or an error when the handler runs
 * already. Without the worker's lock. */
int weft_errors_call(weft_comm *comm, const char *function, int mpi_code) __attribute__((cold));
/* Before the process ends without exit handlers: what the program has printed goes out, unless another thread is printing. */
void weft_errors_flush(void) __attribute__((cold));

#endif
