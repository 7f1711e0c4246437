/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_async: helper thread that registers and unregisters long ranges, registers others in advance, and unregisters what the program
 * has unmapped (regcache_unpin). One per cache, started by the first weft_reghelper_submit() or _want(), asleep while its queues are empty
 * and no registered memory changes. It dequeues an entry, maps it, stores the state and calls config.ready. The simulator has no thread but
 * a model of one: it maps at once, and the result counts from a later time on.
 * Invariant: the worker must not free an entry that the helper is MAPPING or UNMAPPING; map and unmap are called without cache->lock.
 */
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "mem/regcache_internal.h"
#include "mem/unmap_wakeup.h"

/* The worker frees the entry. */
static void unmap(weft_regcache *cache, weft_regentry *entry, bool is_mapped)
{
    if (is_mapped)
        cache->config.unmap(cache->config.owner, entry->pin.record);
    pthread_mutex_lock(&cache->lock);
    weft_regentry_detach(cache, entry);
    pthread_mutex_unlock(&cache->lock);
}

static void end_unmapping(weft_regcache *cache)
{
    pthread_mutex_lock(&cache->lock);
    cache->is_unmapping = false;
    pthread_cond_broadcast(&cache->unmapped);
    pthread_mutex_unlock(&cache->lock);
}

static void work_on(weft_regcache *cache, weft_regentry *entry)
{
    weft_list_link changed;
    uint64_t ns;
    bool is_detached;

    weft_list_init(&changed);
    int rc = weft_regentry_map(cache, entry, &ns);
    pthread_mutex_lock(&cache->lock);
    cache->pin_ns_ahead += ns;
    is_detached = atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_DETACHED;
    if (!is_detached) {
        entry->rc = rc;
        if (!rc && entry->is_kept && !entry->is_own && atomic_load_explicit(&entry->is_dying, memory_order_relaxed))
            weft_list_append(&changed, &entry->job); /* marked while it was not READY */
        weft_regunpin_claim(&changed);
        if (weft_list_is_empty(&changed)) /* last: the worker may free it now */
            atomic_store_explicit(&entry->state, rc ? WEFT_REG_FAILED : WEFT_REG_READY, memory_order_release);
    }
    pthread_mutex_unlock(&cache->lock);
    if (is_detached)
        unmap(cache, entry, !rc);
    else if (cache->config.ready)
        cache->config.ready(cache->config.owner);
    weft_regunpin_unmap(cache, &changed);
}

