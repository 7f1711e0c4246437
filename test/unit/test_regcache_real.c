/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_regcache_real: real memory unmapped in every way, by one thread and by several. The device holds the pages themselves (vmsplice):
 * data written to the buffer must be read through the registration. The same run with a memmon that reports nothing must fail.
 */
#include <CUnit/Basic.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/raw_thread.h"
#include "base/status.h"
#include "mem/regcache_internal.h"
#include "regcache_device.h"

/* ThreadSanitizer does not see mremap and raw munmap: a page given back by one thread and received by another looks shared. Accesses to
 * the buffers' pages are therefore not instrumented; all others are. */
#define UNSEEN_BY_TSAN __attribute__((no_sanitize("thread")))

#define STAMPS 8
#define BUFFERS 12

/* A registration of this device references its first pages by a pipe: it reads those pages, wherever the address leads by now. */
typedef struct stamped {
    record base;
    uint64_t pages;
    int pipe[2];
} stamped;

static _Atomic uint64_t next_stamp = 1;

static int map_stamped(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *at)
{
    stamped *s = at;
    struct iovec from[STAMPS];

    s->pages = bytes / PAGE < STAMPS ? bytes / PAGE : STAMPS;
    for (uint64_t i = 0; i < s->pages; i++)
        from[i] = (struct iovec){(char *)addr + i * PAGE, 8};
    if (pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK))
        return WEFT_E_NOMEM;
    /* Unmapped memory cannot be registered: the kernel reports it, as to a driver. */
    int rc = vmsplice(s->pipe[1], from, s->pages, 0) == (ssize_t)(8 * s->pages) ? device_map(owner, addr, bytes, rights, &s->base)
                                                                                 : WEFT_E_UNSUPPORTED;
    if (rc) {
        close(s->pipe[0]);
        close(s->pipe[1]);
    }
    return rc;
}

static void unmap_stamped(void *owner, void *at)
{
    stamped *s = at;

    close(s->pipe[0]);
    close(s->pipe[1]);
    device_unmap(owner, &s->base);
}

typedef struct rider {
    weft_memmon *memmon;
    uint32_t seed;
    int steps;
    uint64_t stale, checks, hits;
    int scratch[2];
} rider;

typedef struct buffer {
    char *start; /* whole pages */
    uint64_t bytes;
    char *block; /* from malloc, if it was */
} buffer;

UNSEEN_BY_TSAN static void stamp(buffer *b, uint64_t from)
{
    for (uint64_t i = from; i < b->bytes; i += PAGE)
        *(uint64_t *)(void *)(b->start + i) = atomic_fetch_add(&next_stamp, 1);
}

static void align(buffer *b, uint64_t bytes)
{
    b->start = (char *)(((uintptr_t)b->block + PAGE - 1) & ~(PAGE - 1));
    b->bytes = bytes;
}

static void make(buffer *b, uint32_t *seed)
{
    uint64_t bytes = (1 + rand_r(seed) % 60) * PAGE;

    b->block = NULL;
    if (rand_r(seed) % 2) {
        bytes += rand_r(seed) % 3 ? 0 : 40 * PAGE; /* some above malloc's mmap threshold, some in the heap */
        b->block = malloc(bytes + PAGE);
        align(b, bytes);
    } else {
        b->start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        b->bytes = bytes;
        if (b->start == MAP_FAILED)
            b->start = NULL, b->bytes = 0;
    }
    stamp(b, 0);
}

static void unmake(buffer *b, uint32_t *seed)
{
    if (b->block)
        free(b->block);
    else if (rand_r(seed) % 2)
        munmap(b->start, b->bytes);
    else
        syscall(SYS_munmap, b->start, b->bytes);
    b->start = NULL;
}

