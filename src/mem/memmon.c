/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon: starts and self-tests the sources, selects one for each mapping, and keeps a table of the tracked ranges.
 * Called by registration caches, each under its own worker's lock; the table has its own lock.
 * Invariant: every change of a range in the table will be published. A range enters after the log was read and the range registered
 * with userfaultfd or watched by memhooks; the next log entry for it removes it.
 */
#include "mem/memmon.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "mem/memmon_internal.h"

#define SYNC_TRIES 400 /* about 200 us: longer than a running listener needs, shorter than a new registration */

static weft_inval_log own_log;
static weft_range tracked_at[WEFT_MEMMON_RANGES_MAX];
static weft_memmon the_monitor = {.log = &own_log, .lock = PTHREAD_MUTEX_INITIALIZER, .maps = -1, .uffd = {.fd = -1, .stop = -1}};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* -- the table -- */

static void remove_tracked(void *arg, weft_range range)
{
    weft_memmon *mon = arg;

    if (!(range.start & WEFT_INVAL_LOG_DISCARDED))
        weft_ranges_remove(&mon->tracked, range.start, range.end);
}

static void add_tracked(weft_memmon *mon, uint64_t start, uint64_t end)
{
    if (weft_ranges_add(&mon->tracked, start, end))
        return;
    mon->tracked.count = 0; /* full: ranges are added again on demand */
    weft_ranges_add(&mon->tracked, start, end);
}

static void read_inval_log(weft_memmon *mon)
{
    if (!weft_inval_log_read(mon->log, &mon->cursor, remove_tracked, mon))
        mon->tracked.count = 0;
}

/* -- one mapping -- */

/* Publishes the untracked parts of [start, end): registrations there may be stale. */
static void append_gaps(weft_memmon *mon, uint64_t start, uint64_t end)
{
    const weft_ranges *known = &mon->tracked;

    for (uint32_t i = weft_ranges_after(known, start); start < end; i++) {
        uint64_t stop = i < known->count && known->at[i].start < end ? known->at[i].start : end;
        if (start < stop)
            weft_inval_log_append(mon->log, start, stop);
        start = stop < end ? known->at[i].end : end;
    }
}

/* Opens /proc/self/maps again if the program has closed it. */
static bool find_mapping(weft_memmon *mon, uint64_t addr, weft_mapping *mapping)
{
    for (int tries = 0; tries < 3; tries++) {
        if (!weft_fd_id_equal(mon->maps_id, weft_fd_id_of(mon->maps))) {
            mon->maps = weft_proc_maps_open();
            mon->maps_id = weft_fd_id_of(mon->maps);
        }
        bool is_found = weft_proc_maps_find(mon->maps, addr, mapping);
        if (weft_fd_id_equal(mon->maps_id, weft_fd_id_of(mon->maps)))
            return is_found;
    }
    return false;
}

/* The program has closed the userfaultfd. The listener still reports what is registered, but nothing more can be registered or synced.
 * Memhooks alone does not suffice from now on: until now the program's own system calls were seen, too. */
static void lose_uffd(weft_memmon *mon)
{
    if (atomic_exchange(&mon->is_lost, true))
        return;
    mon->trusts_hooks = false;
    weft_inval_log_append(mon->log, 0, UINT64_MAX);
    weft_log_warn("the program has closed a descriptor of Weft (closefrom?), by which unmapped memory is noticed; from now on memory "
                  "is registered anew for each message, which is slower");
}

/* True if the process may have several threads. */
static bool has_threads(const weft_memmon *mon) { return !(mon->is_single && *(const volatile char *)mon->is_single); }

/* True if the mapping did not change between its lookup and its registration. Another thread may have unmapped a part in between
 * without an event, and a new mapping there would have none either. The kernel does not merge new mappings with registered ones, so
 * one mapping of the same kind is the registered one. */
static bool is_still(weft_memmon *mon, const weft_mapping *mapping)
{
    weft_mapping again;

    return !has_threads(mon) || (find_mapping(mon, mapping->start, &again) && again.kind == mapping->kind &&
                                again.start <= mapping->start && again.end >= mapping->end);
}

