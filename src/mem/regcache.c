/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache: lookup, registration and eviction. Callers (core, p2p) hold their worker's lock.
 * Invariants: an entry in the tree was tracked by the monitor before it was mapped, and the log is read before any lookup answers.
 * An entry with references is never unmapped, nor freed while the helper registers it. pinned_bytes and pinned_regions count entries mapped
 * or about to be.
 */
#include "mem/regcache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "mem/regcache_internal.h"

static bool is_at_limit(int rc) { return rc == WEFT_E_NOMEM || rc == WEFT_E_NOSPACE; }
static bool is_shared(const weft_regnode *node) { return !((const weft_regentry *)(const void *)node)->is_own; }
static bool is_ready(const weft_regnode *node)
{
    return is_shared(node) && weft_regentry_state((const weft_regentry *)(const void *)node) == WEFT_REG_READY;
}

/* -- bounds -- */

/* Drops the least recently used entry that can be dropped. False: all are in use. */
static bool evict_one(weft_regcache *cache)
{
    for (weft_list_link *link = cache->idle.next; link != &cache->idle; link = link->next) {
        weft_regentry *entry = weft_container(link, weft_regentry, idle);
        uint32_t state = weft_regentry_state(entry);
        if (state == WEFT_REG_MAPPING || state == WEFT_REG_UNMAPPING)
            continue;
        cache->counts.evictions += state == WEFT_REG_READY;
        WEFT_EVENT_RAISE(WEFT_EVENT_REG_EVICTED, NULL, (int64_t)(entry->node.end - entry->node.start));
        weft_regentry_throw_out(cache, entry);
        return true;
    }
    return false;
}

static bool is_over(const weft_regcache *cache, uint64_t more_bytes, uint64_t more_regions)
{
    const weft_regcache_counts *now = &cache->counts;
    return now->pinned_bytes + more_bytes > cache->max_bytes || now->pinned_regions + more_regions > cache->max_regions;
}

static bool make_room(weft_regcache *cache, uint64_t bytes)
{
    if (bytes > cache->max_bytes)
        return false;
    cache->batch_bytes = 0;
    weft_regcache_reap_detached(cache);
    while (is_over(cache, bytes, 1) && evict_one(cache)) {
    }
    weft_reghelper_pass_dropped(cache);
    return !is_over(cache, bytes, 1);
}

/* Evicts entry->goal bytes for an entry that a limit refused, and doubles that for the next time: few calls of map even if many small
 * entries must go. False: all are in use. */
static bool evict_for(weft_regcache *cache, weft_regentry *entry)
{
    uint64_t before = cache->counts.pinned_bytes;
    bool has_evicted = false;

    cache->batch_bytes = 0;
    while (before - cache->counts.pinned_bytes < entry->goal && evict_one(cache))
        has_evicted = true;
    entry->goal *= 2;
    return has_evicted;
}

static int nothing_left(const weft_regcache *cache, uint64_t bytes, const weft_regentry *counted)
{
    uint64_t own = counted ? bytes : 0;
    return weft_fail(WEFT_E_NOSPACE,
                     "cannot register %llu more bytes for the network: %llu bytes in %llu registrations are in use; "
                     "raise the limit on locked memory (ulimit -l)",
                     (unsigned long long)bytes, (unsigned long long)(cache->counts.pinned_bytes - own),
                     (unsigned long long)(cache->counts.pinned_regions - !!counted));
}

/* Maps in this thread. At an unknown limit (of device or system) evicts others and tries again. */
static int map_now(weft_regcache *cache, weft_regentry *entry)
{
    uint64_t bytes = entry->node.end - entry->node.start, ns;
    int rc;

    do {
        rc = weft_regentry_map(cache, entry, &ns);
        cache->counts.pin_ns += ns;
    } while (is_at_limit(rc) && (weft_reghelper_unmap_now(cache) || evict_for(cache, entry)));
    if (is_at_limit(rc))
        rc = nothing_left(cache, bytes, NULL);
    if (!rc)
        WEFT_EVENT_RAISE(WEFT_EVENT_REG_MADE, NULL, (int64_t)bytes, (int64_t)ns, 0);
    entry->rc = rc;
    atomic_store_explicit(&entry->state, rc ? WEFT_REG_FAILED : WEFT_REG_READY, memory_order_relaxed);
    return rc;
}

