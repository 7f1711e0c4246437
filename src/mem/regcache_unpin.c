/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_unpin: ends registrations of memory that the program has unmapped while it makes no MPI call. The cache's helper thread, woken
 * by mem/unmap_wakeup, reads the log from a position of its own and unmaps entries that nobody uses. It never takes the worker's lock,
 * which below MPI_THREAD_MULTIPLE nobody takes. Instead (Dekker):
 *     the helper  marks an entry (is_dying), issues a membarrier, then loads refs: 0: it unmaps the entry
 *     the worker  stores refs, then loads is_dying: if set, it throws the entry out instead of using or keeping it
 * So a look-up pays for one load. An entry in use is thrown out by its last release. What the helper has unmapped remains in the tree until
 * the worker reads the log. Tree and is_kept are changed by the worker under cache->lock, and read by the helper under it.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem/regcache_internal.h"
#include "mem/unmap_wakeup.h"

#define BATCH 32

/* Changed ranges, for one membarrier. */
typedef struct changes {
    weft_regcache *cache;
    uint32_t count;
    struct change {
        weft_range range;
        uint64_t ticket; /* its place in the log */
    } at[BATCH];
} changes;

typedef struct marking {
    uint64_t ticket;
    weft_list_link *marked; /* of weft_regentry.job */
} marking;

bool weft_regunpin_prepare(void) { return !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0); }

static void mark(void *arg, weft_regnode *node)
{
    const marking *m = arg;
    weft_regentry *entry = entry_of(node);

    if (entry->since > m->ticket || atomic_load_explicit(&entry->is_dying, memory_order_relaxed))
        return; /* made after the change, or marked before */
    atomic_store_explicit(&entry->is_dying, true, memory_order_relaxed);
    weft_unmap_wakeup_remove(node->start, node->end);
    if (!entry->is_own && weft_regentry_state(entry) == WEFT_REG_READY)
        weft_list_append(m->marked, &entry->job);
}

void weft_regunpin_claim(weft_list_link *marked)
{
    if (weft_list_is_empty(marked))
        return;
    bool is_ordered = !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    for (weft_list_link *job = marked->next, *next; job != marked; job = next) {
        weft_regentry *entry = weft_container(job, weft_regentry, job);
        next = job->next;
        if (is_ordered && !atomic_load_explicit(&entry->refs, memory_order_acquire))
            atomic_store_explicit(&entry->state, WEFT_REG_UNMAPPING, memory_order_relaxed);
        else
            weft_list_remove(job);
    }
}

void weft_regunpin_unmap(weft_regcache *cache, weft_list_link *claimed)
{
    weft_list_link *job;

    while ((job = weft_list_take(claimed))) {
        weft_regentry *entry = weft_container(job, weft_regentry, job);
        cache->config.unmap(cache->config.owner, entry->pin.record);
        pthread_mutex_lock(&cache->lock);
        cache->unpinned++;
        if (atomic_load_explicit(&entry->state, memory_order_relaxed) == WEFT_REG_DETACHED) {
            weft_regentry_detach(cache, entry);
        } else {
            entry->rc = 0;
            entry->is_gone = true;
            cache->gone_regions++;
            cache->gone_bytes += entry->node.end - entry->node.start;
            atomic_store_explicit(&entry->state, WEFT_REG_FAILED, memory_order_release); /* nothing to unmap */
        }
        pthread_mutex_unlock(&cache->lock);
    }
}

static void handle(changes *all)
{
    weft_regcache *cache = all->cache;
    weft_list_link marked;

    weft_list_init(&marked);
    pthread_mutex_lock(&cache->lock);
    for (uint32_t i = 0; i < all->count; i++) {
        const struct change *c = &all->at[i];
        weft_regtree_each(cache->root, c->range.start & ~WEFT_INVAL_LOG_DISCARDED, c->range.end, mark, &(marking){c->ticket, &marked});
    }
    weft_regunpin_claim(&marked);
    pthread_mutex_unlock(&cache->lock);
    all->count = 0;
    weft_regunpin_unmap(cache, &marked);
}

static void collect(void *arg, weft_range range)
{
    changes *all = arg;

    all->at[all->count++] = (struct change){range, all->cache->unpin_cursor - 1};
    if (all->count == BATCH)
        handle(all);
}

void weft_regunpin_changed(weft_regcache *cache)
{
    changes all = {.cache = cache};
    bool rereads = atomic_exchange_explicit(&cache->rereads, false, memory_order_acquire);
    uint64_t read_to = atomic_load_explicit(&cache->read_to, memory_order_acquire);

    if (rereads || read_to > cache->unpin_cursor)
        cache->unpin_cursor = read_to; /* the worker has thrown out what changed before */
    if (!cache->memmon || !weft_inval_log_is_new(cache->log, cache->unpin_cursor))
        return;
    if (!weft_inval_log_read(cache->log, &cache->unpin_cursor, collect, &all)) {
        all.count = 0;
        collect(&all, (weft_range){0, UINT64_MAX});
    }
    handle(&all);
}
