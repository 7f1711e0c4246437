/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_watch: a cache as the reader of its monitor: drops entries whose memory has changed. Requires the owner's worker->lock.
 */
#include "mem/regcache_internal.h"

static const weft_inval_log silence; /* empty log for caches without a monitor */

static void invalidate(void *arg, weft_range range)
{
    weft_regcache *cache = arg;
    weft_regnode *next;

    for (weft_regnode *node = weft_regtree_chain(cache->root, range.start & ~WEFT_INVAL_LOG_DISCARDED, range.end); node; node = next) {
        next = node->chained;
        cache->counts.invalidations++;
        weft_regentry_throw_out(cache, entry_of(node));
    }
}

void weft_regcache_invalidate_all(weft_regcache *cache) { invalidate(cache, (weft_range){0, UINT64_MAX}); }

void weft_regcache_read_log(weft_regcache *cache)
{
    cache->batch_bytes = 0;
    if (!weft_inval_log_read(cache->log, &cache->cursor, invalidate, cache))
        weft_regcache_invalidate_all(cache);
    atomic_store_explicit(&cache->read_to, cache->cursor, memory_order_release);
    weft_reghelper_pass_dropped(cache);
}

static void start_monitor(weft_regcache *cache)
{
    if (cache->needs_no_memmon) {
        cache->log = &silence;
        return;
    }
    cache->memmon = cache->config.memmon ? cache->config.memmon : weft_memmon_get();
    cache->log = weft_memmon_log(cache->memmon);
    cache->cursor = atomic_load_explicit(&cache->log->next, memory_order_acquire);
}

bool weft_regcache_track(weft_regcache *cache, uint64_t start, uint64_t end)
{
    if (!cache->log)
        start_monitor(cache);
    bool is_covered = cache->needs_no_memmon || weft_memmon_track(cache->memmon, start, end);
    weft_regcache_read_log(cache);
    return is_covered;
}

bool weft_regcache_sync(weft_regcache *cache, bool *is_synced)
{
    cache->counts.syncs++;
    if (!weft_memmon_sync(cache->memmon))
        return false;
    *is_synced = true;
    if (weft_inval_log_is_new(cache->log, cache->cursor))
        weft_regcache_read_log(cache);
    return true;
}

bool weft_regcache_is_current(weft_regcache *cache, const weft_reg *pin)
{
    const weft_regentry *entry = weft_container(pin, const weft_regentry, pin);
    bool is_synced = false;

    if (weft_unlikely(weft_inval_log_is_new(cache->log, cache->cursor)))
        weft_regcache_read_log(cache);
    if (entry->is_kept && weft_regcache_needs_sync(cache) && !weft_regcache_sync(cache, &is_synced))
        return false;
    return entry->is_kept;
}

bool weft_regcache_may_keep(weft_regcache *cache, const void *addr, uint64_t bytes)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t end = (last + cache->page - 1) & ~(cache->page - 1);
    return end >= last && end - first <= cache->max_bytes && weft_regcache_track(cache, first & ~(cache->page - 1), end);
}