static void watch_by_hooks(const weft_memmon *mon, uint64_t start, uint64_t end)
{
    if (mon->has_hooks)
        weft_memhooks_watch(start, end);
}

/* With userfaultfd the whole mapping, whose changes the kernel reports. With memhooks alone no more than the program passed to MPI: of
 * the rest another thread may be about to change what kind of mapping it is. */
static bool track_mapping(weft_memmon *mon, const weft_mapping *mapping, uint64_t start, uint64_t end)
{
    bool is_private = mapping->kind == WEFT_MAPPING_ANONYMOUS || mapping->kind == WEFT_MAPPING_HUGE;

    if (mon->has_uffd && !mon->is_lost && is_private) {
        watch_by_hooks(mon, mapping->start, mapping->end);
        append_gaps(mon, mapping->start, mapping->end);
        read_inval_log(mon);
        if (weft_uffd_register(&mon->uffd, mapping->start, mapping->end) && is_still(mon, mapping)) {
            add_tracked(mon, mapping->start, mapping->end);
            return true;
        }
        if (!weft_uffd_is_own(&mon->uffd))
            lose_uffd(mon);
    }
    if (!mon->trusts_hooks || !(is_private || (mapping->kind == WEFT_MAPPING_SYSV && mon->trusts_sysv)))
        return false;
    start = start > mapping->start ? start : mapping->start;
    end = end < mapping->end ? end : mapping->end;
    watch_by_hooks(mon, start, end);
    append_gaps(mon, start, end);
    read_inval_log(mon);
    add_tracked(mon, start, end);
    return true;
}

bool weft_memmon_track(weft_memmon *mon, uint64_t start, uint64_t end)
{
    bool is_sure = true;

    if (!weft_memmon_is_able(mon))
        return false;
    pthread_mutex_lock(&mon->lock);
    if (mon->is_forgotten || (weft_memmon_needs_sync(mon) && !weft_memmon_sync(mon)))
        is_sure = false;
    else
        read_inval_log(mon);
    if (is_sure && !weft_ranges_hold(&mon->tracked, start, end))
        for (uint64_t at = start; at < end && is_sure;) {
            weft_mapping mapping = {0};
            is_sure = find_mapping(mon, at, &mapping) && track_mapping(mon, &mapping, start, end);
            at = mapping.end;
        }
    pthread_mutex_unlock(&mon->lock);
    return is_sure;
}

bool weft_memmon_is_able(const weft_memmon *mon) { return mon->has_uffd || atomic_load_explicit(&mon->trusts_hooks, memory_order_relaxed); }

bool weft_memmon_needs_sync(const weft_memmon *mon)
{
    return mon->has_uffd && !atomic_load_explicit(&mon->trusts_hooks, memory_order_relaxed) && has_threads(mon);
}

bool weft_memmon_minds_threads(const weft_memmon *mon)
{
    return mon->has_uffd && !atomic_load_explicit(&mon->trusts_hooks, memory_order_relaxed) && !has_threads(mon);
}

bool weft_memmon_sync(weft_memmon *mon)
{
    int tries = atomic_load_explicit(&mon->is_late, memory_order_relaxed) ? 1 : SYNC_TRIES;

    if (!mon->uffd.can_sync || atomic_load_explicit(&mon->is_lost, memory_order_relaxed))
        return false;
    for (int n = 0; n < tries; n++) {
        if (weft_uffd_is_synced(&mon->uffd)) {
            if (tries == 1)
                atomic_store_explicit(&mon->is_late, false, memory_order_relaxed);
            return true;
        }
        if (n == 0 && !weft_uffd_is_own(&mon->uffd)) {
            lose_uffd(mon);
            return false;
        }
        if (n > 8)
            sched_yield(); /* the listener or the unmapping thread may need this CPU */
    }
    atomic_store_explicit(&mon->is_late, true, memory_order_relaxed);
    return false;
}

