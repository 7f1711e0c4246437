/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg: memory made known to an iface for as long as a transfer, a persistent request or an allocation needs it. Each iface that asks for
 * registered memory has a cache of its own (mem/regcache) behind iface->pins, made at the first use; here the cache meets the iface's
 * map and unmap, and the knobs.
 */
#ifndef WEFT_CORE_REG_H
#define WEFT_CORE_REG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/worker.h"
#include "mem/regcache.h"
#include "transport/iface.h"

/* Does the iface move only memory that was registered with it? */
static inline bool weft_reg_needed(const weft_iface *iface) { return iface->caps.key_bytes || iface->caps.mr_local; }
/* ... and may it register at all: the knob `pin` is not never, and registering has not turned out to be impossible. */
bool weft_reg_allowed(weft_iface *iface);

/* Registered already (a hit), or by nobody's waiting (caps.wants_regcache is false), held now; NULL: no. */
weft_reg *weft_reg_lookup(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* The same for the buffer of a receive with this post number. In a process of several threads a look-up asks the kernel whether
 * memory is being unmapped; the answer is good for every receive that was posted before the question. */
weft_reg *weft_reg_lookup_posted(weft_iface *iface, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights);
/* Registers what is not. WEFT_E_NOSPACE, WEFT_E_UNSUPPORTED: copy instead. */
int weft_reg_acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin);
/* Ends one hold; NULL is allowed. */
void weft_reg_release(weft_iface *iface, weft_reg *pin);
/* Has a helper register it meanwhile, where that can be. */
void weft_reg_acquire_async(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights);
/* Does what was asked for these rights give them? On an iface that lends, one registration serves for whatever will be lent. */
static inline bool weft_reg_grants(const weft_iface *iface, const weft_reg *pin, uint32_t rights)
{
    uint32_t needed = rights && iface->caps.has_mw ? WEFT_ACCESS_MW : rights;
    return (pin->rights & needed) == needed;
}
/* Tells the peer of this ep how it may touch [addr, addr + bytes) of what is held: the region's key, or one that is lent to it alone;
 * then *loan is to be given back, before the pin is. False: not at all, or not now. */
bool weft_reg_export(weft_iface *iface, weft_ep *ep, const weft_reg *pin, void *addr, uint64_t bytes, uint32_t rights, weft_rkey *rkey,
                    weft_mw **mw);
/* NULL is allowed. */
static inline void weft_reg_revoke(weft_iface *iface, weft_mw *mw)
{
    if (mw)
        iface->ops->mw_invalidate(iface, mw);
}
static inline const weft_mr *weft_reg_mr(const weft_reg *pin) { return (const weft_mr *)pin->record; }
void weft_reg_close(weft_iface *iface);
/* Gives back what changed underneath: before a rank sleeps, so that memory which was unmapped does not stay pinned until the next transfer. */
void weft_reg_reclaim(weft_worker *worker);

/* Memory that will be used again and again, held with every iface of the worker that needs it: persistent requests, MPI_Alloc_mem.
 * At most WEFT_REG_PERSIST_MAX bytes of a worker are kept so, and half of what its cache may hold; beyond that, and where an iface cannot, nothing
 * is kept and transfers do what they do for any memory. `rights`: what peers will be given; no more. NULL: nothing was kept. */
typedef struct weft_reg_persistent weft_reg_persistent;
#define WEFT_REG_PERSIST_MAX (1ull << 30)
weft_reg_persistent *weft_reg_persist(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights);
void weft_reg_unpersist(weft_worker *worker, weft_reg_persistent *kept);
/* Brings the worker's counters of registrations up to date. */
void weft_reg_count(weft_worker *worker);

#endif
