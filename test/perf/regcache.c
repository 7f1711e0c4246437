/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache: cost of a look-up in the registration cache, and of its parts. Run by hand (built by make check-programs). The device does
 * nothing, so a miss is shown without the registration itself. Nanoseconds: hits in CPU time of the thread, the best of nine rounds; first
 * uses in wall time, the best of 100.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/raw_thread.h"
#include "mem/memmon_internal.h"
#include "mem/regcache.h"

#define ROUNDS 9
#define PAGE 4096u
#define MANY 1000u

static int map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *record)
{
    (void)owner, (void)addr, (void)bytes, (void)rights, (void)record;
    return 0;
}

static void unmap(void *owner, void *record) { (void)owner, (void)record; }

static weft_regcache *open_cache(void)
{
    weft_regcache_config config = {.map = map, .unmap = unmap, .record_bytes = 64, .max_bytes = (uint64_t)1 << 40,
                                   .max_regions = 1 << 20};
    weft_regcache *cache = NULL;

    if (weft_regcache_open(&config, &cache))
        exit(1);
    return cache;
}

static char *fresh(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static void pin_all(weft_regcache *cache, char *p, unsigned buffers, size_t apart)
{
    for (unsigned i = 0; i < buffers; i++) {
        weft_reg *pin;
        p[i * apart] = 1;
        if (weft_regcache_acquire(cache, p + i * apart, PAGE, 0, &pin))
            exit(1);
        weft_regcache_release(cache, pin);
    }
}

/* CPU time of this thread: others may share the machine. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Look-up and release over that many buffers, in order or at random. was_synced: as for a receive posted before the last sync. */
static double hits(weft_regcache *cache, char *p, unsigned buffers, size_t apart, bool is_random, bool was_synced)
{
    double best = 1e30;
    const unsigned times = 50000;

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t at = 1;
        uint64_t start = cpu_ns();
        for (unsigned i = 0; i < times; i++) {
            at = is_random ? at * 1664525u + 1013904223u : i;
            bool is_asked = was_synced;
            weft_reg *pin = weft_regcache_lookup_synced(cache, p + (is_random ? at >> 8 : at) % buffers * apart, 64, 0, &is_asked);
            if (!pin) {
                printf("a look-up missed\n");
                exit(1);
            }
            weft_regcache_release(cache, pin);
        }
        double ns = (double)(cpu_ns() - start) / times;
        best = ns < best ? ns : best;
    }
    return best;
}

static void show(const char *what, double ns) { printf("  %-78s %10.1f\n", what, ns); }

static void show_hits(const char *when)
{
    weft_regcache *cache = open_cache();
    size_t apart = 2 * PAGE; /* not adjacent */
    char *p = fresh(MANY * apart);

    printf("hit (look-up and drop), %s\n", when);
    pin_all(cache, p, 1, apart);
    show("one buffer, again and again", hits(cache, p, 1, apart, false, false));
    pin_all(cache, p, 32, apart);
    show("32 buffers in turn", hits(cache, p, 32, apart, false, false));
    pin_all(cache, p, MANY, apart);
    show("1,000 buffers in turn", hits(cache, p, MANY, apart, false, false));
    show("1,000 buffers at random", hits(cache, p, MANY, apart, true, false));
    show("one buffer, posted before the kernel was last asked", hits(cache, p, 1, apart, false, true));
    weft_regcache_close(cache);
    munmap(p, MANY * apart);
}

static double tidies(weft_regcache *cache)
{
    uint64_t start = cpu_ns();

    for (int i = 0; i < 1000000; i++)
        weft_regcache_reclaim(cache);
    return (double)(cpu_ns() - start) / 1000000;
}

