/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world: opens and closes the world (world_type.h). With the knobs the only mutable global of the library. A process has one world; sim has
 * many and switches weft_world_now with the fibre.
 */
#ifndef WEFT_CORE_WORLD_H
#define WEFT_CORE_WORLD_H

#include "core/wait.h"
#include "core/worker.h"
#include "core/world_type.h"
#include "launch/boot.h"

extern weft_world *weft_world_now; /* NULL before init and after finalize */
/* The same from MPI_Init to MPI_Finalize, else NULL: MPI_COMM_WORLD and MPI_COMM_SELF exist only then (MPI 5.0 11.3). Set by src/mpi. */
extern weft_world *weft_world_model;

/* Opens worker 0 and its ifaces over a boot and makes the world current. Takes ownership of the boot; on error finalizes it.
 * `callbacks` are the ifaces' upcalls of p2p. Call weft_p2p_open instead. */
int weft_world_open(weft_boot *boot, int thread_level, const weft_iface_callbacks *callbacks, weft_world **world);
/* May weft_world_rest be called? Not with an iface without caps.may_rest. */
bool weft_world_may_rest(const weft_world *world);
/* Leaves the world open for a later session: drains all workers and sends BYE (blocks until nothing is in flight; over a network also until
 * each contacted peer has seen the BYE or rests as well), reports the rank as finalized. There is no current world then. */
void weft_world_rest(weft_world *world);
/* Makes a resting world current again. */
void weft_world_return(weft_world *world);
/* Drains all workers: sends BYE to every contacted peer and waits (blocks) for its BYE. Then closes and frees everything. Returns 0. Of a
 * resting world: waits for no peer, or 50 ms at most. */
int weft_world_close(weft_world *world);

#endif
