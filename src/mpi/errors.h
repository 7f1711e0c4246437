/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errors: maps inner codes to MPI error classes and runs error handlers. Called by every generated entry that fails, any thread.
 */
#ifndef WEFT_MPI_ERRORS_H
#define WEFT_MPI_ERRORS_H

#include "mpi/comm.h"

/* MPI error class (MPI_ERR_...) of an inner code; 0 for 0. */
int weft_errors_class(int code);
/* Runs the error handler for `code` (inner, negative) and returns the MPI class if the handler returns. Must be called without the
 * worker's lock. comm NULL: the communicator set by weft_errors_set_comm in this thread, else MPI_COMM_SELF (MPI 5.0 9.3). Fatal before
 * init and after finalize. Fatal handlers print function, communicator and weft_fail_text(code). A handler that is already running
 * on this thread for the communicator is not entered again: the class is returned. */
int weft_errors_raise(weft_comm *comm, const char *function, int code) __attribute__((cold));
/* Sets the communicator for the next raise with comm NULL in this thread; for calls that complete requests. Returns `code`.
 * The communicator must live until then. */
int weft_errors_set_comm(weft_comm *comm, int code) __attribute__((cold));
/* MPI_Comm_call_errhandler: runs comm's handler for an MPI code. Returns if the handler does: 0, or an error if the handler is already
 * running. Must be called without the worker's lock. */
int weft_errors_call(weft_comm *comm, const char *function, int mpi_code) __attribute__((cold));
/* Flushes the program's output before _exit, unless another thread is printing. */
void weft_errors_flush(void) __attribute__((cold));

#endif
