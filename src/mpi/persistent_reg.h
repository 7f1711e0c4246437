/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent_reg: memory that stays registered with devices because an MPI object says that it will be used again: the buffers of persistent
 * requests, what MPI_Alloc_mem gave. Called by persistent.c, coll.c and mem.c, under the worker's lock.
 * Invariant: when a world closes nothing of it is held any more, also where the program never freed its objects.
 */
#ifndef WEFT_MPI_PERSISTENT_REG_H
#define WEFT_MPI_PERSISTENT_REG_H

#include "core/reg.h"
#include "mpi/comm.h"

typedef struct weft_keep weft_keep;

#define WEFT_PERSISTENT_REG_MIN 16384 /* bytes; shorter messages go eagerly, by copy, and gain nothing */

/* NULL: no port of the worker needs it, or a bound is met; all works as it does for any memory. `rights` are those of remote peers. */
weft_keep *weft_keep_take(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights);
/* Also after its world was closed; NULL is allowed. */
void weft_keep_drop(weft_keep *keep);
/* All memory that the messages of a persistent collective will send or receive, temporary memory too, for as long as its request
 * lives. */
void weft_keep_plan(weft_req *req);
/* A world closes: gives back what is still held. */
void weft_keep_end_all(weft_mpi_world *mpi);

#endif
