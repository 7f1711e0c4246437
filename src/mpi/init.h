/* SPDX-License-Identifier: BSD-3-Clause
 *
 * init: where this process stands between MPI_Init and MPI_Finalize, and the MPI objects of a world. Each world is opened once
 * and closed once; a simulation opens one for each of its ranks.
 */
#ifndef WEFT_MPI_INIT_H
#define WEFT_MPI_INIT_H

#include "mpi/comm.h"

enum weft_stage { WEFT_STAGE_BEFORE, WEFT_STAGE_OPENING, WEFT_STAGE_OPEN, WEFT_STAGE_CLOSING, WEFT_STAGE_AFTER };

/* Of this process, or of the simulated rank that runs; any thread. BEFORE is 0: weft_boot_stage starts so. */
enum weft_stage weft_init_stage(void);

/* The predefined communicators and lists of a world that is open: sets world->mpi. */
int weft_mpi_world_open(weft_world *world);
/* Waits for what was freed in flight, closes every communicator; the world itself stays open. */
void weft_mpi_world_close(weft_world *world);

#endif
