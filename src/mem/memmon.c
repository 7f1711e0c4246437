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

#define SETTLE_TRIES 400 /* about 200 us: longer than a running listener needs, shorter than a new registration */

static weft_inval_log own_news;
static weft_range covered_at[WEFT_MEMMON_TEXT_BYTES];
static weft_memmon the_watch = {.news = &own_news, .lock = PTHREAD_MUTEX_INITIALIZER, .maps = -1, .fault = {.fd = -1, .stop = -1}};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* -- the table -- */

static void forget_range(void *arg, weft_range range)
{
    weft_memmon *watch = arg;

    if (!(range.start & WEFT_INVAL_LOG_EMPTIED))
        weft_ranges_remove(&watch->covered, range.start, range.end);
}

static void remember(weft_memmon *watch, uint64_t start, uint64_t end)
{
    if (weft_ranges_add(&watch->covered, start, end))
        return;
    watch->covered.count = 0; /* full: ranges are added again on demand */
    weft_ranges_add(&watch->covered, start, end);
}

static void read_inval_log(weft_memmon *watch)
{
    if (!weft_inval_log_read(watch->news, &watch->cursor, forget_range, watch))
        watch->covered.count = 0;
}

/* -- one mapping -- */

/* Publishes the untracked parts of [start, end): registrations there may be stale. */
static void tell_gaps(weft_memmon *watch, uint64_t start, uint64_t end)
{
    const weft_ranges *known = &watch->covered;

    for (uint32_t i = weft_ranges_after(known, start); start < end; i++) {
        uint64_t stop = i < known->count && known->at[i].start < end ? known->at[i].start : end;
        if (start < stop)
            weft_inval_log_append(watch->news, start, stop);
        start = stop < end ? known->at[i].end : end;
    }
}

/* True if the mapping did not change between its lookup and its registration. Another thread may have unmapped a part in between
 * without an event, and a new mapping there would have none either. The kernel does not merge new mappings with registered ones, so
 * one mapping of the same kind is the registered one. */
static bool is_still(const weft_memmon *watch, const weft_mapping *mapping)
{
    weft_mapping again;

    return !weft_memmon_needs_sync(watch) || (weft_proc_maps_find(watch->maps, mapping->start, &again) && again.kind == mapping->kind &&
                                           again.start <= mapping->start && again.end >= mapping->end);
}

static bool cover_mapping(weft_memmon *watch, const weft_mapping *mapping, uint64_t start, uint64_t end)
{
    bool is_private = mapping->kind == WEFT_MAPPING_ANONYMOUS || mapping->kind == WEFT_MAPPING_HUGE;

    if (watch->has_fault && is_private) {
        tell_gaps(watch, mapping->start, mapping->end);
        read_inval_log(watch);
        if (weft_uffd_register(&watch->fault, mapping->start, mapping->end) && is_still(watch, mapping)) {
            remember(watch, mapping->start, mapping->end);
            return true;
        }
    }
    if (!watch->trusts_preload || !(is_private || mapping->kind == WEFT_MAPPING_SYSV))
        return false;
    start = start > mapping->start ? start : mapping->start;
    end = end < mapping->end ? end : mapping->end;
    tell_gaps(watch, start, end);
    read_inval_log(watch);
    if (!watch->preload->saw(start, end))
        return false;
    remember(watch, start, end);
    return true;
}

bool weft_memmon_track(weft_memmon *watch, uint64_t start, uint64_t end)
{
    bool is_sure = true;

    if (!watch->has_fault && !watch->trusts_preload)
        return false;
    pthread_mutex_lock(&watch->lock);
    if (watch->is_forgotten || (weft_memmon_needs_sync(watch) && !weft_memmon_sync(watch)))
        is_sure = false;
    else
        read_inval_log(watch);
    if (is_sure && !weft_ranges_hold(&watch->covered, start, end))
        for (uint64_t at = start; at < end && is_sure;) {
            weft_mapping mapping = {0};
            is_sure = weft_proc_maps_find(watch->maps, at, &mapping) && cover_mapping(watch, &mapping, start, end);
            at = mapping.end;
        }
    pthread_mutex_unlock(&watch->lock);
    return is_sure;
}