/* Gives a new entry, which counts already, to the helper. False: there is no thread for it. */
static bool map_by_helper(weft_regcache *cache, weft_regentry *entry, bool is_awaited)
{
    if (!weft_reghelper_submit(cache, entry, is_awaited))
        return false;
    cache->counts.async++;
    WEFT_EVENT_RAISE(WEFT_EVENT_REG_MADE, NULL, (int64_t)(entry->node.end - entry->node.start), 0, 1);
    return true;
}

/* -- fast path -- */

/* Removes an entry that the helper has marked: its memory has changed. */
static void throw_out_dying(weft_regcache *cache, weft_regentry *entry)
{
    cache->batch_bytes = 0;
    cache->counts.invalidations++;
    weft_regentry_throw_out(cache, entry);
    weft_reghelper_pass_dropped(cache);
}

static __attribute__((noinline, cold)) weft_reg *refuse_dying(weft_regcache *cache, weft_regentry *entry)
{
    weft_regentry_set_refs(entry, weft_regentry_refs(entry) - 1);
    throw_out_dying(cache, entry);
    return NULL;
}

/* NULL: the helper is about to unmap it. */
static inline weft_reg *hold_entry(weft_regcache *cache, weft_regentry *entry)
{
    uint32_t refs = weft_regentry_refs(entry);

    if (weft_unlikely(!weft_regentry_set_refs(entry, refs + 1)))
        return refuse_dying(cache, entry);
    if (!refs)
        weft_list_remove(&entry->idle);
    cache->counts.hits++;
    return &entry->pin;
}

static weft_regentry *find(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regentry **slot = weft_regcache_slot(cache, start), *entry = *slot;

    if (weft_likely(entry && entry->node.start <= start && entry->node.end >= end && (entry->node.rights & rights) == rights))
        return entry; /* READY: no other entry enters the table */
    weft_regnode *node = weft_regtree_find(cache->root, start, end, rights, is_ready);
    return node ? *slot = entry_of(node) : NULL;
}

weft_reg *weft_regcache_lookup_synced(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, bool *is_synced)
{
    uint64_t start = (uint64_t)(uintptr_t)addr, end = start + bytes;

    if (weft_unlikely(!cache->log))
        return NULL;
    if (weft_unlikely(weft_inval_log_is_new(cache->log, cache->cursor)))
        weft_regcache_read_log(cache);
    weft_regentry *entry = find(cache, start, end, rights);
    if (!entry)
        return NULL;
    if (weft_likely(*is_synced || !weft_regcache_needs_sync(cache)))
        return hold_entry(cache, entry);
    if (!weft_regcache_sync(cache, is_synced))
        return NULL;
    entry = find(cache, start, end, rights);
    return entry ? hold_entry(cache, entry) : NULL;
}

weft_reg *weft_regcache_lookup(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights)
{
    bool is_synced = false;
    return weft_regcache_lookup_synced(cache, addr, bytes, rights, &is_synced);
}

/* -- slow path -- */

/* Drops the entries that the new one contains. Neighbours are not merged: that would register their pages again, and a buffer that is
 * registered chunk by chunk would pay for most pages twice. */
static void absorb(weft_regcache *cache, weft_regentry *entry)
{
    weft_regnode *next;

    for (weft_regnode *node = weft_regtree_chain(cache->root, entry->node.start, entry->node.end); node; node = next) {
        next = node->chained;
        bool is_within = node != &entry->node && node->start >= entry->node.start && node->end <= entry->node.end;
        if (is_within && is_shared(node) && (node->rights | entry->node.rights) == entry->node.rights)
            weft_regentry_throw_out(cache, entry_of(node));
    }
    weft_reghelper_pass_dropped(cache);
}

