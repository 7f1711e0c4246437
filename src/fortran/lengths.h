/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lengths: how many elements C reads of array arguments without a length of their own (fortran.tbl, count=). comm: Fortran's number. An
 * invalid communicator gives 0: the call itself then reports it.
 */
#ifndef WEFT_FORTRAN_LENGTHS_H
#define WEFT_FORTRAN_LENGTHS_H

/* Ranks of the communicator, or of the remote group if it is an intercommunicator. */
int weft_f_ranks(int comm);
/* Neighbours in its topology to receive from, and to send to. */
int weft_f_in_degree(int comm);
int weft_f_out_degree(int comm);
/* Dimensions of its Cartesian grid. */
int weft_f_dimensions(int comm);

#endif
