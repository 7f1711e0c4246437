/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon: reports registered memory that was unmapped, moved, discarded or remapped. One monitor per process, any thread.
 * Changed ranges are appended to the invalidation log; each registration cache reads it from its own cursor.
 * Invariants: a change of tracked memory is in the log before the changed memory is used (several threads: after weft_memmon_sync());
 * a mapping that no source tracks is never cached.
 * Callers: registration caches, each under its worker's lock; weft-info.
 */
#ifndef WEFT_MEM_MEMMON_H
#define WEFT_MEM_MEMMON_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/inval_log.h"

/* Sources:
 *     memhooks    (libc's system calls, patched when the monitor starts) publishes before the system call, in the calling thread. It
 *                 misses system calls that code outside of libc makes inline. Trusted if its self-test passes, malloc's inner calls
 *                 included; not with WEFT_REGCACHE_MONITOR=strict
 *     userfaultfd a listener thread reads the kernel's event; the unmapping call returns after that read. `busy` is odd from before
 *                 the read until the range is published, so a lookup cannot miss the range
 * Each works alone; with both, userfaultfd reports what memhooks misses.
 * userfaultfd alone lets another thread map the freed addresses before the event is queued. The kernel counts changes in progress
 * until their events are read; weft_memmon_sync() reads that count (one system call). Without trusted memhooks a process with several
 * threads must call it before it reads the log. With them that window is left for inline system calls of another thread only. */
typedef struct weft_memmon weft_memmon;

/* The process's monitor; never NULL, but it may track nothing. The first call starts it and runs the self-tests of the sources that
 * WEFT_REGCACHE_MONITOR allows (some ms); caches call it at the first registration, not at MPI_Init. */
weft_memmon *weft_memmon_get(void);
/* The log that memhooks and userfaultfd append to. */
const weft_inval_log *weft_memmon_log(const weft_memmon *mon);
/* Tracks [start, end): from now on every change of it is published. Registers mappings with userfaultfd as needed; a mapping newly
 * tracked is first published as changed, so caches drop stale entries in it. False: do not cache. */
bool weft_memmon_track(weft_memmon *mon, uint64_t start, uint64_t end);
/* Waits (some 200 us; not again until one is in time) until the events of all changes in progress are read. Call it if
 * weft_memmon_needs_sync(), before reading the log. False: timed out or not supported by the kernel; cached registrations cannot be
 * trusted now. */
bool weft_memmon_sync(weft_memmon *mon);
/* True if a source tracks mappings; else nothing is ever kept. */
bool weft_memmon_is_able(const weft_memmon *mon);
/* True if userfaultfd is trusted alone and the process may have several threads. No system call. */
bool weft_memmon_needs_sync(const weft_memmon *mon);
/* True if look-ups would need that sync once the process has a second thread: then none is made without need. */
bool weft_memmon_minds_threads(const weft_memmon *mon);
/* pthread_atfork child handler: stops tracking; the child has no registrations. */
void weft_memmon_close_in_child(void);

/* Calls `line` for each source: active, or why not. For weft-info and the log. Starts the monitor (self-tests) if needed. */
void weft_memmon_describe(void (*line)(void *arg, const char *text), void *arg);

#endif