/* Makes an entry, referenced once. 0: registered; INPROGRESS: the helper has it. */
static int map_range(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights, weft_regentry **made)
{
    if (!make_room(cache, end - start))
        return weft_fail(WEFT_E_NOSPACE,
                         "%llu bytes do not fit into what may be registered for the network: %llu of %llu bytes, %llu of %u "
                         "registrations are in use (WEFT_REGCACHE_MAX_SIZE, WEFT_REGCACHE_MAX_COUNT)",
                         (unsigned long long)(end - start), (unsigned long long)cache->counts.pinned_bytes,
                         (unsigned long long)cache->max_bytes, (unsigned long long)cache->counts.pinned_regions,
                         cache->max_regions);
    weft_regentry *entry = weft_regentry_new(cache, start, end, rights);
    if (!entry)
        return weft_fail(WEFT_E_NOMEM, "no memory for the record of a registration");
    weft_regentry_set_refs(entry, 1);
    *made = entry;
    entry->is_awaited = weft_regcache_is_long(cache, end - start) && map_by_helper(cache, entry, true);
    if (!entry->is_awaited) {
        int rc = map_now(cache, entry);
        if (rc) {
            free(entry);
            return rc;
        }
    }
    weft_regentry_count_in(cache, entry);
    return entry->is_awaited ? WEFT_INPROGRESS : WEFT_OK;
}

/* Registers a short range here, although it was given to the helper, which has not begun. */
static void take_back(weft_regcache *cache, weft_regentry *entry)
{
    if (weft_regcache_is_long(cache, entry->node.end - entry->node.start) || !weft_reghelper_take(cache, entry))
        weft_reghelper_hurry(cache, entry);
    else
        map_now(cache, entry);
}

/* Acquires an entry that was given to the helper. 0: there is none, or it is registered by now; INPROGRESS: the helper still has it. */
static int join(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights, weft_reg **pin)
{
    weft_regnode *node = cache->has_helper || cache->config.model ? weft_regtree_find(cache->root, start, end, rights, is_shared) : NULL;
    bool is_synced = false;

    if (node && weft_regentry_state(entry_of(node)) != WEFT_REG_READY && weft_regcache_needs_sync(cache))
        node = weft_regcache_sync(cache, &is_synced) ? weft_regtree_find(cache->root, start, end, rights, is_shared) : NULL;
    if (!node)
        return WEFT_OK;
    weft_regentry *entry = entry_of(node);
    if (!weft_regentry_refs(entry)) /* map_now() must not evict it */
        weft_list_remove(&entry->idle);
    weft_regentry_set_refs(entry, weft_regentry_refs(entry) + 1); /* before the state is read: the helper does not unmap it, or shows it */
    take_back(cache, entry);
    uint32_t state = weft_regentry_state(entry);
    if (state == WEFT_REG_WAITING || state == WEFT_REG_MAPPING) {
        cache->counts.hits++;
        *pin = &entry->pin;
        return WEFT_INPROGRESS;
    }
    if (state == WEFT_REG_FAILED)
        weft_regentry_let_go(cache, entry);
    weft_regcache_release(cache, &entry->pin);
    return WEFT_OK;
}

static int hold_new(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights, weft_reg **pin)
{
    weft_regentry *entry = NULL;
    bool is_covered = weft_regcache_track(cache, start, end);
    int rc = map_range(cache, start, end, rights, &entry);

    if (rc < 0) {
        cache->counts.refused++;
        return rc;
    }
    if (is_covered) {
        if (!rc)
            absorb(cache, entry);
        weft_regentry_keep(cache, entry);
        weft_reghelper_want(cache);
    } else {
        cache->counts.uncached++;
    }
    *pin = &entry->pin;
    return rc;
}

