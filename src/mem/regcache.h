/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache: cache of memory registrations with one iface, an LRU interval tree bounded in bytes and count. Entries in use stay.
 * A new registration replaces the entries that it contains; neighbours are never merged. Ranges reported by mem/memmon are dropped
 * before any lookup answers; memory that no monitor tracks is registered for one use only. map and unmap are the owner's callbacks.
 * Memory that changes while its owner makes no call is unregistered by the helper, which the change wakes, unless it is in use.
 * Locks: all calls require the owner's worker->lock, and none holds it while a long range is registered or unregistered: a helper thread
 * does that; until then an acquire is INPROGRESS. The helper shares state under the cache's own lock, which is never held over a call of
 * map or unmap.
 */
#ifndef WEFT_MEM_REGCACHE_H
#define WEFT_MEM_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/memmon.h"

typedef struct weft_regcache weft_regcache;

/* A registration that covers at least the requested range. map() fills `record`; the cache owns the rest. */
typedef struct weft_reg {
    uint64_t start, end;  /* page-aligned */
    uint32_t rights;      /* the owner's bits, as passed to map */
    _Alignas(16) unsigned char record[];
} weft_reg;

/* The simulator's helper: calls of map between begin and end are its work. */
typedef struct weft_reghelper_model {
    void (*begin)(void *owner);
    uint64_t (*end)(void *owner); /* returns the time at which the helper has done it; the owner's worker is woken then */
    uint64_t (*now_ns)(void *owner);
} weft_reghelper_model;

typedef struct weft_regcache_config {
    /* Registers [addr, addr + bytes). 0; WEFT_E_NOSPACE or WEFT_E_NOMEM at a limit (the cache evicts and retries);
     * WEFT_E_UNSUPPORTED for memory that cannot be registered. map and unmap: any thread, without the cache's lock. */
    int (*map)(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *record);
    void (*unmap)(void *owner, void *record);
    /* The helper has completed a registration or failed: wakes the threads that await it. Called by the helper, without locks, after a
     * store that a thread which is about to sleep must see: it issues a fence (seq_cst). NULL: nobody sleeps. */
    void (*ready)(void *owner);
    void *owner;
    const weft_reghelper_model *model; /* in place of the helper thread; NULL elsewhere */
    uint64_t inline_max;    /* bytes; longer ranges are registered by the helper; 0: none is */
    size_t record_bytes;    /* size of weft_reg.record */
    uint64_t max_bytes;     /* 0: the knob, else a share of RLIMIT_MEMLOCK and of RAM; at most device_bytes_max */
    uint32_t max_regions;   /* 0: the knob, else a default; at most device_regions_max */
    uint32_t ranks, ports;  /* that share the node's memory: processes, and ifaces with a cache in each; 0: one */
    uint64_t device_bytes_max;    /* limit of the device; 0: unknown */
    uint32_t device_regions_max;  /* limit of the device; 0: unknown */
    weft_memmon *memmon;     /* NULL: the process's monitor, started at the first registration */
    bool pages_on_demand;   /* device with ODP: needs no monitor if WEFT_REGCACHE_MONITOR=odp. Untested on hardware; off by default */
    bool needs_no_memmon;    /* registrations cannot go stale (a simulated device): everything may be cached */
} weft_regcache_config;

typedef struct weft_regcache_counts {
    /* uncached: registered for one use, as no monitor tracks the memory. refused: failed calls of acquire. */
    uint64_t hits, misses, evictions, invalidations, uncached, refused;
    uint64_t unpinned; /* unregistered by the helper because their memory had changed; invalidations counts them later */
    uint64_t syncs; /* lookups that called weft_memmon_sync(), as the process has several threads */
    /* pinned_*: registered or being registered. max: highest so far. async: given to the helper. pin_ns: time in map, all threads. */
    uint64_t pinned_bytes, pinned_regions, max_pinned_bytes, async, pin_ns;
} weft_regcache_counts;

int weft_regcache_open(const weft_regcache_config *config, weft_regcache **cache);
/* Unregisters all and ends the helper (blocks for it). The caller must have released all registrations. In a child: does nothing. */
void weft_regcache_close(weft_regcache *cache);

/* Gets a registration that covers [addr, addr + bytes) with at least these rights: cached, or registered now (system call). The caller
 * holds it until weft_regcache_release(). WEFT_INPROGRESS: held, but the helper still registers it: not to be used until
 * weft_regcache_settle() returns 0. WEFT_E_NOSPACE: limits reached and all in use; copy instead. WEFT_E_UNSUPPORTED: memory that cannot be
 * registered. WEFT_E_NOMEM, WEFT_E_ARG. After an error *pin is NULL. */
int weft_regcache_acquire(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin);
/* Result of an acquire that was INPROGRESS: 0; still INPROGRESS; or an error as above, after which the caller releases it. Never waits. */
int weft_regcache_settle(weft_regcache *cache, weft_reg *pin);
/* Whether settle would return something else than INPROGRESS, unless the helper is to try again. Changes nothing. */
bool weft_regcache_is_settled(const weft_reg *pin);
/* One more acquire of a held registration, ready or not; released as any other. */
void weft_regcache_hold(weft_reg *pin);
/* Acquires a cached registration; NULL: none, and nothing is registered. Fast path. In a process with several threads a hit calls
 * weft_memmon_sync() (a system call). */
weft_reg *weft_regcache_lookup(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights);
/* As weft_regcache_lookup(), but without the sync if *is_synced. Precondition of *is_synced: a cache synced under the same hold of the
 * worker's lock, after the program passed this memory to MPI. Earlier unmaps of it are then in the log, and the program may not unmap
 * it until its operation completes. Sets *is_synced after a successful sync. */
weft_reg *weft_regcache_lookup_synced(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, bool *is_synced);
/* Gets a registration of exactly this range (its pages) that no other acquire finds. Its release unregisters it at once, so that peers'
 * access ends there and nowhere else. At most half of the cache's bounds. Result as above; UNSUPPORTED also for a long range that no
 * monitor tracks. */
int weft_regcache_acquire_own(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin);
/* Is the memory of an own registration still the one that was registered? False: it changed, or no monitor tracks it. In a process with
 * several threads a system call. */
bool weft_regcache_is_current(weft_regcache *cache, const weft_reg *pin);
/* Starts registering the range in the helper thread, if it can be cached. Never waits for it; may do nothing. */
void weft_regcache_acquire_async(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights);
/* Ends one acquire or successful lookup. */
void weft_regcache_release(weft_regcache *cache, weft_reg *pin);
/* Drops entries that changed, and unused ones above the bounds. For idle time: if there is nothing to do, a few loads, no lock and no
 * system call. */
void weft_regcache_reclaim(weft_regcache *cache);
/* Drops all entries (tests, close); one in use is unregistered at its release. */
void weft_regcache_flush(weft_regcache *cache);
/* True if a registration of this range could be cached. Starts tracking it. */
bool weft_regcache_may_keep(weft_regcache *cache, const void *addr, uint64_t bytes);
/* The bound in use, bytes. */
uint64_t weft_regcache_max_bytes(const weft_regcache *cache);
weft_regcache_counts weft_regcache_stats(const weft_regcache *cache);

#endif