UNSEEN_BY_TSAN static void change_mapping(buffer *b, uint32_t *seed)
{
    uint64_t bytes = (1 + rand_r(seed) % 60) * PAGE, old = b->bytes;
    char *p;

    switch (rand_r(seed) % 4) {
    case 0:
        p = mremap(b->start, b->bytes, bytes, MREMAP_MAYMOVE);
        if (p == MAP_FAILED)
            break;
        b->start = p;
        b->bytes = bytes;
        if (bytes > old)
            stamp(b, old);
        break;
    case 1:
        if (mmap(b->start, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == b->start)
            stamp(b, 0);
        break;
    default:
        p = b->start + rand_r(seed) % (b->bytes / PAGE) * PAGE;
        if (rand_r(seed) % 2)
            madvise(p, PAGE, MADV_DONTNEED);
        else
            syscall(SYS_madvise, p, PAGE, MADV_DONTNEED);
        *(uint64_t *)(void *)p = atomic_fetch_add(&next_stamp, 1);
    }
}

static void change(buffer *b, uint32_t *seed)
{
    if (!b->block) {
        change_mapping(b, seed);
    } else {
        uint64_t bytes = (1 + rand_r(seed) % 100) * PAGE;
        b->block = realloc(b->block, bytes + PAGE);
        align(b, bytes);
        stamp(b, 0);
    }
}

/* Writes into the buffer, and reads through the registration. */
UNSEEN_BY_TSAN static void check(rider *r, const buffer *b, const weft_reg *pin)
{
    const stamped *s = (const stamped *)(const void *)pin->record;
    uint64_t seen[STAMPS];

    stamp((buffer *)b, 0);
    if (tee(s->pipe[0], r->scratch[1], 8 * s->pages, 0) != (ssize_t)(8 * s->pages) ||
        read(r->scratch[0], seen, 8 * s->pages) != (ssize_t)(8 * s->pages)) {
        r->stale += 1000000;
        return;
    }
    for (uint64_t i = 0; i < s->pages; i++) {
        uint64_t addr = pin->start + i * PAGE;
        if (addr < (uint64_t)(uintptr_t)b->start || addr >= (uint64_t)(uintptr_t)b->start + b->bytes)
            continue;
        r->checks++;
        r->stale += seen[i] != *(const uint64_t *)(uintptr_t)addr;
    }
}

static void *ride(void *arg)
{
    rider *r = arg;
    device d;
    buffer buffers[BUFFERS] = {{NULL, 0, NULL}};
    weft_regcache_config config = {.map = map_stamped, .unmap = unmap_stamped, .owner = &d, .record_bytes = sizeof(stamped),
                                   .max_bytes = 4096 * PAGE, .max_regions = 64, .memmon = r->memmon,
                                   .inline_max = r->seed % 2 ? 8 * PAGE : 0};
    weft_regcache *cache;

    memset(&d, 0, sizeof(d));
    pthread_mutex_init(&d.lock, NULL);
    if (weft_regcache_open(&config, &cache) || pipe2(r->scratch, O_CLOEXEC))
        return NULL;
    for (int step = 0; step < r->steps; step++) {
        buffer *b = &buffers[rand_r(&r->seed) % BUFFERS];
        unsigned what = (unsigned)rand_r(&r->seed) % 8;
        weft_reg *pin = NULL;
        if (!b->start)
            make(b, &r->seed);
        else if (what == 0)
            unmake(b, &r->seed);
        else if (what == 1)
            change(b, &r->seed);
        if (!b->start)
            continue;
        uint64_t skip = rand_r(&r->seed) % (b->bytes / PAGE) * PAGE;
        if (what == 2 && r->memmon->has_uffd)
            weft_regcache_acquire_async(cache, b->start, b->bytes, 1);
        else if (!acquire_made(cache, b->start + skip, b->bytes - skip, 1, &pin)) {
            check(r, b, pin);
            weft_regcache_release(cache, pin);
        }
    }
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].start)
            unmake(&buffers[i], &r->seed);
    r->hits = weft_regcache_stats(cache).hits;
    weft_regcache_close(cache);
    close(r->scratch[0]);
    close(r->scratch[1]);
    if (d.regions || d.bytes)
        r->stale += 1000000;
    return NULL;
}

static void ride_all(weft_memmon *memmon, int threads, int steps, rider *sum)
{
    pthread_t ids[8];
    rider riders[8];

    *sum = (rider){.memmon = memmon};
    for (int i = 0; i < threads; i++) {
        riders[i] = (rider){.memmon = memmon, .seed = (uint32_t)(i * 7919 + steps), .steps = steps};
        if (threads > 1)
            pthread_create(&ids[i], NULL, ride, &riders[i]);
        else
            ride(&riders[i]);
    }
    for (int i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(ids[i], NULL);
        sum->stale += riders[i].stale;
        sum->checks += riders[i].checks;
        sum->hits += riders[i].hits;
    }
    printf("(%llu pages checked, %llu stale, %llu hits) ", (unsigned long long)sum->checks, (unsigned long long)sum->stale,
           (unsigned long long)sum->hits);
}

