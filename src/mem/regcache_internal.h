/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_internal: state of a registration cache, for regcache*.c only.
 * Locks: tree, lists, references and counts require worker->lock. queue, detached, pin_ns_ahead and is_closing require cache->lock.
 * The helper thread owns an entry from dequeuing it (MAPPING) until it stores another state.
 */
#ifndef WEFT_MEM_REGCACHE_INTERNAL_H
#define WEFT_MEM_REGCACHE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/list.h"
#include "mem/regcache.h"
#include "mem/regcache_tree.h"

/* WAITING: in the helper's queue. READY and FAILED are final. DETACHED: dropped by the worker while the helper was registering it. */
enum weft_regstate { WEFT_REG_WAITING, WEFT_REG_MAPPING, WEFT_REG_READY, WEFT_REG_FAILED, WEFT_REG_DETACHED };

typedef struct weft_regentry {
    weft_regnode node;      /* must be first: cast by entry_of() */
    _Atomic uint32_t state; /* enum weft_regstate; the helper's release pairs with state_of() */
    uint32_t refs;          /* acquires not yet released */
    bool is_kept;           /* in the tree; else freed with its last reference */
    bool is_own;            /* one owner's: no look-up finds it; ended at its release */
    int rc;                 /* result of map if FAILED */
    weft_list_link idle;    /* in cache->idle while refs is 0 */
    weft_list_link job;     /* in cache->queue or cache->detached */
    weft_reg pin;           /* must be last: the owner's record follows */
} weft_regentry;

/* Hash table of recent hits by page, read before the tree. */
#define WEFT_REG_SLOT_BITS 9
#define WEFT_REG_SLOTS (1 << WEFT_REG_SLOT_BITS)

struct weft_regcache {
    /* read by a hit */
    weft_memmon *memmon;           /* NULL before the first registration, or if needs_no_memmon */
    const weft_inval_log *log;   /* NULL before the first registration */
    uint64_t cursor;              /* position in `log` */
    bool needs_no_memmon;        /* registrations cannot go stale: no monitor */
    weft_regnode *root;
    weft_list_link idle;          /* least recently used first */
    weft_regcache_counts counts;
    weft_regentry *lately[WEFT_REG_SLOTS]; /* READY entries in the tree, or NULL */
    /* read by a miss */
    weft_regcache_config config;
    uint64_t page, max_bytes;     /* bytes */
    uint32_t max_regions;
    uint64_t own_bytes;           /* of entries with is_own, at most half of max_bytes */
    uint32_t own_regions;         /* their number, at most half of max_regions */
    pid_t process;                /* creator; a forked child must not unregister or free */
    /* helper thread */
    bool has_helper;              /* started; requires worker->lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;    /* work: job queued or closing; done: state stored */
    weft_list_link queue, detached; /* of weft_regentry.job */
    _Atomic uint32_t detached_count; /* length of `detached`, read without the lock */
    bool is_closing;
    uint64_t pin_ns_ahead;        /* time in map of the helper, ns */
    pthread_t helper;
};

/* regcache.c: calls map and sets *ns to its time. Any thread; the caller stores the state. */
int weft_regentry_map(weft_regcache *cache, weft_regentry *entry, uint64_t *ns);
/* Frees the entry's memory. It must be in no tree, list or queue. */
void weft_regentry_free(weft_regcache *cache, weft_regentry *entry);

/* regcache_async.c, called by the worker. Queues the entry for the helper. False: no thread, and the entry is unchanged. */
bool weft_reghelper_submit(weft_regcache *cache, weft_regentry *entry);
/* Needs a WAITING or MAPPING entry now. True: dequeued, now MAPPING, and the worker must map it. False: waited for the helper. */
bool weft_reghelper_take(weft_regcache *cache, weft_regentry *entry);
/* Drops an entry. True: the worker must end it now. False: the helper is registering it; now DETACHED, the helper will unmap it. */
bool weft_reghelper_leave(weft_regcache *cache, weft_regentry *entry);
/* Dequeues a DETACHED entry that the helper has unmapped; NULL: none. The worker frees it. */
weft_regentry *weft_reghelper_detach(weft_regcache *cache);
/* Ends and joins the helper, after it has emptied the queue. */
void weft_reghelper_end(weft_regcache *cache);

/* regcache_limits.c: fills max_bytes and max_regions. */
void weft_regcache_limit(weft_regcache *cache);

#endif
