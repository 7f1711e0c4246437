/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache: lookup, registration and eviction. Callers (core, p2p) hold their worker's lock.
 * Invariants: an entry in the tree was tracked by the monitor before it was mapped, and the log is read before any lookup answers.
 * An entry with references is never unmapped. pinned_bytes and pinned_regions count entries mapped or about to be.
 */
#include "mem/regcache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "mem/regcache_internal.h"

static const weft_inval_log silence; /* empty log for caches without a monitor */

static weft_regentry *entry_of(weft_regnode *node) { return (weft_regentry *)(void *)node; }
static uint32_t state_of(const weft_regentry *entry) { return atomic_load_explicit(&entry->state, memory_order_acquire); }
static bool is_shared(const weft_regnode *node) { return !((const weft_regentry *)(const void *)node)->is_own; }
static bool is_ready(const weft_regnode *node)
{
    return is_shared(node) && state_of((const weft_regentry *)(const void *)node) == WEFT_REG_READY;
}

/* Slot for the page of a lookup's first byte. Multiplicative hash, as buffers are often a power of two apart. */
static weft_regentry **slot_of(weft_regcache *cache, uint64_t addr)
{
    return &cache->lately[(addr / 4096 * 0x9e3779b97f4a7c15u) >> (64 - WEFT_REG_SLOT_BITS)];
}

/* False in a forked child: the entries are the parent's and must not be unmapped or freed. */
static bool is_own_process(const weft_regcache *cache) { return getpid() == cache->process; }

/* -- entries -- */

static weft_regentry *make_entry(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regentry *entry = NULL;

    if (posix_memalign((void **)&entry, 64, sizeof(*entry) + cache->config.record_bytes))
        return NULL;
    memset(entry, 0, sizeof(*entry) + cache->config.record_bytes);
    entry->node.start = entry->pin.start = start;
    entry->node.end = entry->pin.end = end;
    entry->node.rights = entry->pin.rights = rights;
    atomic_init(&entry->state, WEFT_REG_MAPPING);
    weft_list_init(&entry->idle);
    weft_list_init(&entry->job);
    return entry;
}

void weft_regentry_free(weft_regcache *cache, weft_regentry *entry)
{
    (void)cache;
    free(entry);
}

int weft_regentry_map(weft_regcache *cache, weft_regentry *entry, uint64_t *ns)
{
    uint64_t before = weft_clock_ns();
    int rc = cache->config.map(cache->config.owner, (void *)(uintptr_t)entry->node.start, entry->node.end - entry->node.start,
                               entry->node.rights, entry->pin.record);
    *ns = weft_clock_ns() - before;
    return rc;
}

static void count_in(weft_regcache *cache, const weft_regentry *entry)
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
}

static void keep(weft_regcache *cache, weft_regentry *entry)
{
    weft_regtree_add(&cache->root, &entry->node);
    entry->is_kept = true;
}

/* Removes the entry from the tree and from the hash table. */
static void let_go(weft_regcache *cache, weft_regentry *entry)
{
    if (!entry->is_kept)
        return;
    weft_regtree_remove(&cache->root, &entry->node);
    entry->is_kept = false;
    if ((entry->node.end - entry->node.start) / 4096 < WEFT_REG_SLOTS) {
        for (uint64_t at = entry->node.start; at < entry->node.end; at += 4096)
            if (*slot_of(cache, at) == entry)
                *slot_of(cache, at) = NULL;
        return;
    }
    for (int i = 0; i < WEFT_REG_SLOTS; i++)
        if (cache->lately[i] == entry)
            cache->lately[i] = NULL;
}

/* Unmaps and frees an entry without references. */
static void end_entry(weft_regcache *cache, weft_regentry *entry)
{
    count_out(cache, entry);
    cache->own_bytes -= entry->is_own ? entry->node.end - entry->node.start : 0;
    cache->own_regions -= entry->is_own;
    if (!is_own_process(cache))
        return;
    if (state_of(entry) == WEFT_REG_READY)
        cache->config.unmap(cache->config.owner, entry->pin.record);
    weft_regentry_free(cache, entry);
}

/* Drops an entry: unmapped now, at its last release, or by the helper if that is registering it. */
static void throw_out(weft_regcache *cache, weft_regentry *entry)
{
    let_go(cache, entry);
    if (entry->refs)
        return;
    weft_list_remove(&entry->idle);
    uint32_t state = state_of(entry);
    if (state == WEFT_REG_READY || state == WEFT_REG_FAILED || !is_own_process(cache) || weft_reghelper_leave(cache, entry))
        end_entry(cache, entry);
}

