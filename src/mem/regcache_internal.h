/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_internal: state of a registration cache, for regcache*.c only.
 * Locks: tree, lists, references and counts require worker->lock; changes of the tree and of is_kept also cache->lock, under which the
 * helper reads them (regcache_unpin.c). The helper's fields, but for has_helper and dropped, require cache->lock.
 * The helper thread owns an entry from dequeuing it (MAPPING) or claiming it (UNMAPPING) until it stores another state.
 */
#ifndef WEFT_MEM_REGCACHE_INTERNAL_H
#define WEFT_MEM_REGCACHE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/list.h"
#include "base/macros.h"
#include "mem/regcache.h"
#include "mem/regcache_tree.h"

/* WAITING: in the helper's queue. READY and FAILED are final. DETACHED: dropped by the worker, the helper unmaps it.
 * UNMAPPING: unused and of changed memory, the helper is unmapping it; FAILED (is_gone) then.
 * MODELLED: registered by the model of a helper; to be READY or FAILED at ready_ns, until then as MAPPING. */
enum weft_regstate { WEFT_REG_WAITING, WEFT_REG_MAPPING, WEFT_REG_READY, WEFT_REG_FAILED, WEFT_REG_DETACHED, WEFT_REG_MODELLED,
                     WEFT_REG_UNMAPPING };

typedef struct weft_regentry {
    weft_regnode node;      /* must be first: cast by entry_of() */
    _Atomic uint32_t state; /* enum weft_regstate; the helper's release pairs with state_of() */
    _Atomic uint32_t refs;  /* acquires not yet released; stored by the worker only */
    _Atomic bool is_dying;  /* set by the helper: its memory has changed; in use it ends with its last reference */
    bool is_kept;           /* in the tree; else freed with its last reference */
    bool is_own;            /* one owner's: no look-up finds it; ended at its release */
    bool is_awaited;        /* given to the helper by an acquire; not settled yet */
    bool is_uncounted;      /* DETACHED: not in pinned_bytes any more */
    bool is_gone;           /* FAILED as the helper has unmapped it: in gone_bytes */
    int rc;                 /* result of map if FAILED */
    uint64_t since;         /* position in the log: earlier changes do not concern it */
    weft_regcache *cache;
    uint64_t ready_ns;      /* MODELLED */
    uint64_t goal;          /* bytes to evict at the next failure at a limit */
    weft_list_link idle;    /* in cache->idle while refs is 0 */
    weft_list_link job;     /* in cache->queue, dropped, unmaps or detached */
    weft_reg pin;           /* must be last: the owner's record follows */
} weft_regentry;

static inline weft_regentry *entry_of(weft_regnode *node) { return (weft_regentry *)(void *)node; }

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
    uint64_t batch_bytes;         /* unmapped since the present batch began: an invalidation, or evictions for one entry */
    uint64_t own_bytes;           /* of entries with is_own, at most half of max_bytes */
    uint32_t own_regions;         /* their number, at most half of max_regions */
    pid_t process;                /* creator; a forked child must not unregister or free */
    /* helper thread */
    bool has_helper;              /* started; requires worker->lock */
    weft_list_link dropped;       /* of weft_regentry.job: for the helper, not given to it yet; requires worker->lock */
    pthread_mutex_t lock;
    pthread_cond_t unmapped;      /* is_unmapping ended */
    weft_list_link queue, unmaps, detached; /* of weft_regentry.job: to be mapped; to be unmapped, which goes first; unmapped */
    _Atomic bool has_detached;    /* `detached` is not empty; read without the lock */
    bool is_closing, is_unmapping;
    uint64_t pin_ns_ahead;        /* time in map of the helper, ns */
    uint64_t unpinned;            /* entries that the helper has unmapped because their memory had changed */
    uint64_t gone_bytes, gone_regions; /* of those the ones that the worker still counts as pinned */
    _Atomic uint32_t *wakeup;     /* on which the helper sleeps; set before it starts */
    _Atomic uint64_t read_to;     /* cursor as the helper may read it: the worker's latest position in the log */
    uint64_t unpin_cursor;        /* the helper's own */
    _Atomic bool rereads;         /* the helper is to read again from read_to: there is an entry that it may have missed */
    pthread_t helper;
};

/* False in a forked child: the entries are the parent's and must not be unmapped or freed. */
static inline bool weft_regcache_is_own(const weft_regcache *cache) { return getpid() == cache->process; }

/* State of a MODELLED entry at this time: MAPPING, READY or FAILED (regcache_async.c). */
uint32_t weft_reghelper_model_state(const weft_regentry *entry);

/* seq_cst: a thread about to sleep reads the state after it has marked the rank as asleep; config.ready pairs with it. */
static inline uint32_t weft_regentry_state(const weft_regentry *entry)
{
    uint32_t state = atomic_load_explicit(&entry->state, memory_order_seq_cst);
    return weft_unlikely(state == WEFT_REG_MODELLED) ? weft_reghelper_model_state(entry) : state;
}

/* Too long to be mapped or unmapped by the caller. */
static inline bool weft_regcache_is_long(const weft_regcache *cache, uint64_t bytes)
{
    return cache->config.inline_max && bytes > cache->config.inline_max;
}

/* Requires cache->lock. Gives an entry that the helper has unmapped to the worker, which frees it. */
static inline void weft_regentry_detach(weft_regcache *cache, weft_regentry *entry)
{
    weft_list_append(&cache->detached, &entry->job);
    atomic_store_explicit(&cache->has_detached, true, memory_order_relaxed);
}