const weft_inval_log *weft_memmon_log(const weft_memmon *mon)
{
    return mon->log;
}

/* -- start and end -- */

/* True under valgrind, which runs one thread at a time: the unmapping thread would wait for a listener that cannot run. */
static int is_emulator(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes, (void)arg;
    return info->dlpi_name && strstr(info->dlpi_name, "vgpreload") != NULL;
}

/* A sanitizer's own allocator makes system calls inline, and keeps what is freed for a while. */
static bool has_sanitizer(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") || dlsym(RTLD_DEFAULT, "__msan_init");
}

static void start_memhooks(weft_memmon *mon)
{
    const uint32_t by_libc = 1u << WEFT_TRIAL_MUNMAP | 1u << WEFT_TRIAL_FIXED | 1u << WEFT_TRIAL_MREMAP | 1u << WEFT_TRIAL_MADVISE |
                             1u << WEFT_TRIAL_SYSCALL,
                   in_malloc = 1u << WEFT_TRIAL_FREE | 1u << WEFT_TRIAL_TRIM;

    if (dl_iterate_phdr(is_emulator, NULL) || has_sanitizer()) {
        snprintf(mon->hooks_why, sizeof(mon->hooks_why), "not under valgrind or in a program with a sanitizer");
        return;
    }
    if (weft_memhooks_install(mon->hooks_why, sizeof(mon->hooks_why)))
        return;
    weft_memmon_selftest_hooks(mon);
    uint32_t missed = (by_libc | (mon->hooks_trials.tried & in_malloc)) & ~mon->hooks_trials.seen;
    mon->has_hooks = !missed;
    mon->trusts_sysv = weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_MEMHOOKS;
    mon->trusts_hooks = !missed && weft_knob.regcache_monitor != WEFT_REGCACHE_MONITOR_STRICT;
    if (!missed)
        return;
    char names[128];
    weft_memhooks_report_to(NULL);
    weft_memmon_trials_text(missed, names, sizeof(names));
    snprintf(mon->hooks_why, sizeof(mon->hooks_why), "libc is patched, but the self-test missed %s", names);
}

static void start_uffd(weft_memmon *mon)
{
    if (dl_iterate_phdr(is_emulator, NULL)) {
        snprintf(mon->uffd_why, sizeof(mon->uffd_why), "not under valgrind: it runs one thread at a time");
        return;
    }
    if (weft_uffd_open(&mon->uffd, mon->log, mon->uffd_why, sizeof(mon->uffd_why)))
        return;
    weft_memmon_selftest_uffd(mon);
    uint32_t missed = mon->uffd_trials.tried & ~mon->uffd_trials.seen;
    if (!missed) {
        weft_uffd_keep(&mon->uffd);
        mon->has_uffd = true;
        return;
    }
    char names[128];
    weft_memmon_trials_text(missed, names, sizeof(names));
    snprintf(mon->uffd_why, sizeof(mon->uffd_why), "its self-test missed %s", names);
    weft_uffd_close(&mon->uffd);
}

static void start_monitor(void)
{
    weft_memmon *mon = &the_monitor;
    int knob = weft_knob.regcache_monitor;

    mon->tracked = (weft_ranges){.capacity = WEFT_MEMMON_RANGES_MAX, .at = tracked_at};
    mon->maps = weft_proc_maps_open();
    mon->maps_id = weft_fd_id_of(mon->maps);
    mon->is_single = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    snprintf(mon->hooks_why, sizeof(mon->hooks_why), "excluded by WEFT_REGCACHE_MONITOR");
    snprintf(mon->uffd_why, sizeof(mon->uffd_why), "excluded by WEFT_REGCACHE_MONITOR");
    if (mon->maps < 0) {
        snprintf(mon->hooks_why, sizeof(mon->hooks_why), "/proc/self/maps cannot be read");
        snprintf(mon->uffd_why, sizeof(mon->uffd_why), "/proc/self/maps cannot be read");
        return;
    }
    bool is_both = knob == WEFT_REGCACHE_MONITOR_AUTO || knob == WEFT_REGCACHE_MONITOR_STRICT;
    if (is_both || knob == WEFT_REGCACHE_MONITOR_MEMHOOKS)
        start_memhooks(mon);
    if (is_both || knob == WEFT_REGCACHE_MONITOR_USERFAULTFD)
        start_uffd(mon);
    weft_log_info("memory monitors: userfaultfd %s; memhooks %s", mon->has_uffd ? "in force" : mon->uffd_why,
                  mon->trusts_hooks ? "in force" : mon->has_hooks ? "in force, not trusted alone" : mon->hooks_why);
    mon->cursor = atomic_load(&mon->log->next);
    pthread_atfork(NULL, NULL, weft_memmon_close_in_child);
}