static void reap_detached(weft_regcache *cache)
{
    if (weft_likely(!atomic_load_explicit(&cache->detached_count, memory_order_relaxed)) || !is_own_process(cache))
        return;
    for (weft_regentry *entry; (entry = weft_reghelper_detach(cache)) != NULL;) {
        count_out(cache, entry);
        weft_regentry_free(cache, entry);
    }
}

/* -- invalidation -- */

static void invalidate(void *arg, weft_range range)
{
    weft_regcache *cache = arg;
    weft_regnode *next;

    for (weft_regnode *node = weft_regtree_chain(cache->root, range.start & ~WEFT_INVAL_LOG_DISCARDED, range.end); node; node = next) {
        next = node->chained;
        cache->counts.invalidations++;
        throw_out(cache, entry_of(node));
    }
}

static void read_inval_log(weft_regcache *cache)
{
    if (!weft_inval_log_read(cache->log, &cache->cursor, invalidate, cache))
        invalidate(cache, (weft_range){0, UINT64_MAX});
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

/* True if every change of the range will be published from now on. Reads the log, so an entry added hereafter misses none. */
static bool may_keep(weft_regcache *cache, uint64_t start, uint64_t end)
{
    if (!cache->log)
        start_monitor(cache);
    bool is_covered = cache->needs_no_memmon || weft_memmon_track(cache->memmon, start, end);
    read_inval_log(cache);
    return is_covered;
}

/* -- bounds -- */

/* Drops the least recently used entry that can be dropped. False: all are in use. */
static bool evict_one(weft_regcache *cache)
{
    for (weft_list_link *link = cache->idle.next; link != &cache->idle; link = link->next) {
        weft_regentry *entry = weft_container(link, weft_regentry, idle);
        if (state_of(entry) == WEFT_REG_MAPPING)
            continue;
        cache->counts.evictions += state_of(entry) == WEFT_REG_READY;
        WEFT_EVENT_RAISE(WEFT_EVENT_REG_EVICTED, NULL, (int64_t)(entry->node.end - entry->node.start));
        throw_out(cache, entry);
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
    reap_detached(cache);
    while (is_over(cache, bytes, 1))
        if (!evict_one(cache))
            return false;
    return true;
}

/* Maps in this thread. At an unknown limit (of device or system) evicts as many bytes as needed, then twice that, and so on: few
 * calls of map even if many small entries must go. */
static int map_now(weft_regcache *cache, weft_regentry *entry)
{
    uint64_t bytes = entry->node.end - entry->node.start, goal = bytes, ns;

    for (;;) {
        int rc = weft_regentry_map(cache, entry, &ns);
        cache->counts.pin_ns += ns;
        if (rc != WEFT_E_NOMEM && rc != WEFT_E_NOSPACE) {
            entry->rc = rc;
            if (!rc)
                WEFT_EVENT_RAISE(WEFT_EVENT_REG_MADE, NULL, (int64_t)bytes, (int64_t)ns, 0);
            atomic_store_explicit(&entry->state, rc ? WEFT_REG_FAILED : WEFT_REG_READY, memory_order_relaxed);
            return rc;
        }
        uint64_t before = cache->counts.pinned_bytes, evicted = 0;
        while (before - cache->counts.pinned_bytes < goal && evict_one(cache))
            evicted++;
        goal *= 2;
        if (!evicted) {
            entry->rc = WEFT_E_NOSPACE;
            atomic_store_explicit(&entry->state, WEFT_REG_FAILED, memory_order_relaxed);
            return weft_fail(WEFT_E_NOSPACE,
                             "cannot register %llu more bytes for the network: %llu bytes in %llu registrations are in use; "
                             "raise the limit on locked memory (ulimit -l)",
                             (unsigned long long)bytes, (unsigned long long)cache->counts.pinned_bytes,
                             (unsigned long long)cache->counts.pinned_regions);
        }
    }
}

/* -- fast path -- */

static inline weft_reg *hold_entry(weft_regcache *cache, weft_regentry *entry)
{
    if (!entry->refs++)
        weft_list_remove(&entry->idle);
    cache->counts.hits++;
    return &entry->pin;
}

static weft_regentry *find(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regentry **slot = slot_of(cache, start), *entry = *slot;

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
        read_inval_log(cache);
    weft_regentry *entry = find(cache, start, end, rights);
    if (!entry)
        return NULL;
    if (weft_likely(*is_synced || !cache->memmon || !weft_memmon_needs_sync(cache->memmon)))
        return hold_entry(cache, entry);
    /* Another thread may have unmapped this range and a third one remapped it before the event was read. */
    cache->counts.syncs++;
    if (!weft_memmon_sync(cache->memmon))
        return NULL;
    *is_synced = true;
    if (weft_inval_log_is_new(cache->log, cache->cursor)) {
        read_inval_log(cache);
        entry = find(cache, start, end, rights);
    }
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
        bool is_within = node->start >= entry->node.start && node->end <= entry->node.end;
        if (is_within && is_shared(node) && (node->rights | entry->node.rights) == entry->node.rights)
            throw_out(cache, entry_of(node));
    }
}

static int map_range(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights, weft_regentry **made)
{
    if (!make_room(cache, end - start))
        return weft_fail(WEFT_E_NOSPACE,
                         "%llu bytes do not fit into what may be registered for the network: %llu of %llu bytes, %llu of %u "
                         "registrations are in use (WEFT_REGCACHE_MAX_SIZE, WEFT_REGCACHE_MAX_COUNT)",
                         (unsigned long long)(end - start), (unsigned long long)cache->counts.pinned_bytes,
                         (unsigned long long)cache->max_bytes, (unsigned long long)cache->counts.pinned_regions,
                         cache->max_regions);
    weft_regentry *entry = make_entry(cache, start, end, rights);
    if (!entry)
        return weft_fail(WEFT_E_NOMEM, "no memory for the record of a registration");
    int rc = map_now(cache, entry);
    if (rc) {
        weft_regentry_free(cache, entry);
        return rc;
    }
    count_in(cache, entry);
    entry->refs = 1;
    *made = entry;
    return WEFT_OK;
}

/* Completes a registration given to the helper: waits for it or does it here. False: none, or it failed. */
static bool finish_ahead(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regnode *node = cache->has_helper ? weft_regtree_find(cache->root, start, end, rights, is_shared) : NULL;

    if (!node)
        return false;
    weft_regentry *entry = entry_of(node);
    uint32_t state = state_of(entry);
    if (state == WEFT_REG_READY)
        return true; /* since the lookup */
    if (state != WEFT_REG_FAILED && weft_reghelper_take(cache, entry)) {
        entry->refs++; /* prevents its eviction by map_now() */
        weft_list_remove(&entry->idle);
        map_now(cache, entry);
        entry->refs--;
        weft_list_append(&cache->idle, &entry->idle);
    }
    bool is_good = state_of(entry) == WEFT_REG_READY;
    if (!is_good)
        throw_out(cache, entry);
    return is_good;
}

static int hold_new(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights, weft_reg **pin)
{
    weft_regentry *entry = NULL;
    bool is_covered = may_keep(cache, start, end);
    int rc = map_range(cache, start, end, rights, &entry);

    if (rc) {
        cache->counts.refused++;
        return rc;
    }
    if (is_covered) {
        absorb(cache, entry);
        keep(cache, entry);
    } else {
        cache->counts.uncached++;
    }
    *pin = &entry->pin;
    return WEFT_OK;
}

int weft_regcache_acquire(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t start = first & ~(cache->page - 1), end = (last + cache->page - 1) & ~(cache->page - 1);

    *pin = weft_regcache_lookup(cache, addr, bytes, rights);
    if (!*pin && finish_ahead(cache, first, last, rights))
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
    is_covered = may_keep(cache, start, end);
    rc = map_range(cache, start, end, rights, &entry);
    if (rc) {
        cache->counts.refused++;
        return rc;
    }
    entry->is_own = true;
    cache->own_bytes += end - start;
    cache->own_regions++;
    if (is_covered)
        keep(cache, entry);
    else
        cache->counts.uncached++;
    *pin = &entry->pin;
    return WEFT_OK;
}

bool weft_regcache_is_current(weft_regcache *cache, const weft_reg *pin)
{
    const weft_regentry *entry = weft_container(pin, const weft_regentry, pin);

    if (weft_unlikely(weft_inval_log_is_new(cache->log, cache->cursor)))
        read_inval_log(cache);
    if (!entry->is_kept || !cache->memmon || !weft_memmon_needs_sync(cache->memmon))
        return entry->is_kept;
    cache->counts.syncs++;
    if (!weft_memmon_sync(cache->memmon))
        return false;
    if (weft_inval_log_is_new(cache->log, cache->cursor))
        read_inval_log(cache);
    return entry->is_kept;
}

/* True if the range is registered, queued or permanently refused. After a failure at a limit evicts enough bytes and returns false,
 * for a retry. */
static bool is_tried(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights)
{
    weft_regnode *node = weft_regtree_find(cache->root, start, end, rights, is_shared);
    uint64_t freed = 0;

    if (!node || state_of(entry_of(node)) != WEFT_REG_FAILED)
        return node != NULL;
    int rc = entry_of(node)->rc;
    if (rc != WEFT_E_NOMEM && rc != WEFT_E_NOSPACE)
        return true;
    throw_out(cache, entry_of(node));
    for (uint64_t before = cache->counts.pinned_bytes; freed < end - start; freed = before - cache->counts.pinned_bytes)
        if (!evict_one(cache))
            return true; /* all in use; a later call may retry */
    return false;
}

void weft_regcache_acquire_async(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t start = first & ~(cache->page - 1), end = (last + cache->page - 1) & ~(cache->page - 1);

    /* may_keep() must be first: it reads the log, and entries dropped by that must not count in is_tried(). */
    if (end < start || !may_keep(cache, start, end) || is_tried(cache, start, end, rights) || !make_room(cache, end - start))
        return;
    weft_regentry *entry = make_entry(cache, start, end, rights);
    if (!entry)
        return;
    count_in(cache, entry);
    keep(cache, entry); /* before it is mapped: a change meanwhile drops it */
    weft_list_append(&cache->idle, &entry->idle);
    if (weft_reghelper_submit(cache, entry)) {
        cache->counts.async++;
        WEFT_EVENT_RAISE(WEFT_EVENT_REG_MADE, NULL, (int64_t)(end - start), 0, 1);
        return;
    }
    atomic_store_explicit(&entry->state, WEFT_REG_FAILED, memory_order_relaxed);
    throw_out(cache, entry);
}

void weft_regcache_release(weft_regcache *cache, weft_reg *pin)
{
    weft_regentry *entry = weft_container(pin, weft_regentry, pin);

    if (--entry->refs)
        return;
    if (entry->is_own)
        let_go(cache, entry);
    if (!entry->is_kept) {
        end_entry(cache, entry);
        return;
    }
    weft_list_append(&cache->idle, &entry->idle);
    if (weft_unlikely(is_over(cache, 0, 0)))
        weft_regcache_reclaim(cache);
}

void weft_regcache_reclaim(weft_regcache *cache)
{
    if (!cache->log)
        return;
    if (weft_unlikely(weft_inval_log_is_new(cache->log, cache->cursor)))
        read_inval_log(cache);
    reap_detached(cache);
    while (weft_unlikely(is_over(cache, 0, 0)) && evict_one(cache)) {
    }
}

bool weft_regcache_may_keep(weft_regcache *cache, const void *addr, uint64_t bytes)
{
    uint64_t first = (uint64_t)(uintptr_t)addr, last = first + (bytes ? bytes : 1);
    uint64_t end = (last + cache->page - 1) & ~(cache->page - 1);
    return end >= last && end - first <= cache->max_bytes && may_keep(cache, first & ~(cache->page - 1), end);
}

void weft_regcache_flush(weft_regcache *cache)
{
    invalidate(cache, (weft_range){0, UINT64_MAX});
    reap_detached(cache);
}

weft_regcache_counts weft_regcache_stats(const weft_regcache *cache)
{
    weft_regcache_counts counts = cache->counts;

    if (cache->has_helper && is_own_process(cache)) {
        pthread_mutex_lock((pthread_mutex_t *)&cache->lock);
        counts.pin_ns += cache->pin_ns_ahead;
        pthread_mutex_unlock((pthread_mutex_t *)&cache->lock);
    }
    return counts;
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
    weft_list_init(&cache->detached);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->work, NULL);
    pthread_cond_init(&cache->done, NULL);
    weft_regcache_limit(cache);
    *made = cache;
    return WEFT_OK;
}

void weft_regcache_close(weft_regcache *cache)
{
    /* In a child the helper does not exist, its lock may be held forever, and the registrations are the parent's. */
    if (!cache || !is_own_process(cache))
        return;
    weft_regcache_flush(cache); /* an entry being mapped becomes DETACHED; the helper unmaps it before it ends */
    weft_reghelper_end(cache);
    for (weft_regentry *entry; (entry = weft_reghelper_detach(cache)) != NULL;)
        weft_regentry_free(cache, entry);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->work);
    pthread_cond_destroy(&cache->done);
    free(cache);
}
