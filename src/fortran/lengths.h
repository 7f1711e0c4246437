/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lengths: how many elements C reads of array arguments without a length of their own (fortran.tbl, count=). comm: Fortran's number. An
 * invalid communicator gives 0 or false: the call itself then reports it.
 */
#ifndef WEFT_FORTRAN_LENGTHS_H
#define WEFT_FORTRAN_LENGTHS_H

#include <stdbool.h>

/* Ranks of the communicator, or of the remote group if it is an intercommunicator. */
int weft_f_ranks(int comm);
/* Neighbours in its topology to receive from, and to send to. */
int weft_f_in_degree(int comm);
int weft_f_out_degree(int comm);
/* Dimensions of its Cartesian grid. */
int weft_f_dimensions(int comm);

/* Is this rank the root of a collective operation, where alone some arguments are significant; on an intercommunicator: MPI_ROOT? */
bool weft_f_is_root(int comm, int root);

#endif
