/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init: the MPI objects of a world. Each world is opened and closed once; the simulator opens one per simulated rank.
 */
#ifndef WEFT_MPI_INIT_H
#define WEFT_MPI_INIT_H

#include "mpi/comm.h"

/* Creates the predefined communicators and lists of an open world and sets world->mpi. 0 or an error. */
int weft_mpi_world_open(weft_world *world);
/* Closes the objects of a world that will rest; weft_mpi_world_reopen makes the predefined ones anew. */
void weft_mpi_world_rest(weft_world *world);
int weft_mpi_world_reopen(weft_world *world);
/* Blocks until detached requests are done, then closes every communicator. The world stays open. */
void weft_mpi_world_close(weft_world *world);

/* A use of this process's instance by the World Model or a session. The first opens it with the wanted level; *provided: the lower of the
 * wanted level and the instance's. 0 or an error. Any thread. */
int weft_instance_open(int level, int *provided);
/* Ends a use. After the last one the instance is kept for later sessions: open before MPI_Finalize, resting after it, or closed where it
 * cannot rest (weft_world_may_rest). What is kept is closed at exit.
 * is_world: of the World Model. */
int weft_instance_close(bool is_world);

#endif
