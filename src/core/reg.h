/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg: memory registration for transfers, persistent requests and MPI_Alloc_mem. Connects mem/regcache with an iface's mr_reg and mr_dereg
 * and with the knobs. Each iface that needs registered memory has a cache of its own in iface->regcache, created at first use.
 * Called by p2p and mpi; requires worker->lock.
 */
#ifndef WEFT_CORE_REG_H
#define WEFT_CORE_REG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/worker_type.h"
#include "mem/regcache.h"
#include "transport/iface.h"

/* Whether RMA on the iface needs registered memory. */
static inline bool weft_reg_needed(const weft_iface *iface) { return iface->caps.key_bytes || iface->caps.mr_local; }
/* Whether memory may be registered: WEFT_REG_MODE is not never, and the iface has a cache. */
bool weft_reg_allowed(weft_iface *iface);

/* Acquires an existing registration; registers only if that is free (no caps.wants_regcache). NULL: none. Caller must release it. */
weft_reg *weft_reg_lookup(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* The same for the buffer of a receive with this post number. In a multi-threaded process a lookup queries the kernel whether memory is
 * being unmapped; one query covers all receives posted before it. */
weft_reg *weft_reg_lookup_posted(weft_iface *iface, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights);
/* Acquires a registration, registering if there is none (blocks). WEFT_E_NOSPACE, WEFT_E_UNSUPPORTED: the caller must copy. */
int weft_reg_acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg);
/* Makes *reg a registration of this memory with these rights that only the caller uses, by the region's own key also where there are
 * memory windows; its release ends all access of peers at once (caps.revokes). *reg: NULL, or what an earlier call for the same memory
 * gave: kept if the memory is still the same, else replaced. Errors as above; then *reg is NULL. */
int weft_reg_acquire_own(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg);
/* Releases one acquisition. NULL is allowed. */
void weft_reg_release(weft_iface *iface, weft_reg *reg);
/* Registers in a helper thread, where possible; does not block. */
void weft_reg_acquire_async(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* Whether the registration allows these rights. With memory windows one registration serves windows of all rights. */
static inline bool weft_reg_grants(const weft_iface *iface, const weft_reg *reg, uint32_t rights)
{
    uint32_t needed = rights && iface->caps.has_mw ? WEFT_ACCESS_MW : rights;
    return (reg->rights & needed) == needed;
}
/* Stores in *rkey a key to [addr, addr + bytes) for the peer of this ep: the region's key, or that of a new memory window. The caller must
 * revoke *mw (NULL: no window) before it releases reg. False: not possible, or not now. */
bool weft_reg_export(weft_iface *iface, weft_ep *ep, const weft_reg *reg, void *addr, uint64_t bytes, uint32_t rights, weft_rkey *rkey,
                    weft_mw **mw);
/* Invalidates a window of weft_reg_export. NULL is allowed. */
static inline void weft_reg_revoke(weft_iface *iface, weft_mw *mw)
{
    if (mw)
        iface->ops->mw_invalidate(iface, mw);
}
static inline const weft_mr *weft_reg_mr(const weft_reg *reg) { return (const weft_mr *)reg->record; }
/* Frees the iface's cache with its registrations. Called before ops.close. */
void weft_reg_close(weft_iface *iface);
/* Drops registrations of unmapped or changed memory. Called before a rank sleeps, else such memory stays pinned until the next transfer. */
void weft_reg_reclaim(weft_worker *worker);

/* Persistent registration with all ifaces of the worker that need it, for persistent requests and MPI_Alloc_mem. Limits: per worker
 * WEFT_REG_PERSIST_MAX bytes, and half of the cache. `rights`: those that peers will get, no more. NULL: nothing was registered; transfers
 * treat the memory like any other. */
typedef struct weft_reg_persistent weft_reg_persistent;
#define WEFT_REG_PERSIST_MAX (1ull << 30)
weft_reg_persistent *weft_reg_persist(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights);
/* Releases it. NULL is allowed. */
void weft_reg_unpersist(weft_worker *worker, weft_reg_persistent *persistent);
/* Updates the worker's REG_ counters from its caches (weft_worker.count). */
void weft_reg_count(weft_worker *worker);

#endif
