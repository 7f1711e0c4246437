/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent_reg: registrations that live as long as an MPI object: buffers of persistent requests, memory of MPI_Alloc_mem.
 * Called by persistent.c, coll.c and mem.c. Requires the worker's lock.
 * Invariant: a closing world releases all its registrations, also those of objects that the program did not free.
 */
#ifndef WEFT_MPI_PERSISTENT_REG_H
#define WEFT_MPI_PERSISTENT_REG_H

#include "core/reg_persistent.h"
#include "mpi/comm.h"

typedef struct weft_persistent_reg weft_persistent_reg;

#define WEFT_PERSISTENT_REG_MIN 16384 /* bytes; shorter messages are eager and copied */

/* Registers memory; rights: access of remote peers. NULL: no iface of the worker needs it, or a limit is reached; transfers then
 * register as usual. */
weft_persistent_reg *weft_persistent_reg_acquire(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t access);
/* Releases the registration and frees keep. Allowed after its world was closed; NULL is allowed. */
void weft_persistent_reg_release(weft_persistent_reg *reg);
/* Registers all memory that a persistent collective sends or receives, temporary memory included, until its request is freed. */
void weft_persistent_reg_acquire_sched(weft_req *req);
/* A world closes: releases its registrations. */
void weft_persistent_reg_release_all(weft_mpi_world *mpi);

#endif