weft_memmon *weft_memmon_get(void)
{
    pthread_once(&once, start_monitor);
    return &the_monitor;
}

void weft_memmon_close_in_child(void)
{
    weft_memmon *mon = &the_monitor;

    if (weft_fd_id_equal(mon->maps_id, weft_fd_id_of(mon->maps)))
        close(mon->maps);
    weft_uffd_forget(&mon->uffd);
    mon->maps = -1;
    mon->has_uffd = false;
    weft_memhooks_report_to(NULL);
    mon->has_hooks = false;
    mon->trusts_hooks = false;
    mon->is_forgotten = true;
    mon->tracked.count = 0;
    pthread_mutex_init(&mon->lock, NULL); /* its holder does not exist in the child */
    /* The listener may have been interrupted: force an overrun, so that readers drop everything. */
    atomic_store(&mon->log->busy, 0);
    atomic_fetch_add(&mon->log->next, 2 * WEFT_INVAL_LOG_CAPACITY);
}

/* -- report -- */

static void describe_source(const char *name, const char *why, bool is_on, const weft_trials *trials,
                     void (*line)(void *arg, const char *text), void *arg)
{
    char text[512], seen[160], missed[160];

    weft_memmon_trials_text(trials->seen, seen, sizeof(seen));
    weft_memmon_trials_text(trials->tried & ~trials->seen, missed, sizeof(missed));
    if (!is_on)
        snprintf(text, sizeof(text), "%s: %s", name, why);
    else
        snprintf(text, sizeof(text), "%s: in force; its self-test saw %s%s%s", name, seen, *missed ? "; not " : "", missed);
    line(arg, text);
}

void weft_memmon_describe(void (*line)(void *arg, const char *text), void *arg)
{
    weft_memmon *mon = weft_memmon_get();

    describe_source("userfaultfd", mon->uffd_why, mon->has_uffd, &mon->uffd_trials, line, arg);
    if (mon->has_uffd && mon->uffd.by_device)
        line(arg, "userfaultfd: opened by /dev/userfaultfd, as the system call is refused");
    if (mon->has_uffd && !mon->uffd.can_sync)
        line(arg, "userfaultfd: this kernel is older than 5.15: nothing is kept while the process has more than one thread");
    describe_source("memhooks", mon->hooks_why, mon->has_hooks, &mon->hooks_trials, line, arg);
    if (mon->has_hooks && !mon->trusts_hooks)
        line(arg, "memhooks: reports earlier than userfaultfd, but is not trusted alone (WEFT_REGCACHE_MONITOR=strict)");
    if (mon->trusts_hooks)
        line(arg, mon->has_uffd ? "tracked: private memory, by both: libc's system calls are reported by memhooks, others by "
                                  "userfaultfd"
                                : "tracked: private memory, by memhooks: system calls that are not libc's are not seen "
                                  "(WEFT_REGCACHE_MONITOR=strict relies on userfaultfd alone)");
    if (!weft_memmon_is_able(mon))
        line(arg, "tracked: nothing; a registration lasts for one message");
    line(arg, weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_ODP ? "on-demand paging: used where a device offers it (untested)"
                                                                      : "on-demand paging: off (untested; WEFT_REGCACHE_MONITOR=odp)");
}