static void test_real_one_thread(void)
{
    rider sum;

    for (int is_helped = 0; is_helped < 2; is_helped++) {
        ride_all(weft_memmon_get(), 1, 20000 + is_helped, &sum);
        CU_ASSERT_EQUAL(sum.stale, 0);
        CU_ASSERT(sum.checks > 1000);
        CU_ASSERT(!weft_memmon_get()->has_uffd || sum.hits > 1000);
    }
}

static void test_real_threads(void)
{
    rider sum;

    ride_all(weft_memmon_get(), 4, 15000, &sum);
    CU_ASSERT_EQUAL(sum.stale, 0);
    CU_ASSERT(sum.checks > 1000);
}

/* Without events the same memory must be found stale, or the tests above prove nothing. */
static void test_real_without_events(void)
{
    rider sum;

    see_all();
    ride_all(&blind, 1, 4000, &sum);
    CU_ASSERT(sum.stale > 0 && sum.stale < 1000000);
}

/* -- a look-up during an unmapping -- */

static void *unmapper(void *arg)
{
    syscall(SYS_munmap, arg, 64 * PAGE);
    return NULL;
}

/* The first look-up syncs and reports it; buffers passed before that are found without a sync. */
static void look_once_asked(weft_regcache *cache, char *p)
{
    bool is_asked = false;
    uint64_t before = weft_regcache_stats(cache).syncs;

    for (int i = 0; i < 5; i++) {
        weft_reg *pin = weft_regcache_lookup_synced(cache, p + (uint64_t)i * PAGE, PAGE, 0, &is_asked);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
        CU_ASSERT_TRUE(is_asked);
        weft_regcache_release(cache, pin);
    }
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).syncs, before + 1);
}

/* The event thread is stopped, so the event stays unread, and the address is reused: the look-up must not hit. */
static void test_lookup_syncs(void)
{
    static weft_inval_log unread;
    static weft_range room[8];
    static weft_memmon memmon = {.log = &unread, .tracked = {.capacity = 8, .at = room}, .lock = PTHREAD_MUTEX_INITIALIZER,
                               .has_uffd = true};
    device d;
    char why[192], message[64];
    pthread_t thread;
    weft_mapping m;
    weft_reg *pin = NULL;
    char *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!weft_memmon_get()->has_uffd) {
        printf("(skipped: userfaultfd is not in force here) ");
        return;
    }
    if (weft_uffd_open(&memmon.uffd, &unread, why, sizeof(why))) {
        printf("(skipped: %s) ", why);
        return;
    }
    memmon.maps = weft_proc_maps_open();
    memmon.maps_id = weft_fd_id_of(memmon.maps);
    weft_regcache *cache = open_cache(&d, &memmon, 1 << 30, 100);
    CU_ASSERT_EQUAL_FATAL(weft_regcache_acquire(cache, p, 64 * PAGE, 0, &pin), WEFT_OK);
    weft_regcache_release(cache, pin);
    pin = weft_regcache_lookup(cache, p, 64 * PAGE, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
    weft_regcache_release(cache, pin);
    look_once_asked(cache, p);
    eventfd_write(memmon.uffd.stop, 1);
    while (atomic_load(&memmon.uffd.is_alive))
        sched_yield();
    pthread_create(&thread, NULL, unmapper, p);
    while (weft_proc_maps_find(memmon.maps, (uint64_t)(uintptr_t)p, &m) && m.start <= (uint64_t)(uintptr_t)p)
        sched_yield();
    CU_ASSERT_PTR_EQUAL(mmap(p, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), p);
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, p, 64 * PAGE, 0));
    bool is_asked = false;
    CU_ASSERT_PTR_NULL(weft_regcache_lookup_synced(cache, p, 64 * PAGE, 0, &is_asked));
    CU_ASSERT_FALSE(is_asked); /* no answer: no other look-up may rely on it */
    CU_ASSERT_FALSE(weft_regcache_may_keep(cache, p, PAGE));
    CU_ASSERT(weft_regcache_acquire(cache, p, PAGE, 0, &pin) == WEFT_OK); /* registered now, for this use only */
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).uncached, 1);
    weft_regcache_release(cache, pin);
    CU_ASSERT(read(memmon.uffd.fd, message, sizeof(message)) > 0);
    pthread_join(thread, NULL);
    close_cache(cache, &d);
    munmap(p, 64 * PAGE);
    if (memmon.uffd.is_pthread)
        pthread_join(memmon.uffd.thread, NULL);
    weft_uffd_forget(&memmon.uffd);
    close(memmon.maps);
}