bool weft_memmon_needs_sync(const weft_memmon *watch)
{
    return watch->has_fault && !(watch->is_single && *(const volatile char *)watch->is_single);
}

bool weft_memmon_sync(const weft_memmon *watch)
{
    if (!watch->fault.can_settle)
        return false;
    for (int n = 0; n < SETTLE_TRIES; n++) {
        if (weft_uffd_is_settled(&watch->fault))
            return true;
        if (n > 8)
            sched_yield(); /* the listener or the unmapping thread may need this CPU */
    }
    return false;
}

const weft_inval_log *weft_memmon_log(const weft_memmon *watch)
{
    return watch->news;
}

/* -- start and end -- */

/* True under valgrind, which runs one thread at a time: the unmapping thread would wait for a listener that cannot run. */
static int is_emulator(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes, (void)arg;
    return info->dlpi_name && strstr(info->dlpi_name, "vgpreload") != NULL;
}

static void start_preload(weft_memmon *watch)
{
    weft_memhooks *preload = dlsym(RTLD_DEFAULT, WEFT_PRELOAD_SYMBOL);
    const uint32_t needed = 1u << WEFT_TRIAL_MUNMAP | 1u << WEFT_TRIAL_FIXED | 1u << WEFT_TRIAL_MREMAP |
                            1u << WEFT_TRIAL_MADVISE | 1u << WEFT_TRIAL_SYSCALL;

    if (!preload) {
        snprintf(watch->preload_why, sizeof(watch->preload_why), "not preloaded (started without mpirun?)");
        return;
    }
    if (preload->version != WEFT_PRELOAD_VERSION || preload->bytes != sizeof(*preload)) {
        snprintf(watch->preload_why, sizeof(watch->preload_why), "the one that was preloaded belongs to another build of Weft");
        return;
    }
    watch->preload = preload;
    watch->news = &preload->news;
    weft_memmon_try_preload(watch);
    if ((watch->preload_trials.seen & needed) == needed) {
        /* memhooks misses inline system calls, and a missed one sends wrong data silently: trusted only on the user's request. */
        watch->trusts_preload = weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_MEMHOOKS;
        return;
    }
    char missed[128];
    weft_memmon_name_trials(needed & ~watch->preload_trials.seen, missed, sizeof(missed));
    snprintf(watch->preload_why, sizeof(watch->preload_why), "preloaded, but blind for %s: something else took these calls",
             missed);
    watch->preload = NULL;
}

static void start_fault(weft_memmon *watch)
{
    if (dl_iterate_phdr(is_emulator, NULL)) {
        snprintf(watch->fault_why, sizeof(watch->fault_why), "not under valgrind: it runs one thread at a time");
        return;
    }
    if (weft_uffd_open(&watch->fault, watch->news, watch->fault_why, sizeof(watch->fault_why)))
        return;
    weft_memmon_try_fault(watch);
    uint32_t missed = watch->fault_trials.tried & ~watch->fault_trials.seen;
    if (!missed) {
        watch->has_fault = true;
        return;
    }
    char names[128];
    weft_memmon_name_trials(missed, names, sizeof(names));
    snprintf(watch->fault_why, sizeof(watch->fault_why), "its self-test missed %s", names);
    weft_uffd_close(&watch->fault);
}

