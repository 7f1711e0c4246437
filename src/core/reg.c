/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg: see reg.h.
 */
#include "core/reg.h"

#include <stdlib.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world_type.h"

struct weft_reg_persistent {
    uint64_t bytes;
    weft_reg *regs[WEFT_WORKER_IFACES];
};

static int map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *record)
{
    weft_iface *iface = owner;
    return iface->ops->mr_reg(iface, addr, bytes, rights, WEFT_MEMORY_HOST, record);
}

static void unmap(void *owner, void *record)
{
    weft_iface *iface = owner;
    iface->ops->mr_dereg(iface, record);
}

/* In the simulator a registration is an address range of one process: it cannot go stale, and a helper would not be deterministic. */
static bool is_simulated(const weft_iface *iface) { return ((weft_worker *)iface->owner)->world->boot->sleep_ops != NULL; }

/* Registration is an entry of a table of addresses and pins no pages: no need to defer, to split, or to monitor memory. */
static bool is_free(const weft_iface *iface) { return !iface->caps.wants_regcache; }

static weft_regcache *cache_of(weft_iface *iface)
{
    weft_regcache_config config = {.map = map, .unmap = unmap, .owner = iface, .record_bytes = sizeof(weft_mr),
                                   .max_bytes = weft_knob.regcache_max_size, .max_regions = (uint32_t)weft_knob.regcache_max_count,
                                   .device_bytes_max = iface->caps.mr_bytes_max, .device_regions_max = iface->caps.mr_count_max,
                                   .pages_on_demand = iface->caps.pages_on_demand,
                                   .needs_no_memmon = (is_simulated(iface) || is_free(iface)) &&
                                                      weft_knob.regcache_monitor != WEFT_REGCACHE_MONITOR_NONE};
    if (!iface->regcache && weft_regcache_open(&config, (weft_regcache **)&iface->regcache))
        iface->regcache = NULL;
    return iface->regcache;
}

/* Rights to register with: with memory windows, peers get none to the region itself. */
static uint32_t rights_of(const weft_iface *iface, uint32_t rights) { return rights && iface->caps.has_mw ? WEFT_ACCESS_MW : rights; }

bool weft_reg_export(weft_iface *iface, weft_ep *ep, const weft_reg *reg, void *addr, uint64_t bytes, uint32_t rights, weft_rkey *rkey,
                    weft_mw **mw)
{
    *mw = NULL;
    if (iface->caps.has_mw)
        return ep->iface == iface && iface->ops->mw_bind(iface, ep, weft_reg_mr(reg), addr, bytes, rights, rkey, mw) == 0;
    *rkey = weft_reg_mr(reg)->rkey;
    return true;
}

bool weft_reg_allowed(weft_iface *iface)
{
    return weft_knob.reg_mode != WEFT_REG_MODE_NEVER && cache_of(iface);
}

static weft_reg *acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_reg *reg = NULL;
    return weft_reg_acquire(iface, addr, bytes, rights, &reg) ? NULL : reg;
}

weft_reg *weft_reg_lookup(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(iface);
    if (is_free(iface))
        return acquire(iface, addr, bytes, rights);
    return cache ? weft_regcache_lookup(cache, addr, bytes, rights_of(iface, rights)) : NULL;
}

weft_reg *weft_reg_lookup_posted(weft_iface *iface, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(iface);
    weft_worker *worker = iface->owner;
    bool was_synced = order < worker->synced_order, is_synced = was_synced;
    weft_reg *reg = is_free(iface) ? acquire(iface, addr, bytes, rights)
                    : cache       ? weft_regcache_lookup_synced(cache, addr, bytes, rights_of(iface, rights), &is_synced)
                                  : NULL;
    if (is_synced && !was_synced)
        worker->synced_order = worker->post_order; /* the answer covers all receives posted until now */
    return reg;
}

int weft_reg_acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg)
{
    weft_regcache *cache = cache_of(iface);
    return cache ? weft_regcache_acquire(cache, addr, bytes, rights_of(iface, rights), reg)
                 : weft_fail(WEFT_E_NOSPACE, "no memory for a registration cache");
}

int weft_reg_acquire_own(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg)
{
    weft_regcache *cache = cache_of(iface);
    if (*reg && weft_regcache_is_current(cache, *reg))
        return 0;
    weft_reg_release(iface, *reg);
    *reg = NULL;
    return cache ? weft_regcache_acquire_own(cache, addr, bytes, rights, reg)
                 : weft_fail(WEFT_E_NOSPACE, "no memory for a registration cache");
}