/* -- memory that is unmapped while its owner makes no call -- */

#define BIG 64 /* pages */

static char *fresh(uint64_t pages)
{
    char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(p != MAP_FAILED);
    return p;
}

/* Waits without a call to the cache: up to 20 s, as the machine may be busy. */
static bool falls_to(const device *d, uint64_t regions)
{
    for (int i = 0; i < 20000 && d->regions != regions; i++)
        usleep(1000);
    return d->regions == regions;
}

static void make_pin(weft_regcache *cache, char *p, uint64_t pages)
{
    weft_reg *pin = NULL;
    CU_ASSERT_EQUAL_FATAL(acquire_made(cache, p, pages * PAGE, 0, &pin), WEFT_OK);
    weft_regcache_release(cache, pin);
}

static bool has_monitor(void)
{
    if (weft_memmon_is_able(weft_memmon_get()))
        return true;
    printf("(skipped: no monitor is in force here) ");
    return false;
}

static void test_unpins(void)
{
    device d;
    weft_reg *used = NULL;

    if (!has_monitor())
        return;
    inline_max = 8 * PAGE;
    weft_regcache *cache = open_cache(&d, weft_memmon_get(), 1 << 30, 100);
    char *big = fresh(BIG), *part = fresh(BIG), *small = fresh(1), *discarded = fresh(BIG);
    char *block = WEFT_IS_SANITIZED ? fresh(BIG) : malloc(16 * BIG * PAGE); /* more than malloc keeps; a sanitizer may keep it */

    make_pin(cache, big, BIG);
    make_pin(cache, small, 1);
    make_pin(cache, block, BIG);
    make_pin(cache, discarded, BIG);
    CU_ASSERT_EQUAL_FATAL(acquire_made(cache, part, BIG * PAGE, 0, &used), WEFT_OK);
    CU_ASSERT_EQUAL(d.regions, 5);
    munmap(big, BIG * PAGE);
    CU_ASSERT_TRUE(falls_to(&d, 4));
    munmap(small, PAGE);
    CU_ASSERT_TRUE(falls_to(&d, 3));
    if (WEFT_IS_SANITIZED)
        munmap(block, BIG * PAGE);
    else
        free(block);
    CU_ASSERT_TRUE(falls_to(&d, 2));
    /* One that is in use stays until its last release, which needs no look-up. */
    munmap(part + BIG / 2 * PAGE, BIG / 2 * PAGE);
    madvise(discarded, PAGE, MADV_DONTNEED);
    CU_ASSERT_TRUE(falls_to(&d, 1));
    CU_ASSERT_EQUAL(((record *)(void *)used->record)->is_live, 1);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).unpinned, 4);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).pinned_regions, 1);
    weft_regcache_release(cache, used);
    CU_ASSERT_TRUE(falls_to(&d, 0));
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, part, PAGE, 0));
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, discarded, PAGE, 0));
    make_pin(cache, part, BIG / 2);
    CU_ASSERT_EQUAL(d.regions, 1);
    close_cache(cache, &d);
    munmap(part, BIG / 2 * PAGE);
    munmap(discarded, BIG * PAGE);
    inline_max = 0;
}

/* The helper is not woken by what no registration covers. */
static void test_sleeps_on(void)
{
    device d;

    if (!has_monitor())
        return;
    inline_max = 8 * PAGE;
    weft_regcache *cache = open_cache(&d, weft_memmon_get(), 1 << 30, 100);
    char *p = fresh(64 * BIG), *other = p + 32 * BIG * PAGE;

    make_pin(cache, p, BIG);
    make_pin(cache, other, BIG); /* so userfaultfd and memhooks report its changes, once it is no longer registered, too */
    CU_ASSERT_TRUE_FATAL(cache->has_helper);
    munmap(other, 32 * BIG * PAGE);
    CU_ASSERT_TRUE(falls_to(&d, 1));
    uint32_t before = atomic_load(cache->wakeup);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT_PTR_EQUAL(mmap(other, BIG * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), other);
        munmap(other, BIG * PAGE);
    }
    CU_ASSERT_EQUAL(atomic_load(cache->wakeup), before);
    make_pin(cache, p, 1);
    munmap(p, 32 * BIG * PAGE);
    CU_ASSERT_TRUE(falls_to(&d, 0));
    CU_ASSERT_NOT_EQUAL(atomic_load(cache->wakeup), before);
    close_cache(cache, &d);
    inline_max = 0;
}

