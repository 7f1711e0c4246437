/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon: starts and self-tests the sources, selects one for each mapping, and keeps a table of the tracked ranges.
 * Called by registration caches, each under its own worker's lock; the table has its own lock.
 * Invariant: every change of a range in the table will be published. A range enters after the log was read and the range registered
 * (or seen mapped by memhooks); the next log entry for it removes it.
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

/* The program has closed the userfaultfd. The listener still reports what is registered, but nothing more can be registered or synced. */
static void lose_uffd(weft_memmon *mon)
{
    if (atomic_exchange(&mon->is_lost, true))
        return;
    weft_inval_log_append(mon->log, 0, UINT64_MAX);
    weft_log_warn("the program has closed a descriptor of Weft (closefrom?), by which unmapped memory is noticed; from now on memory "
                  "is registered anew for each message, which is slower");
}

/* True if the mapping did not change between its lookup and its registration. Another thread may have unmapped a part in between
 * without an event, and a new mapping there would have none either. The kernel does not merge new mappings with registered ones, so
 * one mapping of the same kind is the registered one. */
static bool is_still(weft_memmon *mon, const weft_mapping *mapping)
{
    weft_mapping again;

    return !weft_memmon_needs_sync(mon) || (find_mapping(mon, mapping->start, &again) && again.kind == mapping->kind &&
                                           again.start <= mapping->start && again.end >= mapping->end);
}

static bool track_mapping(weft_memmon *mon, const weft_mapping *mapping, uint64_t start, uint64_t end)
{
    bool is_private = mapping->kind == WEFT_MAPPING_ANONYMOUS || mapping->kind == WEFT_MAPPING_HUGE;

    if (mon->has_uffd && !mon->is_lost && is_private) {
        append_gaps(mon, mapping->start, mapping->end);
        read_inval_log(mon);
        if (weft_uffd_register(&mon->uffd, mapping->start, mapping->end) && is_still(mon, mapping)) {
            add_tracked(mon, mapping->start, mapping->end);
            return true;
        }
        if (!weft_uffd_is_own(&mon->uffd))
            lose_uffd(mon);
    }
    if (!mon->trusts_hooks || !(is_private || mapping->kind == WEFT_MAPPING_SYSV))
        return false;
    start = start > mapping->start ? start : mapping->start;
    end = end < mapping->end ? end : mapping->end;
    append_gaps(mon, start, end);
    read_inval_log(mon);
    if (!mon->hooks->is_range_seen(start, end))
        return false;
    add_tracked(mon, start, end);
    return true;
}

bool weft_memmon_track(weft_memmon *mon, uint64_t start, uint64_t end)
{
    bool is_sure = true;

    if (!mon->has_uffd && !mon->trusts_hooks)
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

bool weft_memmon_needs_sync(const weft_memmon *mon)
{
    return mon->has_uffd && !(mon->is_single && *(const volatile char *)mon->is_single);
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

static void start_memhooks(weft_memmon *mon)
{
    weft_memhooks *hooks = dlsym(RTLD_DEFAULT, WEFT_MEMHOOKS_SYMBOL);
    const uint32_t needed = 1u << WEFT_TRIAL_MUNMAP | 1u << WEFT_TRIAL_FIXED | 1u << WEFT_TRIAL_MREMAP |
                            1u << WEFT_TRIAL_MADVISE | 1u << WEFT_TRIAL_SYSCALL;

    if (!hooks) {
        snprintf(mon->hooks_why, sizeof(mon->hooks_why), "not preloaded (started without mpirun?)");
        return;
    }
    if (hooks->version != WEFT_MEMHOOKS_VERSION || hooks->bytes != sizeof(*hooks)) {
        snprintf(mon->hooks_why, sizeof(mon->hooks_why), "the one that was preloaded belongs to another build of Weft");
        return;
    }
    mon->hooks = hooks;
    mon->log = &hooks->log;
    weft_memmon_selftest_hooks(mon);
    if ((mon->hooks_trials.seen & needed) == needed) {
        /* memhooks misses inline system calls, and a missed one sends wrong data silently: trusted only on the user's request. */
        mon->trusts_hooks = weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_MEMHOOKS;
        return;
    }
    char missed[128];
    weft_memmon_trials_text(needed & ~mon->hooks_trials.seen, missed, sizeof(missed));
    snprintf(mon->hooks_why, sizeof(mon->hooks_why), "preloaded, but it misses %s: another library intercepts these calls",
             missed);
    mon->hooks = NULL;
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
    if (knob == WEFT_REGCACHE_MONITOR_AUTO || knob == WEFT_REGCACHE_MONITOR_MEMHOOKS)
        start_memhooks(mon);
    if (knob == WEFT_REGCACHE_MONITOR_AUTO || knob == WEFT_REGCACHE_MONITOR_USERFAULTFD)
        start_uffd(mon);
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
    mon->hooks = NULL;
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
    describe_source("memhooks", mon->hooks_why, mon->hooks != NULL, &mon->hooks_trials, line, arg);
    if (mon->trusts_hooks)
        line(arg, "memhooks: trusted alone (WEFT_REGCACHE_MONITOR=memhooks): tracks what the program itself mapped; after an inline "
                  "system call, which it cannot see, wrong data would be sent");
    else if (mon->hooks)
        line(arg, mon->has_uffd ? "memhooks: active, to report earlier than userfaultfd"
                                : "memhooks: tracks nothing by itself, because an inline system call bypasses it; "
                                  "WEFT_REGCACHE_MONITOR=memhooks trusts it nevertheless");
    if (!mon->has_uffd && !mon->trusts_hooks)
        line(arg, "tracked: nothing; a registration lasts for one message");
    line(arg, weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_ODP ? "on-demand paging: used where a device offers it (untested)"
                                                                      : "on-demand paging: off (untested; WEFT_REGCACHE_MONITOR=odp)");
}
