/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_internal: what a registration cache is made of, for its own files only.
 * Who may touch what: the tree, the lists, references and counts are the worker's. The helper that pins ahead owns an entry from
 * the moment it takes it off the queue (MAPPING) until it stores another state; queue, detached and pin_ns_ahead are guarded by
 * `lock`.
 */
#ifndef WEFT_MEM_REGCACHE_INTERNAL_H
#define WEFT_MEM_REGCACHE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/list.h"
#include "mem/regcache.h"
#include "mem/regcache_tree.h"

/* WAITING: in the helper's queue. READY and FAILED are final. ORPHAN: the worker has thrown it out while the helper was mapping
 * it. */
enum weft_regstate { WEFT_REG_WAITING, WEFT_REG_MAPPING, WEFT_REG_READY, WEFT_REG_FAILED, WEFT_REG_DETACHED };

typedef struct weft_regentry {
    weft_regnode node;      /* first: the tree's */
    _Atomic uint32_t state; /* enum weft_regstate; the helper's release pairs with the look-up's acquire */
    uint32_t refs;
    bool is_kept;           /* stands in the tree; else it ends with its last reference */
    int rc;                 /* of map, when FAILED */
    weft_list_link idle;         /* in the cache's list while nobody holds it */
    weft_list_link job;          /* in the helper's queue, or among the detached */
    weft_reg pin;           /* last: the owner's record follows */
} weft_regentry;

/* Entries that were hit lately, by page: a look-up that finds one there needs no tree. */
#define WEFT_REG_SLOT_BITS 9
#define WEFT_REG_SLOTS (1 << WEFT_REG_SLOT_BITS)

struct weft_regcache {
    /* what a hit reads */
    weft_memmon *watch;      /* NULL until the first pin */
    const weft_inval_log *news;
    uint64_t cursor;
    bool is_free_of_watch;  /* devices that page on demand need none */
    weft_regnode *root;
    weft_list_link idle;         /* least recently used first */
    weft_regcache_counts counts;
    weft_regentry *lately[WEFT_REG_SLOTS];
    /* what a miss reads */
    weft_regcache_config config;
    uint64_t page, max_bytes;
    uint32_t max_regions;
    pid_t process;          /* who pinned: nobody else may unpin */
    /* the helper */
    bool has_helper;        /* the worker's word: it was started */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    weft_list_link queue, detached;
    _Atomic uint32_t detached_count; /* without the lock: is there anything to ask for? */
    bool is_closing;
    uint64_t pin_ns_ahead;
    pthread_t helper;
};

/* regcache.c: one map by whatever thread, timed; the caller stores the state. */
int weft_regentry_map(weft_regcache *cache, weft_regentry *entry, uint64_t *ns);
/* Gives the memory of the entry back; nobody knows it any more. */
void weft_regentry_free(weft_regcache *cache, weft_regentry *entry);

/* regcache_async.c. false: no thread to be had; the entry is as it was. */
bool weft_reghelper_give(weft_regcache *cache, weft_regentry *entry);
/* The worker wants an entry that is WAITING or MAPPING, now: takes it back (true: MAPPING, and the worker's to map) or waits for
 * it. */
bool weft_reghelper_take(weft_regcache *cache, weft_regentry *entry);
/* The worker throws an entry out: true when it is the worker's to end, at once; false when it is the helper's: it ends as an
 * orphan. */
bool weft_reghelper_leave(weft_regcache *cache, weft_regentry *entry);
/* An orphan that the helper has unmapped, or NULL. */
weft_regentry *weft_reghelper_detach(weft_regcache *cache);
void weft_reghelper_end(weft_regcache *cache);

/* regcache_limits.c: fills max_bytes and max_regions. */
void weft_regcache_limit(weft_regcache *cache);

#endif