/* The helper has failed: evicts others and tries again if that was at a limit. */
static int settle_failed(weft_regcache *cache, weft_regentry *entry)
{
    int rc = entry->rc;

    if (is_at_limit(rc) && evict_for(cache, entry) && weft_reghelper_submit(cache, entry, true))
        return WEFT_INPROGRESS;
    weft_regentry_let_go(cache, entry);
    cache->counts.refused++;
    return is_at_limit(rc) ? nothing_left(cache, entry->node.end - entry->node.start, entry)
                           : weft_fail(rc, "%llu bytes at %p cannot be registered for the network: %s",
                                       (unsigned long long)(entry->node.end - entry->node.start), (void *)(uintptr_t)entry->node.start,
                                       weft_status_text(rc));
}

bool weft_regcache_is_settled(const weft_reg *pin)
{
    uint32_t state = weft_regentry_state(weft_container(pin, const weft_regentry, pin));
    return state == WEFT_REG_READY || state == WEFT_REG_FAILED;
}

int weft_regcache_settle(weft_regcache *cache, weft_reg *pin)
{
    weft_regentry *entry = weft_container(pin, weft_regentry, pin);

    if (!weft_regcache_is_settled(pin))
        return WEFT_INPROGRESS;
    if (weft_regentry_state(entry) == WEFT_REG_FAILED)
        return settle_failed(cache, entry);
    if (entry->is_awaited && entry->is_kept && !entry->is_own)
        absorb(cache, entry);
    entry->is_awaited = false;
    return WEFT_OK;
}

void weft_regcache_hold(weft_reg *pin)
{
    weft_regentry *entry = weft_container(pin, weft_regentry, pin);
    weft_regentry_set_refs(entry, weft_regentry_refs(entry) + 1);
}

int weft_regcache_acquire(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t start = first & ~(cache->page - 1), end = (last + cache->page - 1) & ~(cache->page - 1);

    *pin = weft_regcache_lookup(cache, addr, bytes, rights);
    if (!*pin && join(cache, first, last, rights, pin))
        return WEFT_INPROGRESS;
    if (!*pin)
        *pin = weft_regcache_lookup(cache, addr, bytes, rights);
    if (*pin)
        return WEFT_OK;
    cache->counts.misses++;
    if (end < start)
        return weft_fail(WEFT_E_ARG, "a buffer of %llu bytes at %p wraps around the address space", (unsigned long long)bytes, addr);
    return hold_new(cache, start, end, rights, pin);
}

int weft_regcache_acquire_own(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t start = first & ~(cache->page - 1), end = (last + cache->page - 1) & ~(cache->page - 1);
    weft_regentry *entry = NULL;
    bool is_covered;
    int rc;

    if (end < start || cache->own_bytes + (end - start) > cache->max_bytes / 2 || cache->own_regions + 1 > (cache->max_regions + 1) / 2)
        return weft_fail(WEFT_E_NOSPACE, "%llu bytes do not fit into the half of the registrations that persistent requests may hold",
                         (unsigned long long)bytes);
    is_covered = weft_regcache_track(cache, start, end);
    if (!is_covered && weft_regcache_is_long(cache, end - start))
        return weft_fail(WEFT_E_UNSUPPORTED, "%llu bytes at %p may change without notice: to register them at each start takes too long",
                         (unsigned long long)bytes, addr);
    rc = map_range(cache, start, end, rights, &entry);
    if (rc < 0) {
        cache->counts.refused++;
        return rc;
    }
    entry->is_own = true;
    cache->own_bytes += end - start;
    cache->own_regions++;
    if (is_covered)
        weft_regentry_keep(cache, entry);
    else
        cache->counts.uncached++;
    *pin = &entry->pin;
    return rc;
}

/* True if the range is registered, queued or permanently refused. After a failure at a limit evicts enough bytes and returns false,
 * for a retry. */
static bool is_tried(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regnode *node = weft_regtree_find(cache->root, start, end, rights, is_shared);
    uint64_t freed = 0;

    if (!node || weft_regentry_state(entry_of(node)) != WEFT_REG_FAILED)
        return node != NULL;
    if (!is_at_limit(entry_of(node)->rc))
        return true;
    weft_regentry_throw_out(cache, entry_of(node));
    for (uint64_t before = cache->counts.pinned_bytes; freed < end - start; freed = before - cache->counts.pinned_bytes)
        if (!evict_one(cache))
            return true; /* all in use; a later call may retry */
    return false;
}