/* Cost of a thread's work before each sleep. */
static void show_tidies(void)
{
    weft_regcache *cache = open_cache();
    char *p = fresh(4 * PAGE);

    printf("tidy, nothing to do\n");
    pin_all(cache, p, 1, PAGE);
    show("no helper", tidies(cache));
    weft_regcache_acquire_async(cache, p + 2 * PAGE, PAGE, 0);
    show("a helper that registers asynchronously", tidies(cache));
    weft_regcache_close(cache);
    munmap(p, 4 * PAGE);
}

static void *twin(void *result)
{
    weft_regcache *cache = open_cache();
    char *p = fresh(64 * PAGE);

    pin_all(cache, p, 1, PAGE);
    *(double *)result = hits(cache, p, 1, PAGE, false, false);
    weft_regcache_close(cache);
    return NULL;
}

enum part { MISS, COVER, FIND, FIND_TEXT, UNMAP, FREE_PLAIN, PARTS };

/* A new buffer each time: parts of its first registration, and the cost of unmapping it. */
static void show_misses(size_t bytes)
{
    static const char *const names[PARTS] = {"miss: all of it (the device does nothing)", "of it: covering a new mapping",
                                             "of that: finding the mapping", "(by the text of /proc/self/maps)",
                                             "munmap of it, reported", "munmap of untracked memory"};
    weft_memmon *mon = weft_memmon_get();
    weft_regcache *cache = open_cache();
    double best[PARTS];
    char title[128];

    for (int part = 0; part < PARTS; part++)
        best[part] = 1e30;
    for (int round = 0; round < 100; round++)
        for (int part = 0; part < PARTS; part++) {
            char *guard = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p = fresh(bytes);
            uint64_t at = (uint64_t)(uintptr_t)p;
            weft_mapping m;
            weft_reg *pin = NULL;
            memset(p, 1, bytes);
            if (part == UNMAP)
                weft_memmon_track(mon, at, at + bytes);
            uint64_t start = weft_clock_ns();
            if (part == MISS)
                weft_regcache_acquire(cache, p, bytes, 0, &pin);
            else if (part == COVER)
                weft_memmon_track(mon, at, at + bytes);
            else if (part == FIND)
                weft_proc_maps_find(mon->maps, at, &m);
            else if (part == FIND_TEXT)
                weft_proc_maps_find_by_text(mon->maps, at, &m);
            else
                munmap(p, bytes);
            double ns = (double)(weft_clock_ns() - start);
            best[part] = ns < best[part] ? ns : best[part];
            if (pin)
                weft_regcache_release(cache, pin);
            munmap(p, bytes);
            munmap(guard, PAGE);
            weft_regcache_reclaim(cache);
        }
    snprintf(title, sizeof(title), "first use of %zu KiB, pages touched, best of 100", bytes >> 10);
    printf("%s\n", title);
    for (int part = 0; part < PARTS; part++)
        show(names[part], best[part]);
    weft_regcache_close(cache);
}

static void print_line(void *arg, const char *text) { (void)arg, printf("%s\n", text); }

static void *sleep_on(void *arg)
{
    (void)arg;
    pause();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    double results[2];

    weft_knobs_load(true);
    weft_memmon_describe(print_line, NULL);
    show_hits("one thread in the process");
    show_tidies();
    show_misses(64 << 10);
    show_misses(4 << 20);
    pthread_create(&threads[0], NULL, sleep_on, NULL);
    show_hits("several threads in the process");
    uint64_t start = cpu_ns();
    for (int i = 0; i < 100000; i++)
        weft_memmon_sync(weft_memmon_get());
    show("of it: asking", (double)(cpu_ns() - start) / 100000);
    start = cpu_ns();
    for (int i = 0; i < 100000; i++)
        weft_raw_syscall(SYS_getppid, 0, 0, 0, 0);
    show("a system call that does nothing (getppid)", (double)(cpu_ns() - start) / 100000);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, twin, &results[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("hit, two threads at once, a cache each\n");
    show("one buffer, the slower of both", results[0] > results[1] ? results[0] : results[1]);
    return 0;
}