/* The worker's loads and stores of refs. After a store, is_dying tells whether the entry may be used or kept. */
static inline uint32_t weft_regentry_refs(const weft_regentry *entry) { return atomic_load_explicit(&entry->refs, memory_order_relaxed); }
static inline bool weft_regentry_set_refs(weft_regentry *entry, uint32_t refs)
{
    atomic_store_explicit(&entry->refs, refs, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* store before load; pairs with the helper's membarrier */
    return !atomic_load_explicit(&entry->is_dying, memory_order_relaxed);
}

/* Slot for the page of a lookup's first byte. Multiplicative hash, as buffers are often a power of two apart. */
static inline weft_regentry **weft_regcache_slot(weft_regcache *cache, uint64_t addr)
{
    return &cache->lately[(addr / 4096 * 0x9e3779b97f4a7c15u) >> (64 - WEFT_REG_SLOT_BITS)];
}

/* regcache_entry.c. A new entry, MAPPING, in no tree and not counted. NULL: no memory. */
weft_regentry *weft_regentry_new(weft_regcache *cache, uint64_t start, uint64_t end, uint32_t rights);
/* Calls map and sets *ns to its time. Any thread; the caller stores the state. */
int weft_regentry_map(weft_regcache *cache, weft_regentry *entry, uint64_t *ns);
/* Counts an entry that is mapped, or about to be. */
void weft_regentry_count_in(weft_regcache *cache, const weft_regentry *entry);
/* Adds the entry to the tree. */
void weft_regentry_keep(weft_regcache *cache, weft_regentry *entry);
/* Removes it from the tree, if it is there, and from the hash table. */
void weft_regentry_let_go(weft_regcache *cache, weft_regentry *entry);
/* Drops an entry without references that is not in the tree: unmapped now, or by the helper if that is registering it. */
void weft_regentry_drop(weft_regcache *cache, weft_regentry *entry);
/* Drops an entry: unmapped now, at its last release, or by the helper if that is registering it. */
void weft_regentry_throw_out(weft_regcache *cache, weft_regentry *entry);
/* Frees the entries that the helper has unmapped. */
void weft_regcache_reap_detached(weft_regcache *cache);

/* regcache_watch.c. Drops the entries that have changed, or all. */
void weft_regcache_read_log(weft_regcache *cache);
void weft_regcache_invalidate_all(weft_regcache *cache);
/* True if every change of the range will be published from now on. Reads the log, so an entry added hereafter misses none. */
bool weft_regcache_track(weft_regcache *cache, uint64_t start, uint64_t end);
/* In a process with several threads: another one may have unmapped a range and a third one remapped it before the event was read. */
static inline bool weft_regcache_needs_sync(const weft_regcache *cache) { return cache->memmon && weft_memmon_needs_sync(cache->memmon); }
/* Waits for such events and reads the log; sets *is_synced. False: not possible, so no entry may be trusted. */
bool weft_regcache_sync(weft_regcache *cache, bool *is_synced);

/* regcache_async.c, called by the worker. Queues the entry for the helper; is_awaited: at the head of the queue. False: no
 * thread, and the entry is unchanged. */
bool weft_reghelper_submit(weft_regcache *cache, weft_regentry *entry, bool is_awaited);
/* Moves a WAITING entry to the head of the queue. */
void weft_reghelper_hurry(weft_regcache *cache, weft_regentry *entry);
/* Takes a WAITING entry back. True: dequeued, now MAPPING, and the worker must map it. False: the helper has begun. */
bool weft_reghelper_take(weft_regcache *cache, weft_regentry *entry);
/* Drops an entry. True: the worker must end it now. False: the helper is registering it; now DETACHED, the helper will unmap it. */
bool weft_reghelper_leave(weft_regcache *cache, weft_regentry *entry);
/* Drops a READY entry without references, which the helper is to unmap: after weft_reghelper_pass_dropped or _submit, before it maps
 * others. False: there is no thread. */
bool weft_reghelper_unmap(weft_regcache *cache, weft_regentry *entry);
/* Gives all dropped entries to the helper: ends each batch, so that a thousand entries wake the helper once. */
void weft_reghelper_pass_dropped(weft_regcache *cache);
/* At a limit: unmaps what the helper was given to unmap, and waits until it has ended what it has begun. False: there was nothing. */
bool weft_reghelper_unmap_now(weft_regcache *cache);
/* Appends the entries that the helper has unmapped; the worker frees them. */
void weft_reghelper_detach(weft_regcache *cache, weft_list_link *detached);
/* Ends and joins the helper, after it has emptied the queue. */
void weft_reghelper_end(weft_regcache *cache);

/* Starts the helper for the sake of what the program unmaps, once so much is registered that it matters. */
void weft_reghelper_want(weft_regcache *cache);

/* regcache_unpin.c, called by the helper thread. Registers the process for membarriers (may take some ms). False: refused. */
bool weft_regunpin_prepare(void);
/* Reads the log; unmaps unused entries of changed memory. */
void weft_regunpin_changed(weft_regcache *cache);
/* Requires cache->lock. The list holds dying entries of the tree (weft_regentry.job) that are READY, or mapped and not published yet.
 * Removes those with references; the others become UNMAPPING, and the caller must call weft_regunpin_unmap without the lock. */
void weft_regunpin_claim(weft_list_link *marked);
void weft_regunpin_unmap(weft_regcache *cache, weft_list_link *claimed);

/* regcache_limits.c: fills max_bytes and max_regions. */
void weft_regcache_limit(weft_regcache *cache);

#endif