void weft_regcache_acquire_async(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t start = first & ~(cache->page - 1), end = (last + cache->page - 1) & ~(cache->page - 1);

    /* The log must be read first: entries dropped by that must not count in is_tried(). */
    if (end < start || !weft_regcache_track(cache, start, end) || is_tried(cache, start, end, rights) || !make_room(cache, end - start))
        return;
    weft_regentry *entry = weft_regentry_new(cache, start, end, rights);
    if (!entry)
        return;
    weft_regentry_count_in(cache, entry);
    weft_regentry_keep(cache, entry); /* before it is mapped: a change meanwhile drops it */
    weft_list_append(&cache->idle, &entry->idle);
    if (map_by_helper(cache, entry, false))
        return;
    atomic_store_explicit(&entry->state, WEFT_REG_FAILED, memory_order_relaxed);
    weft_regentry_throw_out(cache, entry);
}

void weft_regcache_release(weft_regcache *cache, weft_reg *pin)
{
    weft_regentry *entry = weft_container(pin, weft_regentry, pin);

    uint32_t refs = weft_regentry_refs(entry) - 1;
    bool may_stay = weft_regentry_set_refs(entry, refs);
    if (refs)
        return;
    if (entry->is_own)
        weft_regentry_let_go(cache, entry);
    if (!entry->is_kept) {
        cache->batch_bytes = 0;
        weft_regentry_drop(cache, entry);
        weft_reghelper_pass_dropped(cache);
        return;
    }
    weft_list_append(&cache->idle, &entry->idle);
    if (weft_unlikely(!may_stay))
        throw_out_dying(cache, entry);
    if (weft_unlikely(is_over(cache, 0, 0)))
        weft_regcache_reclaim(cache);
}

void weft_regcache_reclaim(weft_regcache *cache)
{
    if (!cache->log)
        return;
    if (weft_unlikely(weft_inval_log_is_new(cache->log, cache->cursor)))
        weft_regcache_read_log(cache);
    cache->batch_bytes = 0;
    weft_regcache_reap_detached(cache);
    while (weft_unlikely(is_over(cache, 0, 0)) && evict_one(cache)) {
    }
    weft_reghelper_pass_dropped(cache);
}

void weft_regcache_flush(weft_regcache *cache)
{
    weft_regcache_invalidate_all(cache);
    weft_reghelper_pass_dropped(cache);
    weft_regcache_reap_detached(cache);
}

int weft_regcache_open(const weft_regcache_config *config, weft_regcache **made)
{
    weft_regcache *cache = NULL;

    *made = NULL;
    if (posix_memalign((void **)&cache, WEFT_LINE, sizeof(*cache)))
        return weft_fail(WEFT_E_NOMEM, "no memory for a registration cache");
    memset(cache, 0, sizeof(*cache));
    cache->config = *config;
    cache->needs_no_memmon = config->needs_no_memmon ||
                              (config->pages_on_demand && weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_ODP);
    cache->page = (uint64_t)sysconf(_SC_PAGESIZE);
    cache->process = getpid();
    weft_list_init(&cache->idle);
    weft_list_init(&cache->queue);
    weft_list_init(&cache->dropped);
    weft_list_init(&cache->unmaps);
    weft_list_init(&cache->detached);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->unmapped, NULL);
    weft_regcache_limit(cache);
    *made = cache;
    return WEFT_OK;
}

void weft_regcache_close(weft_regcache *cache)
{
    /* In a child the helper does not exist, its lock may be held forever, and the registrations are the parent's. */
    if (!cache || !weft_regcache_is_own(cache))
        return;
    weft_regcache_flush(cache); /* an entry being mapped becomes DETACHED; the helper unmaps it before it ends */
    weft_reghelper_end(cache);
    weft_regcache_reap_detached(cache);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->unmapped);
    free(cache);
}
