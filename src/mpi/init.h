/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init: the MPI objects of a world. Each world is opened and closed once; the simulator opens one per simulated rank.
 */
#ifndef WEFT_MPI_INIT_H
#define WEFT_MPI_INIT_H

#include "mpi/comm.h"

/* Creates the predefined communicators and lists of an open world and sets world->mpi. 0 or an error. */
int weft_mpi_world_open(weft_world *world);
/* Blocks until detached requests are done, then closes every communicator. The world stays open. */
void weft_mpi_world_close(weft_world *world);

#endif
