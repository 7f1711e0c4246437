/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg: see reg.h.
 */
#include "core/reg.h"

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world_type.h"

/* Registration time, ns, above which warn_uncached() prints its line. */
#define UNCACHED_NS 10000000

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

static const weft_sleep_ops *sleep_ops_of(const weft_iface *iface) { return ((weft_worker *)iface->owner)->world->sleep_ops; }

/* By the helper thread. */
static void ready(void *owner)
{
    const weft_iface *iface = owner;
    atomic_thread_fence(memory_order_seq_cst);
    sleep_ops_of(iface)->wake(iface->owner);
}

/* In the simulator a registration is an address range of one process, which cannot go stale, and a thread would not be deterministic. */
static bool is_simulated(const weft_iface *iface) { return sleep_ops_of(iface)->aside != NULL; }
static void begin_aside(void *owner) { sleep_ops_of(owner)->aside(true); }
static uint64_t end_aside(void *owner) { return sleep_ops_of(owner)->aside(false); }
static uint64_t now_ns(void *owner) { return sleep_ops_of(owner)->now_ns(); }
static const weft_reghelper_model model = {.begin = begin_aside, .end = end_aside, .now_ns = now_ns};

static uint32_t caches_of(const weft_worker *worker)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < worker->iface_count; i++)
        count += worker->ifaces[i]->caps.wants_regcache;
    return count;
}

static __attribute__((noinline)) weft_regcache *open_cache(weft_iface *iface)
{
    const weft_worker *worker = iface->owner;
    weft_regcache_config config = {.map = map, .unmap = unmap, .ready = ready, .owner = iface, .record_bytes = sizeof(weft_mr),
                                   .model = is_simulated(iface) ? &model : NULL,
                                   .inline_max = weft_reg_is_free(iface) ? 0 : WEFT_REG_INLINE_MAX,
                                   .max_bytes = weft_knob.regcache_max_size, .max_regions = (uint32_t)weft_knob.regcache_max_count,
                                   .ranks = worker->world->boot->local_size, .ports = caches_of(worker),
                                   .device_bytes_max = iface->caps.mr_bytes_max, .device_regions_max = iface->caps.mr_count_max,
                                   .pages_on_demand = iface->caps.pages_on_demand,
                                   .needs_no_memmon = (is_simulated(iface) || weft_reg_is_free(iface)) &&
                                                      weft_knob.regcache_monitor != WEFT_REGCACHE_MONITOR_NONE};
    if (weft_regcache_open(&config, (weft_regcache **)&iface->regcache))
        iface->regcache = NULL;
    return iface->regcache;
}

static inline weft_regcache *cache_of(weft_iface *iface) { return weft_likely(iface->regcache) ? iface->regcache : open_cache(iface); }

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
    if (weft_reg_is_free(iface))
        return acquire(iface, addr, bytes, rights);
    return cache ? weft_regcache_lookup(cache, addr, bytes, weft_reg_rights(iface, rights)) : NULL;
}

weft_reg *weft_reg_lookup_posted(weft_iface *iface, uint64_t order, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(iface);
    weft_worker *worker = iface->owner;
    bool was_synced = order < worker->synced_order, is_synced = was_synced;
    weft_reg *reg = weft_reg_is_free(iface) ? acquire(iface, addr, bytes, rights)
                    : cache       ? weft_regcache_lookup_synced(cache, addr, bytes, weft_reg_rights(iface, rights), &is_synced)
                                  : NULL;
    if (is_synced && !was_synced)
        worker->synced_order = worker->post_order; /* the answer covers all receives posted until now */
    return reg;
}

int weft_reg_acquire(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg)
{
    weft_regcache *cache = cache_of(iface);
    return cache ? weft_regcache_acquire(cache, addr, bytes, weft_reg_rights(iface, rights), reg)
                 : weft_fail(WEFT_E_NOSPACE, "no memory for a registration cache");
}

int weft_reg_acquire_own(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg)
{
    weft_regcache *cache = cache_of(iface);
    bool is_current = *reg && weft_regcache_is_current(cache, *reg);
    int rc = is_current ? weft_regcache_settle(cache, *reg) : 0;
    if (is_current && rc >= 0)
        return rc;
    weft_reg_release(iface, *reg);
    *reg = NULL;
    if (rc)
        return rc;
    return cache ? weft_regcache_acquire_own(cache, addr, bytes, rights, reg)
                 : weft_fail(WEFT_E_NOSPACE, "no memory for a registration cache");
}

int weft_reg_settle(weft_iface *iface, weft_reg *reg) { return weft_regcache_settle(iface->regcache, reg); }

weft_reg *weft_reg_hold(weft_reg *reg)
{
    weft_regcache_hold(reg);
    return reg;
}

void weft_reg_release(weft_iface *iface, weft_reg *reg)
{
    if (reg)
        weft_regcache_release(iface->regcache, reg);
}

void weft_reg_acquire_async(weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_regcache *cache = cache_of(iface);
    if (cache && !weft_reg_is_free(iface)) /* else nothing is gained, and mr_reg is for the worker's threads only */
        weft_regcache_acquire_async(cache, addr, bytes, weft_reg_rights(iface, rights));
}

void weft_reg_reclaim(weft_worker *worker)
{
    for (uint32_t i = 0; i < worker->iface_count; i++)
        if (worker->ifaces[i]->regcache)
            weft_regcache_reclaim(worker->ifaces[i]->regcache);
}

/* Rank 0 warns that no registration could be kept. */
static void warn_uncached(const weft_iface *iface)
{
    weft_regcache_counts counts = weft_regcache_stats(iface->regcache);

    if (((weft_worker *)iface->owner)->world->boot->rank || counts.pin_ns < UNCACHED_NS || !counts.uncached || counts.hits ||
        weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_NONE || weft_memmon_is_able(weft_memmon_get()))
        return;
    weft_log_once(WEFT_LOG_WARN, "memory was registered anew for each message, which is slow, as unmapped memory cannot be noticed here: "
                                 "see weft-info --registration, on this host");
}

void weft_reg_close(weft_iface *iface)
{
    if (iface->regcache) {
        warn_uncached(iface);
        weft_regcache_close(iface->regcache);
    }
    iface->regcache = NULL;
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
        worker->counters[WEFT_COUNT_REG_UNPINNED] += counts.unpinned;
        worker->counters[WEFT_COUNT_REG_UNCACHED] += counts.uncached;
        worker->counters[WEFT_COUNT_REG_FAILURES] += counts.refused;
        worker->counters[WEFT_COUNT_REG_ASYNC] += counts.async;
        worker->counters[WEFT_COUNT_REG_TIME] += counts.pin_ns;
        worker->counters[WEFT_COUNT_REG_BYTES] += counts.pinned_bytes;
        worker->counters[WEFT_COUNT_REG_REGIONS] += counts.pinned_regions;
        worker->counters[WEFT_COUNT_REG_BYTES_MAX] += counts.max_pinned_bytes;
    }
}