void weft_reg_release(weft_iface *iface, weft_reg *reg)
{
    if (reg)
        weft_regcache_release(iface->regcache, reg);
}

void weft_reg_acquire_async(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(iface);
    const weft_sleep_ops *sleep_ops = ((weft_worker *)iface->owner)->world->sleep_ops;
    weft_reg *reg = NULL;
    if (!cache || is_free(iface)) /* nothing to gain, and mr_reg is for the worker's threads only */
        return;
    rights = rights_of(iface, rights);
    if (!sleep_ops->aside) {
        weft_regcache_acquire_async(cache, addr, bytes, rights);
        return;
    }
    sleep_ops->aside(true); /* the simulator has no helper thread: register now, as another CPU's work */
    if (!weft_regcache_acquire(cache, addr, bytes, rights, &reg))
        weft_regcache_release(cache, reg);
    sleep_ops->aside(false);
}

void weft_reg_reclaim(weft_worker *worker)
{
    for (uint32_t i = 0; i < worker->iface_count; i++)
        if (worker->ifaces[i]->regcache)
            weft_regcache_reclaim(worker->ifaces[i]->regcache);
}

void weft_reg_close(weft_iface *iface)
{
    if (iface->regcache)
        weft_regcache_close(iface->regcache);
    iface->regcache = NULL;
}

weft_reg_persistent *weft_reg_persist(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_reg_persistent *persistent = NULL;
    bool any = false;
    for (uint32_t i = 0; i < worker->iface_count; i++)
        any |= weft_reg_needed(worker->ifaces[i]) && !is_free(worker->ifaces[i]) && weft_reg_allowed(worker->ifaces[i]);
    if (!any || !bytes || worker->persistent_bytes + bytes > WEFT_REG_PERSIST_MAX || !(persistent = calloc(1, sizeof *persistent)))
        return NULL;
    persistent->bytes = bytes;
    worker->persistent_bytes += bytes;
    any = false;
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        weft_iface *iface = worker->ifaces[i];
        if (!weft_reg_needed(iface) || is_free(iface) || !weft_reg_allowed(iface))
            continue;
        /* half of the cache stays free for other registrations */
        if (worker->persistent_bytes <= weft_regcache_max_bytes(iface->regcache) / 2)
            any |= weft_regcache_acquire(iface->regcache, addr, bytes, rights_of(iface, rights), &persistent->regs[i]) == 0;
    }
    if (any)
        return persistent;
    weft_reg_unpersist(worker, persistent);
    return NULL;
}

void weft_reg_unpersist(weft_worker *worker, weft_reg_persistent *persistent)
{
    if (!persistent)
        return;
    for (uint32_t i = 0; i < worker->iface_count; i++)
        weft_reg_release(worker->ifaces[i], persistent->regs[i]);
    worker->persistent_bytes -= persistent->bytes;
    free(persistent);
}

void weft_reg_count(weft_worker *worker)
{
    static const enum weft_counter first = WEFT_COUNT_REG_HITS;
    for (int i = 0; first + i <= WEFT_COUNT_REG_BYTES_MAX; i++)
        worker->counters[first + i] = 0;
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        weft_regcache_counts counts;
        if (!worker->ifaces[i]->regcache)
            continue;
        counts = weft_regcache_stats(worker->ifaces[i]->regcache);
        worker->counters[WEFT_COUNT_REG_HITS] += counts.hits;
        worker->counters[WEFT_COUNT_REG_SYNC_CALLS] += counts.syncs;
        worker->counters[WEFT_COUNT_REG_MISSES] += counts.misses;
        worker->counters[WEFT_COUNT_REG_EVICTIONS] += counts.evictions;
        worker->counters[WEFT_COUNT_REG_INVALIDATIONS] += counts.invalidations;
        worker->counters[WEFT_COUNT_REG_UNCACHED] += counts.uncached;
        worker->counters[WEFT_COUNT_REG_FAILURES] += counts.refused;
        worker->counters[WEFT_COUNT_REG_ASYNC] += counts.async;
        worker->counters[WEFT_COUNT_REG_TIME] += counts.pin_ns;
        worker->counters[WEFT_COUNT_REG_BYTES] += counts.pinned_bytes;
        worker->counters[WEFT_COUNT_REG_REGIONS] += counts.pinned_regions;
        worker->counters[WEFT_COUNT_REG_BYTES_MAX] += counts.max_pinned_bytes;
    }
}
