/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_async: helper thread that registers memory in advance. One per cache, started by the first weft_reghelper_submit(), asleep
 * while its queue is empty. It never reads the tree: it dequeues an entry, maps it and stores the state.
 * Invariant: the worker must not free an entry that the helper is MAPPING; map and unmap are called without cache->lock.
 */
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "mem/regcache_internal.h"

static void work_on(weft_regcache *cache, weft_regentry *entry)
{
    uint64_t ns;
    bool is_detached;

    int rc = weft_regentry_map(cache, entry, &ns);
    pthread_mutex_lock(&cache->lock);
    cache->pin_ns_ahead += ns;
    is_detached = atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_DETACHED;
    if (!is_detached) {
        entry->rc = rc;
        atomic_store_explicit(&entry->state, rc ? WEFT_REG_FAILED : WEFT_REG_READY, memory_order_release);
        pthread_cond_broadcast(&cache->done);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!is_detached)
        return;
    if (!rc)
        cache->config.unmap(cache->config.owner, entry->pin.record);
    pthread_mutex_lock(&cache->lock);
    weft_list_append(&cache->detached, &entry->job);
    atomic_fetch_add_explicit(&cache->detached_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cache->lock);
}

static void *help(void *arg)
{
    weft_regcache *cache = arg;
    weft_list_link *job = NULL;

    pthread_setname_np(pthread_self(), "weft-pin");
    for (;;) {
        pthread_mutex_lock(&cache->lock);
        while (!(job = weft_list_take(&cache->queue)) && !cache->is_closing)
            pthread_cond_wait(&cache->work, &cache->lock);
        if (job)
            atomic_store_explicit(&weft_container(job, weft_regentry, job)->state, WEFT_REG_MAPPING, memory_order_relaxed);
        pthread_mutex_unlock(&cache->lock);
        if (!job)
            return NULL;
        work_on(cache, weft_container(job, weft_regentry, job));
    }
}

static bool start(weft_regcache *cache)
{
    sigset_t all, before;

    sigfillset(&all); /* signals must be handled by the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&cache->helper, NULL, help, cache);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        weft_log_info("no thread for asynchronous registration (%d): memory is registered when a transfer needs it", rc);
    return !rc;
}

bool weft_reghelper_submit(weft_regcache *cache, weft_regentry *entry)
{
    if (!cache->has_helper && !(cache->has_helper = start(cache)))
        return false;
    atomic_store_explicit(&entry->state, WEFT_REG_WAITING, memory_order_relaxed);
    pthread_mutex_lock(&cache->lock);
    weft_list_append(&cache->queue, &entry->job);
    pthread_cond_signal(&cache->work);
    pthread_mutex_unlock(&cache->lock);
    return true;
}

bool weft_reghelper_take(weft_regcache *cache, weft_regentry *entry)
{
    bool is_taken_back;

    pthread_mutex_lock(&cache->lock);
    is_taken_back = atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_WAITING;
    if (is_taken_back) {
        weft_list_remove(&entry->job);
        atomic_store_explicit(&entry->state, WEFT_REG_MAPPING, memory_order_relaxed);
    }
    while (!is_taken_back && atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_MAPPING)
        pthread_cond_wait(&cache->done, &cache->lock);
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
    } else if (state == WEFT_REG_MAPPING) {
        atomic_store_explicit(&entry->state, WEFT_REG_DETACHED, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cache->lock);
    return state != WEFT_REG_MAPPING;
}

weft_regentry *weft_reghelper_detach(weft_regcache *cache)
{
    pthread_mutex_lock(&cache->lock);
    weft_list_link *job = weft_list_take(&cache->detached);
    if (job)
        atomic_fetch_sub_explicit(&cache->detached_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cache->lock);
    return job ? weft_container(job, weft_regentry, job) : NULL;
}

void weft_reghelper_end(weft_regcache *cache)
{
    if (!cache->has_helper)
        return;
    pthread_mutex_lock(&cache->lock);
    cache->is_closing = true;
    pthread_cond_signal(&cache->work);
    pthread_mutex_unlock(&cache->lock);
    pthread_join(cache->helper, NULL);
    cache->has_helper = false;
}
