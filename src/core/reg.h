/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg: memory registration for transfers and persistent registrations (core/reg_persistent). Connects mem/regcache with an iface's mr_reg
 * and mr_dereg and with the knobs. Each iface that needs registered memory has a cache of its own in iface->regcache, created at first use.
 * Called by p2p and mpi; requires worker->lock, which no call holds while more than WEFT_REG_INLINE_MAX bytes are registered or
 * unregistered.
 */
#ifndef WEFT_CORE_REG_H
#define WEFT_CORE_REG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/worker_type.h"
#include "mem/regcache.h"
#include "transport/iface.h"

/* Most bytes that the thread registers itself which needs them, if caps.wants_regcache: that takes some ten microseconds. A helper thread
 * registers what is longer. */
#define WEFT_REG_INLINE_MAX ((uint64_t)256 << 10)

/* Whether RMA on the iface needs registered memory. */
static inline bool weft_reg_needed(const weft_iface *iface) { return iface->caps.key_bytes || iface->caps.mr_local; }
/* Registration is an entry of a table of addresses and pins no pages: no need to defer, to split, or to monitor memory. */
static inline bool weft_reg_is_free(const weft_iface *iface) { return !iface->caps.wants_regcache; }
/* Rights to register with for accesses with these: with memory windows, peers get none to the region itself. */
static inline uint32_t weft_reg_rights(const weft_iface *iface, uint32_t rights)
{
    uint32_t ordered = rights & WEFT_ACCESS_ORDERED;
    return rights != ordered && iface->caps.has_mw ? WEFT_ACCESS_MW | ordered : rights;
}
/* Whether memory may be registered: WEFT_REG_MODE is not never, and the iface has a cache. */
bool weft_reg_allowed(weft_iface *iface);

/* Acquires an existing registration; registers only if that is free. NULL: none. Caller must release it. */
weft_reg *weft_reg_lookup(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* The same for the buffer of a receive with this post number. In a multi-threaded process a lookup queries the kernel whether memory is
 * being unmapped; one query covers all receives posted before it. */
weft_reg *weft_reg_lookup_posted(weft_iface *iface, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights);
/* Acquires a registration, registering if there is none. WEFT_INPROGRESS: *reg is held, but must not be used until weft_reg_settle returns
 * 0; the end of the registration wakes the worker's leader. WEFT_E_NOSPACE, WEFT_E_UNSUPPORTED: the caller must copy. */
int weft_reg_acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg);
/* 0, WEFT_INPROGRESS, or an error as above: then the caller releases reg. Does not wait. */
int weft_reg_settle(weft_iface *iface, weft_reg *reg);
/* Whether a waiting thread should call weft_reg_settle. Changes nothing. */
static inline bool weft_reg_is_settled(const weft_reg *reg) { return weft_regcache_is_settled(reg); }
/* Most bytes that the cache keeps, if weft_reg_allowed. */
static inline uint64_t weft_reg_max_bytes(const weft_iface *iface) { return weft_regcache_max_bytes(iface->regcache); }
/* One more acquisition of a held registration, ready or not. Returns reg. */
weft_reg *weft_reg_hold(weft_reg *reg);
/* Makes *reg a registration of this memory with these rights that only the caller uses, by the region's own key also where there are
 * memory windows; its release ends all access of peers at once (caps.revokes). *reg: NULL, or what an earlier call for the same memory
 * gave: kept if the memory is still the same, else replaced. 0; WEFT_INPROGRESS: a later call will tell; errors as above, also for long
 * memory that no monitor tracks: then *reg is NULL. */
int weft_reg_acquire_own(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg);
/* Releases one acquisition. NULL is allowed. */
void weft_reg_release(weft_iface *iface, weft_reg *reg);
/* Registers in a helper thread, where possible; does not block. */
void weft_reg_acquire_async(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* Whether the registration allows these rights. With memory windows one registration serves windows of all rights. */
static inline bool weft_reg_grants(const weft_iface *iface, const weft_reg *reg, uint32_t rights)
{
    uint32_t needed = weft_reg_rights(iface, rights);
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

/* Updates the worker's REG_ counters from its caches (weft_worker.count). */
void weft_reg_count(weft_worker *worker);

#endif
