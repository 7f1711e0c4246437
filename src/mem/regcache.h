/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache: registrations of user memory with one port, kept for the next transfer from the same place. An interval tree by
 * address, bounded in bytes and regions, least recently used out first; registrations in use are never thrown out. A request that
 * none of them covers gets one of its own, which replaces those that it covers; neighbours are never made one. What changed
 * underneath (mem/memmon) is thrown out before any look-up answers, and what no watch covers is registered for one use only.
 *
 * Guarded by the owner's worker, but for the helper that pins ahead: its own lock, never held over a system call, stands between.
 * Knows nothing of transports: map and unmap are the owner's.
 */
#ifndef WEFT_MEM_REGCACHE_H
#define WEFT_MEM_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/memmon.h"

typedef struct weft_regcache weft_regcache;

/* A registration that covers at least what was asked for. `record` is what map filled in; the rest is the cache's. */
typedef struct weft_reg {
    uint64_t start, end;  /* whole pages */
    uint32_t rights;
    _Alignas(16) unsigned char record[];
} weft_reg;

typedef struct weft_regcache_config {
    /* Registers [addr, addr + bytes): 0; WEFT_E_NOSPACE or WEFT_E_NOMEM when a limit was met (the cache evicts and tries again);
     * WEFT_E_UNSUPPORTED for memory that cannot be pinned. Called by any thread, without the cache's lock. */
    int (*map)(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *record);
    void (*unmap)(void *owner, void *record);
    void *owner;
    size_t record_bytes;
    uint64_t max_bytes;    /* 0: a share of RLIMIT_MEMLOCK and of RAM, at most port_bytes */
    uint32_t max_regions;  /* 0: a default, at most port_regions */
    uint64_t port_bytes;    /* what the device can hold; 0 unknown */
    uint32_t port_regions;
    weft_memmon *watch;      /* NULL: the process's, at the first pin */
    bool pages_on_demand;   /* the device follows the page tables: with the knob pin_watch=odp no watch is needed. Never proven:
                               no such device was to be had; off by default */
    bool needs_no_watch;    /* registrations cannot go stale (a simulated device): everything may be cached */
} weft_regcache_config;

typedef struct weft_regcache_counts {
    uint64_t hits, misses, evictions, invalidations, uncached, refused;
    uint64_t asks; /* look-ups that had to ask the kernel, because the process has more than one thread */
    uint64_t pinned_bytes, pinned_regions, max_pinned_bytes, ahead, pin_ns;
} weft_regcache_counts;

int weft_regcache_open(const weft_regcache_config *config, weft_regcache **cache);
/* All pins dropped before. Ends the helper. */
void weft_regcache_close(weft_regcache *cache);

/* Registered memory that covers [addr, addr + bytes) with at least these rights: from the cache, or registered now. Held until
 * drop. WEFT_E_NOSPACE: limits are met and everything is in use: copy instead. WEFT_E_UNSUPPORTED: this memory cannot be
 * pinned. */
int weft_regcache_acquire(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin);
/* The same when it is there already (a hit), else NULL and nothing happens. The hot half: well under 100 ns in a process of one thread;
 * with more it asks the kernel, which takes a system call, ... */
weft_reg *weft_regcache_lookup(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights);
/* ... unless *is_asked: the caller vouches that the kernel was asked, by whichever cache under the same worker's lock, after the program
 * had handed this memory over (and may not unmap it until its operation is over). What was there before was unmapped before that, so
 * the news of it have come. Set when the kernel had to be asked and has answered. */
weft_reg *weft_regcache_lookup_synced(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, bool *is_asked);
/* Have the helper register it while the caller does something else. Free to do nothing. */
void weft_regcache_acquire_async(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights);
/* Ends one hold. */
void weft_regcache_release(weft_regcache *cache, weft_reg *pin);
/* Throws out what changed and what nobody holds beyond the bounds. For idle moments: a few loads, no lock and no system call when
 * there is nothing to do. */
void weft_regcache_reclaim(weft_regcache *cache);
/* In use by nobody: forget all (before fork-like events, tests). */
void weft_regcache_flush(weft_regcache *cache);
/* Could a buffer of this memory be cached at all? Decides whether pinning ahead pays. */
bool weft_regcache_may_keep(weft_regcache *cache, const void *addr, uint64_t bytes);
/* The bound in force, bytes. */
uint64_t weft_regcache_max_bytes(const weft_regcache *cache);
weft_regcache_counts weft_regcache_stats(const weft_regcache *cache);

#endif