static void start_watch(void)
{
    weft_memmon *watch = &the_watch;
    int knob = weft_knob.regcache_monitor;

    watch->covered = (weft_ranges){.room = WEFT_MEMMON_TEXT_BYTES, .at = covered_at};
    watch->maps = weft_proc_maps_open();
    watch->is_single = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    snprintf(watch->preload_why, sizeof(watch->preload_why), "excluded by WEFT_REGCACHE_MONITOR");
    snprintf(watch->fault_why, sizeof(watch->fault_why), "excluded by WEFT_REGCACHE_MONITOR");
    if (watch->maps < 0) {
        snprintf(watch->preload_why, sizeof(watch->preload_why), "/proc/self/maps cannot be read");
        snprintf(watch->fault_why, sizeof(watch->fault_why), "/proc/self/maps cannot be read");
        return;
    }
    if (knob == WEFT_REGCACHE_MONITOR_AUTO || knob == WEFT_REGCACHE_MONITOR_MEMHOOKS)
        start_preload(watch);
    if (knob == WEFT_REGCACHE_MONITOR_AUTO || knob == WEFT_REGCACHE_MONITOR_USERFAULTFD)
        start_fault(watch);
    watch->cursor = atomic_load(&watch->news->next);
    pthread_atfork(NULL, NULL, weft_memmon_forget);
}

weft_memmon *weft_memmon_get(void)
{
    pthread_once(&once, start_watch);
    return &the_watch;
}

void weft_memmon_forget(void)
{
    weft_memmon *watch = &the_watch;

    if (watch->maps >= 0)
        close(watch->maps);
    weft_uffd_forget(&watch->fault);
    watch->maps = -1;
    watch->has_fault = false;
    watch->preload = NULL;
    watch->trusts_preload = false;
    watch->is_forgotten = true;
    watch->covered.count = 0;
    pthread_mutex_init(&watch->lock, NULL); /* its holder does not exist in the child */
    /* The listener may have been interrupted: force an overrun, so that readers drop everything. */
    atomic_store(&watch->news->busy, 0);
    atomic_fetch_add(&watch->news->next, 2 * WEFT_INVAL_LOG_ROOM);
}

/* -- report -- */

static void tell_one(const char *name, const char *why, bool is_on, const weft_trials *trials,
                     void (*line)(void *arg, const char *text), void *arg)
{
    char text[512], seen[160], missed[160];

    weft_memmon_name_trials(trials->seen, seen, sizeof(seen));
    weft_memmon_name_trials(trials->tried & ~trials->seen, missed, sizeof(missed));
    if (!is_on)
        snprintf(text, sizeof(text), "%s: %s", name, why);
    else
        snprintf(text, sizeof(text), "%s: in force; its self-test saw %s%s%s", name, seen, *missed ? "; not " : "", missed);
    line(arg, text);
}

void weft_memmon_describe(void (*line)(void *arg, const char *text), void *arg)
{
    weft_memmon *watch = weft_memmon_get();

    tell_one("userfaultfd", watch->fault_why, watch->has_fault, &watch->fault_trials, line, arg);
    if (watch->has_fault && watch->fault.by_device)
        line(arg, "userfaultfd: made by /dev/userfaultfd, as the system call is refused");
    if (watch->has_fault && !watch->fault.can_settle)
        line(arg, "userfaultfd: this kernel is older than 5.15: nothing is kept while the process has more than one thread");
    tell_one("interposer", watch->preload_why, watch->preload != NULL, &watch->preload_trials, line, arg);
    if (watch->trusts_preload)
        line(arg, "interposer: trusted alone (WEFT_REGCACHE_MONITOR=memhooks): covers what the program itself mapped; a system call "
                  "that is made inline it cannot see, and then wrong data would be sent");
    else if (watch->preload)
        line(arg, watch->has_fault ? "interposer: only brings userfaultfd's news earlier"
                                   : "interposer: covers nothing by itself, because a system call that is made inline passes it "
                                     "by; WEFT_REGCACHE_MONITOR=memhooks trusts it nevertheless");
    if (!watch->has_fault && !watch->trusts_preload)
        line(arg, "watched: nothing; a registration lasts for one message");
    line(arg, weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_ODP ? "on-demand paging: used where a device offers it (never proven)"
                                                    : "on-demand paging: off (unproven; WEFT_REGCACHE_MONITOR turns it on)");
}
