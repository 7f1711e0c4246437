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
 * comm NULL: no communicator is known: MPI_COMM_SELF's handler (MPI 5.0, 9.3), before init and after finalize: fatal.
 * The text shown by fatal handlers: function, communicator, weft_fail_text(code). Called without the lane's lock. */
int weft_errors_raise(weft_comm *comm, const char *function, int code) __attribute__((cold));

#endif