static void *help(void *arg)
{
    weft_regcache *cache = arg;
    weft_list_link *job = NULL;
    bool is_unmap, is_closing, can_unpin;

    pthread_setname_np(pthread_self(), "weft-pin");
    can_unpin = weft_regunpin_prepare();
    for (;;) {
        uint32_t seen = atomic_load_explicit(cache->wakeup, memory_order_acquire);
        if (can_unpin)
            weft_regunpin_changed(cache);
        pthread_mutex_lock(&cache->lock);
        if (!(job = weft_list_take(&cache->unmaps)))
            job = weft_list_take(&cache->queue);
        is_closing = cache->is_closing;
        weft_regentry *entry = job ? weft_container(job, weft_regentry, job) : NULL;
        is_unmap = cache->is_unmapping = job && atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_DETACHED;
        if (job && !is_unmap)
            atomic_store_explicit(&entry->state, WEFT_REG_MAPPING, memory_order_relaxed);
        pthread_mutex_unlock(&cache->lock);
        if (!job && is_closing)
            return NULL;
        if (!job) {
            syscall(SYS_futex, cache->wakeup, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            continue;
        }
        if (!is_unmap) {
            work_on(cache, entry);
            continue;
        }
        unmap(cache, entry, true);
        end_unmapping(cache);
    }
}

static bool start(weft_regcache *cache)
{
    sigset_t all, before;

    cache->wakeup = weft_unmap_wakeup_open();
    cache->unpin_cursor = cache->cursor;
    sigfillset(&all); /* signals must be handled by the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&cache->helper, NULL, help, cache);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        weft_unmap_wakeup_close(cache->wakeup);
        weft_log_info("no thread for asynchronous registration (%d): memory is registered when a transfer needs it", rc);
    }
    return !rc;
}

static void enqueue(weft_regcache *cache, weft_regentry *entry, bool is_first)
{
    weft_list_append(is_first ? cache->queue.next : &cache->queue, &entry->job);
}

/* Maps now, as work of the modelled helper. */
static void model(weft_regcache *cache, weft_regentry *entry)
{
    uint64_t ns;

    cache->config.model->begin(cache->config.owner);
    entry->rc = weft_regentry_map(cache, entry, &ns);
    entry->ready_ns = cache->config.model->end(cache->config.owner);
    cache->counts.pin_ns += ns;
    atomic_store_explicit(&entry->state, WEFT_REG_MODELLED, memory_order_relaxed);
}

uint32_t weft_reghelper_model_state(const weft_regentry *entry)
{
    const weft_regcache_config *config = &entry->cache->config;

    if (config->model->now_ns(config->owner) < entry->ready_ns)
        return WEFT_REG_MAPPING;
    return entry->rc ? WEFT_REG_FAILED : WEFT_REG_READY;
}

void weft_reghelper_want(weft_regcache *cache)
{
    if (cache->has_helper || !cache->memmon || !cache->config.inline_max || cache->config.model ||
        cache->counts.pinned_bytes <= cache->config.inline_max || weft_memmon_minds_threads(cache->memmon))
        return;
    cache->has_helper = start(cache);
}

bool weft_reghelper_submit(weft_regcache *cache, weft_regentry *entry, bool is_awaited)
{
    if (cache->config.model) {
        model(cache, entry);
        return true;
    }
    if (!cache->has_helper && !(cache->has_helper = start(cache)))
        return false;
    atomic_store_explicit(&entry->state, WEFT_REG_WAITING, memory_order_relaxed);
    pthread_mutex_lock(&cache->lock);
    weft_list_splice(&cache->unmaps, &cache->dropped);
    enqueue(cache, entry, is_awaited);
    pthread_mutex_unlock(&cache->lock);
    weft_unmap_wakeup_raise(cache->wakeup);
    return true;
}

static bool is_waiting(const weft_regentry *entry)
{
    return atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_WAITING;
}

void weft_reghelper_hurry(weft_regcache *cache, weft_regentry *entry)
{
    pthread_mutex_lock(&cache->lock);
    if (is_waiting(entry)) {
        weft_list_remove(&entry->job);
        enqueue(cache, entry, true);
    }
    pthread_mutex_unlock(&cache->lock);
}

bool weft_reghelper_take(weft_regcache *cache, weft_regentry *entry)
{
    bool is_taken_back;

    pthread_mutex_lock(&cache->lock);
    is_taken_back = is_waiting(entry);
    if (is_taken_back) {
        weft_list_remove(&entry->job);
        atomic_store_explicit(&entry->state, WEFT_REG_MAPPING, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cache->lock);
    return is_taken_back;
}

bool weft_reghelper_leave(weft_regcache *cache, weft_regentry *entry)
{
    pthread_mutex_lock(&cache->lock);
    uint32_t state = atomic_load_explicit(&entry->state, memory_order_relaxed);
    if (state == WEFT_REG_WAITING) {
        weft_list_remove(&entry->job);
        entry->rc = 0;
        atomic_store_explicit(&entry->state, WEFT_REG_FAILED, memory_order_relaxed); /* nothing to unmap */
    } else if (state == WEFT_REG_MODELLED) {
        atomic_store_explicit(&entry->state, entry->rc ? WEFT_REG_FAILED : WEFT_REG_READY, memory_order_relaxed);
    } else if (state == WEFT_REG_MAPPING || state == WEFT_REG_UNMAPPING) {
        atomic_store_explicit(&entry->state, WEFT_REG_DETACHED, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cache->lock);
    return state != WEFT_REG_MAPPING && state != WEFT_REG_UNMAPPING;
}

bool weft_reghelper_unmap(weft_regcache *cache, weft_regentry *entry)
{
    if (cache->config.model || (!cache->has_helper && !(cache->has_helper = start(cache))))
        return false;
    atomic_store_explicit(&entry->state, WEFT_REG_DETACHED, memory_order_relaxed);
    weft_list_append(&cache->dropped, &entry->job);
    return true;
}

void weft_reghelper_pass_dropped(weft_regcache *cache)
{
    if (weft_likely(weft_list_is_empty(&cache->dropped)))
        return;
    pthread_mutex_lock(&cache->lock);
    weft_list_splice(&cache->unmaps, &cache->dropped);
    pthread_mutex_unlock(&cache->lock);
    weft_unmap_wakeup_raise(cache->wakeup);
}

bool weft_reghelper_unmap_now(weft_regcache *cache)
{
    weft_list_link todo, *job;
    bool is_any;

    weft_list_init(&todo);
    pthread_mutex_lock(&cache->lock);
    weft_list_splice(&todo, &cache->unmaps);
    weft_list_splice(&todo, &cache->dropped);
    is_any = cache->is_unmapping || !weft_list_is_empty(&todo);
    while (cache->is_unmapping)
        pthread_cond_wait(&cache->unmapped, &cache->lock);
    pthread_mutex_unlock(&cache->lock);
    while ((job = weft_list_take(&todo)))
        unmap(cache, weft_container(job, weft_regentry, job), true);
    return is_any;
}

void weft_reghelper_detach(weft_regcache *cache, weft_list_link *detached)
{
    pthread_mutex_lock(&cache->lock);
    weft_list_splice(detached, &cache->detached);
    atomic_store_explicit(&cache->has_detached, false, memory_order_relaxed);
    pthread_mutex_unlock(&cache->lock);
}

void weft_reghelper_end(weft_regcache *cache)
{
    if (!cache->has_helper)
        return;
    weft_reghelper_pass_dropped(cache);
    pthread_mutex_lock(&cache->lock);
    cache->is_closing = true;
    pthread_mutex_unlock(&cache->lock);
    weft_unmap_wakeup_raise(cache->wakeup);
    pthread_join(cache->helper, NULL);
    weft_unmap_wakeup_close(cache->wakeup);
    cache->has_helper = false;
}

weft_regcache_counts weft_regcache_stats(const weft_regcache *cache)
{
    weft_regcache_counts counts = cache->counts;

    if (cache->has_helper && weft_regcache_is_own(cache)) {
        pthread_mutex_lock((pthread_mutex_t *)&cache->lock);
        counts.pin_ns += cache->pin_ns_ahead;
        counts.unpinned = cache->unpinned;
        counts.pinned_bytes -= cache->gone_bytes;
        counts.pinned_regions -= cache->gone_regions;
        pthread_mutex_unlock((pthread_mutex_t *)&cache->lock);
    }
    return counts;
}