typedef struct cutter {
    char *at[BUFFERS];
    _Atomic bool is_over;
} cutter;

/* Unmaps and maps the upper halves of buffers whose lower halves are in use. */
static void *cut(void *arg)
{
    cutter *c = arg;
    uint32_t seed = 5;

    while (!atomic_load(&c->is_over)) {
        char *upper = c->at[rand_r(&seed) % BUFFERS] + BIG / 2 * PAGE;
        if (mmap(upper, BIG / 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != upper)
            abort();
        if (rand_r(&seed) % 4 == 0)
            usleep(rand_r(&seed) % 300);
    }
    return NULL;
}

/* What a look-up returned is never unregistered before its release, whatever the helper does meanwhile. */
static void test_unpins_in_race(void)
{
    static cutter c;
    device d;
    pthread_t thread;
    uint32_t seed = 9;
    uint64_t dead = 0, hits;
    const int steps = WEFT_IS_SANITIZED ? 10000 : 100000;

    if (!has_monitor())
        return;
    inline_max = 8 * PAGE;
    weft_regcache *cache = open_cache(&d, weft_memmon_get(), 1 << 30, 100);
    for (int i = 0; i < BUFFERS; i++)
        c.at[i] = fresh(BIG);
    pthread_create(&thread, NULL, cut, &c);
    for (int step = 0; step < steps || (weft_regcache_stats(cache).unpinned < 20 && step < 20 * steps); step++) {
        if (step % 256 == 0)
            usleep(50); /* where there is one CPU */
        char *p = c.at[rand_r(&seed) % BUFFERS];
        bool is_whole = rand_r(&seed) % 2;
        weft_reg *pin = is_whole ? NULL : weft_regcache_lookup(cache, p, PAGE, 0);
        if (!pin && acquire_made(cache, p, is_whole ? BIG * PAGE : PAGE, 0, &pin))
            continue;
        for (unsigned n = (unsigned)rand_r(&seed) % 64; n; n--)
            dead += *(volatile int *)&((record *)(void *)pin->record)->is_live != 1;
        weft_regcache_release(cache, pin);
    }
    atomic_store(&c.is_over, true);
    pthread_join(thread, NULL);
    hits = weft_regcache_stats(cache).hits;
    printf("(%llu hits, %llu ended by the helper) ", (unsigned long long)hits, (unsigned long long)weft_regcache_stats(cache).unpinned);
    CU_ASSERT_EQUAL(dead, 0);
    CU_ASSERT(hits > 0 && weft_regcache_stats(cache).unpinned >= 20);
    close_cache(cache, &d);
    for (int i = 0; i < BUFFERS; i++)
        munmap(c.at[i], BIG * PAGE);
    inline_max = 0;
}

/* On some kernels pipes do not reference the buffer's pages. */
static bool has_pipe_pins(void)
{
    uint64_t word = 5, seen = 0;
    struct iovec from = {&word, sizeof word};
    int in[2], out[2];
    bool has = !pipe(in) && !pipe(out) && vmsplice(in[1], &from, 1, 0) == sizeof word &&
               tee(in[0], out[1], sizeof word, 0) == sizeof word && read(out[0], &seen, sizeof seen) == sizeof seen && seen == word;

    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
    return has;
}

int main(void)
{
    if (!has_pipe_pins()) {
        printf("skipped: this kernel has no vmsplice and tee, by which this test pins\n");
        return 77;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("regcache on real memory", NULL, NULL);
    CU_add_test(suite, "without events", test_real_without_events);
    CU_add_test(suite, "one thread", test_real_one_thread);
    CU_add_test(suite, "look-up syncs", test_lookup_syncs);
    CU_add_test(suite, "threads", test_real_threads);
    CU_add_test(suite, "unpins what is unmapped", test_unpins);
    CU_add_test(suite, "sleeps while nothing is", test_sleeps_on);
    CU_add_test(suite, "unpins beside look-ups", test_unpins_in_race);
    return run_tests();
}
