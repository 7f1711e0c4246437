/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errors: maps inner codes to MPI error classes and runs error handlers. Called by every generated entry that fails, any thread.
 */
#ifndef WEFT_MPI_ERRORS_H
#define WEFT_MPI_ERRORS_H

#include "mpi/comm.h"

/* MPI error class (MPI_ERR_...) of an inner code; 0 for 0; a code above 0 is MPI's (a program's function returned it) and stays. */
int weft_errors_class(int code);
/* Runs the error handler of `at` for `code` (inner, negative) and returns the MPI class if the handler returns. Must be called without a
 * worker's lock. at: the traits of a communicator, window, file or session. NULL: the object set by weft_errors_set_object in this
 * thread, else MPI_COMM_SELF (MPI 5.0 9.3); before init and after finalize the initial handler runs. Fatal handlers print function, object
 * and weft_fail_text(code). A handler that is already running on this thread for the object is not entered again: the class is returned. */
int weft_errors_raise(weft_traits *at, const char *function, int code) __attribute__((cold));
/* Sets the object for the next raise with NULL in this thread; for calls that complete requests. Returns `code`. One that was freed by
 * then stands for MPI_COMM_SELF. */
int weft_errors_set_object(weft_traits *at, int code) __attribute__((cold));
weft_traits *weft_errors_object(void) __attribute__((cold)); /* that object; NULL: none */
/* Traits for weft_errors_raise on an object that could not be made, by the error handler that was passed to the call (MPI 5.0 9.3), which
 * gets a null handle. An invalid handler counts as MPI_ERRORS_ARE_FATAL. Of the calling thread, until its next call of this. */
weft_traits *weft_errors_unmade(enum weft_traits_kind kind, struct MPI_ABI_Errhandler *errhandler) __attribute__((cold));
/* The traits of the session from which a group was derived (MPI 5.0 9.3). NULL: of none, or it was finalized, or group is NULL. */
weft_traits *weft_errors_of_group(const weft_group *group) __attribute__((cold));
/* MPI_X_call_errhandler: runs the object's handler for an MPI code. Returns if the handler does: 0, or an error if the handler is already
 * running. Must be called without a worker's lock. */
int weft_errors_call(weft_traits *at, const char *function, int mpi_code) __attribute__((cold));
/* Flushes the program's output before _exit, unless another thread is printing. */
void weft_errors_flush(void) __attribute__((cold));

#endif
