/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init: stage of this process between MPI_Init and MPI_Finalize, and the MPI objects of a world. Each world is opened and closed once;
 * the simulator opens one per simulated rank.
 */
#ifndef WEFT_MPI_INIT_H
#define WEFT_MPI_INIT_H

#include "mpi/comm.h"

enum weft_stage { WEFT_STAGE_BEFORE, WEFT_STAGE_OPENING, WEFT_STAGE_OPEN, WEFT_STAGE_CLOSING, WEFT_STAGE_AFTER };

/* Stage of this process or of the running simulated rank; any thread. BEFORE must be 0, the initial value of weft_boot_stage. */
enum weft_stage weft_init_stage(void);

/* Creates the predefined communicators and lists of an open world and sets world->mpi. 0 or an error. */
int weft_mpi_world_open(weft_world *world);
/* Blocks until detached requests are done, then closes every communicator. The world stays open. */
void weft_mpi_world_close(weft_world *world);

#endif
