/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg_persistent: registrations that are held until they are released, for persistent requests and MPI_Alloc_mem. Called by mpi; requires
 * worker->lock.
 */
#ifndef WEFT_CORE_REG_PERSISTENT_H
#define WEFT_CORE_REG_PERSISTENT_H

#include "core/reg.h"

/* Registration with all ifaces of the worker that need it. Limits: per worker WEFT_REG_PERSIST_MAX bytes, and half of each cache. `rights`:
 * those that peers will get, no more. Waits until it is made, as blocking calls do: polls, and drops the lock meanwhile, so the caller must
 * read all state again. NULL: nothing was registered; transfers treat the memory like any other. */
typedef struct weft_reg_persistent weft_reg_persistent;
#define WEFT_REG_PERSIST_MAX (1ull << 30)
weft_reg_persistent *weft_reg_persist(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights);
/* Releases it. NULL is allowed. */
void weft_reg_unpersist(weft_worker *worker, weft_reg_persistent *persistent);

#endif
