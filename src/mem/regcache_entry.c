/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_entry: entries of a registration cache from their making to their end: in the tree, counted, dropped, unmapped here or by the
 * helper. Requires the owner's worker->lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mem/regcache_internal.h"
#include "mem/unmap_wakeup.h"

weft_regentry *weft_regentry_new(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regentry *entry = NULL;

    if (posix_memalign((void **)&entry, 64, sizeof(*entry) + cache->config.record_bytes))
        return NULL;
    memset(entry, 0, sizeof(*entry) + cache->config.record_bytes);
    entry->node.start = entry->pin.start = start;
    entry->node.end = entry->pin.end = end;
    entry->node.rights = entry->pin.rights = rights;
    entry->cache = cache;
    entry->goal = end - start;
    entry->since = cache->cursor;
    atomic_init(&entry->state, WEFT_REG_MAPPING);
    weft_list_init(&entry->idle);
    weft_list_init(&entry->job);
    return entry;
}

int weft_regentry_map(weft_regcache *cache, weft_regentry *entry, uint64_t *ns)
{
    uint64_t before = weft_clock_ns();
    int rc = cache->config.map(cache->config.owner, (void *)(uintptr_t)entry->node.start, entry->node.end - entry->node.start,
                               entry->node.rights, entry->pin.record);
    *ns = weft_clock_ns() - before;
    return rc;
}

void weft_regentry_count_in(weft_regcache *cache, const weft_regentry *entry)
{
    cache->counts.pinned_regions++;
    cache->counts.pinned_bytes += entry->node.end - entry->node.start;
    if (cache->counts.pinned_bytes > cache->counts.max_pinned_bytes)
        cache->counts.max_pinned_bytes = cache->counts.pinned_bytes;
}

static void count_out(weft_regcache *cache, const weft_regentry *entry)
{
    cache->counts.pinned_regions--;
    cache->counts.pinned_bytes -= entry->node.end - entry->node.start;
    cache->own_bytes -= entry->is_own ? entry->node.end - entry->node.start : 0;
    cache->own_regions -= entry->is_own;
}

/* The helper reads the tree if there is a monitor. In a forked child, which has no helper, the lock may be held for ever. */
static bool is_tree_shared(const weft_regcache *cache) { return cache->has_helper && cache->memmon && weft_regcache_is_own(cache); }
static void lock_tree(weft_regcache *cache)
{
    if (is_tree_shared(cache))
        pthread_mutex_lock(&cache->lock);
}
static void unlock_tree(weft_regcache *cache)
{
    if (is_tree_shared(cache))
        pthread_mutex_unlock(&cache->lock);
}

void weft_regentry_keep(weft_regcache *cache, weft_regentry *entry)
{
    if (cache->memmon)
        weft_unmap_wakeup_add(entry->node.start, entry->node.end);
    lock_tree(cache);
    weft_regtree_add(&cache->root, &entry->node);
    entry->is_kept = true;
    unlock_tree(cache);
    if (cache->has_helper && cache->memmon && weft_inval_log_is_new(cache->log, cache->cursor)) {
        /* A change since the entry was made has woken no helper, or one that did not find the entry in the tree. */
        atomic_store_explicit(&cache->rereads, true, memory_order_release);
        weft_unmap_wakeup_raise(cache->wakeup);
    }
}

void weft_regentry_let_go(weft_regcache *cache, weft_regentry *entry)
{
    if (!entry->is_kept)
        return;
    lock_tree(cache);
    weft_regtree_remove(&cache->root, &entry->node);
    entry->is_kept = false;
    bool is_counted = cache->memmon && !atomic_load_explicit(&entry->is_dying, memory_order_relaxed);
    unlock_tree(cache);
    if (is_counted)
        weft_unmap_wakeup_remove(entry->node.start, entry->node.end);
    if ((entry->node.end - entry->node.start) / 4096 < WEFT_REG_SLOTS) {
        for (uint64_t at = entry->node.start; at < entry->node.end; at += 4096)
            if (*weft_regcache_slot(cache, at) == entry)
                *weft_regcache_slot(cache, at) = NULL;
        return;
    }
    for (int i = 0; i < WEFT_REG_SLOTS; i++)
        if (cache->lately[i] == entry)
            cache->lately[i] = NULL;
}

/* True if the helper is to unmap the entry: it is long, or many go at once. Not an owner's, whose release ends peers' access. */
static bool is_for_helper(weft_regcache *cache, const weft_regentry *entry)
{
    cache->batch_bytes += entry->node.end - entry->node.start;
    return !entry->is_own && weft_regcache_is_long(cache, cache->batch_bytes);
}

/* Unmaps and frees an entry without references. */
static void end_entry(weft_regcache *cache, weft_regentry *entry)
{
    count_out(cache, entry);
    if (!weft_regcache_is_own(cache))
        return;
    if (weft_regentry_state(entry) == WEFT_REG_READY) {
        entry->is_uncounted = true;
        if (is_for_helper(cache, entry) && weft_reghelper_unmap(cache, entry))
            return;
        cache->config.unmap(cache->config.owner, entry->pin.record);
    }
    if (entry->is_gone) {
        pthread_mutex_lock(&cache->lock);
        cache->gone_regions--;
        cache->gone_bytes -= entry->node.end - entry->node.start;
        pthread_mutex_unlock(&cache->lock);
    }
    free(entry);
}

void weft_regentry_drop(weft_regcache *cache, weft_regentry *entry)
{
    uint32_t state = weft_regentry_state(entry);
    if (state == WEFT_REG_READY || state == WEFT_REG_FAILED || !weft_regcache_is_own(cache) || weft_reghelper_leave(cache, entry))
        end_entry(cache, entry);
}

void weft_regentry_throw_out(weft_regcache *cache, weft_regentry *entry)
{
    weft_regentry_let_go(cache, entry);
    if (weft_regentry_refs(entry))
        return;
    weft_list_remove(&entry->idle);
    weft_regentry_drop(cache, entry);
}

void weft_regcache_reap_detached(weft_regcache *cache)
{
    weft_list_link detached = {&detached, &detached}, *job;

    if (weft_likely(!atomic_load_explicit(&cache->has_detached, memory_order_relaxed)) || !weft_regcache_is_own(cache))
        return;
    weft_reghelper_detach(cache, &detached);
    while ((job = weft_list_take(&detached))) {
        weft_regentry *entry = weft_container(job, weft_regentry, job);
        if (!entry->is_uncounted)
            count_out(cache, entry);
        free(entry);
    }
}
