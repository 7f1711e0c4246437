/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_regcache_async: the helper that registers asynchronously, and ranges that are too long for the caller: its registrations are found,
 * awaited, shared, taken over, dropped midway, refused, closed, and under load. No call waits for the helper.
 */
#include <CUnit/Basic.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/regcache_internal.h"
#include "regcache_device.h"

static void wait_for(_Atomic int *word, int value)
{
    while (atomic_load(word) != value)
        sched_yield();
}

/* Nothing new, nothing completed: reclaiming takes no lock, though the helper runs. */
static void test_reclaim(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 1 << 30, 100);

    weft_regcache_acquire_async(cache, at(10), PAGE, 0);
    touch(cache, 10, 1, 0);
    CU_ASSERT_TRUE_FATAL(cache->has_helper);
    pthread_mutex_lock(&cache->lock);
    alarm(200); /* it would wait forever */
    weft_regcache_reclaim(cache);
    alarm(0);
    pthread_mutex_unlock(&cache->lock);
    CU_ASSERT_EQUAL(d.regions, 1);
    close_cache(cache, &d);
}

static void test_async(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 64 * PAGE, 100);
    weft_reg *pin = NULL;

    weft_regcache_acquire_async(cache, at(0), 4 * PAGE, 1);
    while (!(pin = weft_regcache_lookup(cache, at(0), 4 * PAGE, 1)))
        sched_yield();
    weft_regcache_release(cache, pin);
    weft_regcache_acquire_async(cache, at(1), PAGE, 1); /* already registered */
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).async, 1);
    /* The helper works on one; the second is queued; the worker needs the second now and registers it itself, ... */
    atomic_store(&d.hold_up, 1);
    weft_regcache_acquire_async(cache, at(10), PAGE, 0);
    wait_for(&d.inside, 1);
    weft_regcache_acquire_async(cache, at(20), PAGE, 0);
    weft_regcache_acquire_async(cache, at(20), PAGE, 0);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).async, 3);
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(10), PAGE, 0));
    tell(10, 1); /* ... and the first is unmapped meanwhile: the helper deregisters it */
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(10), PAGE, 0));
    CU_ASSERT_EQUAL(d.maps, 1);
    atomic_store(&d.hold_up, 0);
    pin = hold(cache, 20, 1, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
    weft_regcache_release(cache, pin);
    while (d.maps != 3 || d.unmaps != 1)
        sched_yield();
    weft_regcache_reclaim(cache);
    while (weft_regcache_stats(cache).pinned_bytes != 5 * PAGE)
        weft_regcache_reclaim(cache);
    /* A failure of the helper is found by acquire, which evicts and succeeds. */
    d.limit_bytes = 5 * PAGE; /* the helper is idle */
    weft_regcache_acquire_async(cache, at(30), 2 * PAGE, 0);
    pin = hold(cache, 30, 2, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
    CU_ASSERT(d.bytes <= 5 * PAGE);
    weft_regcache_release(cache, pin);
    /* Closed while the helper works. */
    d.limit_bytes = 0;
    atomic_store(&d.hold_up, 1);
    weft_regcache_acquire_async(cache, at(40), PAGE, 0);
    wait_for(&d.inside, 1);
    weft_regcache_acquire_async(cache, at(50), PAGE, 0);
    atomic_store(&d.hold_up, 0);
    close_cache(cache, &d);
}

/* Async acquire, look-up, acquire, release, invalidate, evict, against a helper that is always busy. */
static void load_helper(uint64_t longest)
{
    device d;
    inline_max = longest;
    weft_regcache *cache = open_cache(&d, &blind, 40 * PAGE, 30);
    weft_reg *held[8] = {NULL};

    inline_max = 0;
    d.limit_bytes = 36 * PAGE;
    srandom(11);
    for (int step = 0; step < 100000; step++) {
        uint64_t page = (uint64_t)random() % 60, pages = 1 + (uint64_t)random() % 4;
        weft_reg **slot = &held[random() % 8];
        switch (random() % 8) {
        case 0:
        case 1:
            weft_regcache_acquire_async(cache, at(page), pages * PAGE, (uint32_t)random() % 2);
            break;
        case 2:
            tell(page, pages);
            break;
        case 3:
            weft_regcache_reclaim(cache);
            break;
        default:
            if (*slot)
                weft_regcache_release(cache, *slot);
            *slot = random() % 2 ? hold(cache, page, pages, (uint32_t)random() % 2) : NULL;
        }
        CU_ASSERT_FATAL(longest || weft_regcache_stats(cache).pinned_bytes >= d.bytes || atomic_load(&d.inside) || step % 64);
    }
    for (int i = 0; i < 8; i++)
        if (held[i])
            weft_regcache_release(cache, held[i]);
    CU_ASSERT(weft_regcache_stats(cache).async > 100);
    close_cache(cache, &d);
}

static void test_async_under_load(void)
{
    load_helper(0);
    load_helper(2 * PAGE);
}

/* -- ranges longer than inline_max -- */

static weft_regcache *open_long(device *d, uint64_t max_bytes)
{
    inline_max = 4 * PAGE;
    weft_regcache *cache = open_cache(d, &blind, max_bytes, 100);
    inline_max = 0;
    alarm(200);
    return cache;
}

/* Begins to register, and returns while the device is busy with it. */
static weft_reg *begin(weft_regcache *cache, device *d, uint64_t page, uint64_t pages)
{
    weft_reg *pin = NULL;
    atomic_store(&d->hold_up, 1);
    CU_ASSERT_EQUAL_FATAL(weft_regcache_acquire(cache, at(page), pages * PAGE, 1, &pin), WEFT_INPROGRESS);
    wait_for(&d->inside, 1);
    return pin;
}

static int settle(weft_regcache *cache, device *d, weft_reg *pin)
{
    int rc;
    atomic_store(&d->hold_up, 0);
    while ((rc = weft_regcache_settle(cache, pin)) == WEFT_INPROGRESS)
        sched_yield();
    return rc;
}

/* Two acquires share one registration, another range is registered meanwhile, and a range within the first one is absorbed. */
static void test_shared(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 1 << 30);
    weft_reg *first, *second = NULL, *third = NULL;
    touch(cache, 2, 1, 0);
    first = begin(cache, &d, 0, 8);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(1), 5 * PAGE, 1, &second), WEFT_INPROGRESS);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(4), PAGE, 1, &third), WEFT_INPROGRESS); /* short, but the helper has begun */
    CU_ASSERT(first == second && first == third);
    CU_ASSERT_FALSE(weft_regcache_is_settled(first));
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(0), PAGE, 1));
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).pinned_bytes, 9 * PAGE);
    weft_regcache_release(cache, third);
    CU_ASSERT_EQUAL(settle(cache, &d, first), 0);
    CU_ASSERT_EQUAL(weft_regcache_settle(cache, second), 0);
    CU_ASSERT(d.maps == 2 && d.unmaps == 1 && d.readies == 1);
    weft_regcache_hold(first);
    weft_regcache_release(cache, first);
    weft_regcache_release(cache, second);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(0), 8 * PAGE, 1, &third), 0);
    CU_ASSERT_PTR_EQUAL(third, first);
    weft_regcache_release(cache, third);
    weft_regcache_release(cache, first);
    close_cache(cache, &d);
}

/* The memory changes during registration: earlier acquires keep the registration, later ones get a new one. */
static void test_changes(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 1 << 30);
    weft_reg *before = begin(cache, &d, 0, 8), *after = NULL;
    tell(7, 1);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(0), 8 * PAGE, 1, &after), WEFT_INPROGRESS);
    CU_ASSERT(before != after);
    CU_ASSERT(settle(cache, &d, before) == 0 && settle(cache, &d, after) == 0);
    weft_regcache_release(cache, before);
    while (d.unmaps != 1)
        sched_yield();
    CU_ASSERT_EQUAL(d.maps, 2);
    weft_regcache_release(cache, after);
    CU_ASSERT_PTR_EQUAL(weft_regcache_lookup(cache, at(0), 8 * PAGE, 1), after);
    weft_regcache_release(cache, after);
    close_cache(cache, &d);
}

/* All acquires are released during registration: unchanged memory stays registered, the helper unregisters changed memory. */
static void test_given_up(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 16 * PAGE);
    weft_reg *pin = begin(cache, &d, 0, 8), *own = NULL;
    weft_regcache_release(cache, pin);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(100), 9 * PAGE, 1, &own), WEFT_E_NOSPACE); /* it cannot be evicted yet */
    atomic_store(&d.hold_up, 0);
    while (!(pin = weft_regcache_lookup(cache, at(0), 8 * PAGE, 1)))
        sched_yield();
    weft_regcache_release(cache, pin);
    pin = begin(cache, &d, 20, 8);
    tell(20, 8);
    weft_regcache_reclaim(cache);
    weft_regcache_release(cache, pin);
    atomic_store(&d.hold_up, 0);
    while (weft_regcache_stats(cache).pinned_bytes != 8 * PAGE)
        weft_regcache_reclaim(cache);
    atomic_store(&d.hold_up, 1);
    CU_ASSERT_EQUAL(weft_regcache_acquire_own(cache, at(40), 5 * PAGE, 1, &own), WEFT_INPROGRESS);
    /* more than half, while the first counts */
    CU_ASSERT_EQUAL(weft_regcache_acquire_own(cache, at(60), 5 * PAGE, 1, &pin), WEFT_E_NOSPACE);
    weft_regcache_release(cache, own);
    atomic_store(&d.hold_up, 0);
    while (weft_regcache_stats(cache).pinned_bytes != 8 * PAGE)
        weft_regcache_reclaim(cache);
    CU_ASSERT_EQUAL(weft_regcache_acquire_own(cache, at(40), 5 * PAGE, 1, &own), WEFT_INPROGRESS);
    CU_ASSERT(settle(cache, &d, own) == 0 && weft_regcache_is_current(cache, own));
    weft_regcache_release(cache, own);
    close_cache(cache, &d);
}

/* At a limit the cache evicts and retries. A final refusal goes to all waiting acquires; the next one retries. */
static void test_refused(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 1 << 30);
    weft_reg *pin, *second = NULL;
    for (uint64_t page = 0; page < 12; page += 4)
        touch(cache, 100 + page, 4, 0);
    d.limit_bytes = 16 * PAGE;
    pin = begin(cache, &d, 0, 12);
    CU_ASSERT_EQUAL(settle(cache, &d, pin), 0);
    CU_ASSERT_EQUAL(d.bytes, 12 * PAGE);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(20), 5 * PAGE, 1, &second), WEFT_INPROGRESS);
    CU_ASSERT_EQUAL(settle(cache, &d, second), WEFT_E_NOSPACE); /* all is in use */
    weft_regcache_release(cache, second);
    weft_regcache_release(cache, pin);
    d.limit_bytes = 0;
    d.refuse = WEFT_E_UNSUPPORTED;
    pin = begin(cache, &d, 40, 8);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(40), 8 * PAGE, 1, &second), WEFT_INPROGRESS);
    CU_ASSERT_EQUAL(settle(cache, &d, pin), WEFT_E_UNSUPPORTED);
    CU_ASSERT_EQUAL(settle(cache, &d, second), WEFT_E_UNSUPPORTED);
    weft_regcache_release(cache, pin);
    weft_regcache_release(cache, second);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).pinned_bytes, 12 * PAGE);
    d.refuse = 0;
    pin = begin(cache, &d, 40, 8);
    CU_ASSERT_EQUAL(settle(cache, &d, pin), 0);
    weft_regcache_release(cache, pin);
    close_cache(cache, &d);
}

/* What is awaited goes before what was given ahead of time; memory that no monitor tracks is registered for one use. */
static void test_order(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 1 << 30);
    weft_reg *pin, *early = NULL, *late = NULL;
    pin = begin(cache, &d, 0, 8);
    weft_regcache_acquire_async(cache, at(20), 8 * PAGE, 1);
    weft_regcache_acquire_async(cache, at(40), 8 * PAGE, 1);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(41), 6 * PAGE, 1, &early), WEFT_INPROGRESS);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(60), 8 * PAGE, 1, &late), WEFT_INPROGRESS);
    weft_list_link *job = cache->queue.next;
    CU_ASSERT_PTR_EQUAL(&weft_container(job, weft_regentry, job)->pin, late);
    CU_ASSERT_PTR_EQUAL(&weft_container(job->next, weft_regentry, job)->pin, early);
    CU_ASSERT(settle(cache, &d, pin) == 0 && settle(cache, &d, early) == 0 && settle(cache, &d, late) == 0);
    weft_regcache_release(cache, pin);
    weft_regcache_release(cache, early);
    weft_regcache_release(cache, late);
    close_cache(cache, &d);
    inline_max = PAGE;
    weft_memmon none = {.tracked = {.capacity = 0}, .log = &silent_log, .maps = -1, .uffd = {.fd = -1}, .lock = PTHREAD_MUTEX_INITIALIZER};
    cache = open_cache(&d, &none, 1 << 30, 100);
    inline_max = 0;
    pin = begin(cache, &d, 0, 8);
    CU_ASSERT_EQUAL(weft_regcache_acquire_own(cache, at(20), 2 * PAGE, 1, &late), WEFT_E_UNSUPPORTED);
    CU_ASSERT_EQUAL(settle(cache, &d, pin), 0);
    weft_regcache_release(cache, pin);
    while (d.unmaps != 1)
        sched_yield();
    CU_ASSERT_EQUAL(d.maps, 1);
    pin = begin(cache, &d, 0, 8);
    weft_regcache_release(cache, pin); /* and the cache is closed while the helper works */
    atomic_store(&d.hold_up, 0);
    close_cache(cache, &d);
    alarm(0);
}

/* No release waits for the device to unregister a long range. At a limit what is queued for that goes first, also for a short range. */
static void test_unmapped(void)
{
    device d;
    weft_regcache *cache = open_long(&d, 1 << 30);
    weft_reg *pin = NULL;
    touch(cache, 0, 8, 0);
    touch(cache, 20, 8, 0);
    pin = begin(cache, &d, 40, 8); /* the helper is busy */
    tell(0, 30);
    weft_regcache_reclaim(cache);
    CU_ASSERT(d.unmaps == 0 && weft_regcache_stats(cache).pinned_bytes == 8 * PAGE);
    atomic_store(&d.hold_up, 0);
    while (d.unmaps != 2 || d.maps != 3)
        sched_yield();
    weft_regcache_release(cache, pin);
    d.limit_bytes = 8 * PAGE;
    touch(cache, 60, 1, 0); /* evicts the long one, of which the helper may have begun to rid itself */
    CU_ASSERT(d.unmaps == 3 && d.bytes == PAGE);
    touch(cache, 80, 8, 0);
    CU_ASSERT_EQUAL(d.bytes, 8 * PAGE);
    close_cache(cache, &d);
    /* many short ones at once */
    cache = open_long(&d, 1 << 30);
    for (uint64_t i = 0; i < 50; i++)
        touch(cache, 2 * i, 1, 0);
    pin = begin(cache, &d, 300, 8);
    tell(0, 200);
    weft_regcache_reclaim(cache);
    CU_ASSERT_EQUAL(d.unmaps, 4); /* inline_max */
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).pinned_bytes, 8 * PAGE);
    CU_ASSERT_EQUAL(settle(cache, &d, pin), 0);
    weft_regcache_release(cache, pin);
    close_cache(cache, &d);
    alarm(0);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("regcache async", NULL, NULL);
    CU_add_test(suite, "reclaim", test_reclaim);
    CU_add_test(suite, "async", test_async);
    CU_add_test(suite, "async under load", test_async_under_load);
    CU_add_test(suite, "long: shared", test_shared);
    CU_add_test(suite, "long: memory changes", test_changes);
    CU_add_test(suite, "long: given up", test_given_up);
    CU_add_test(suite, "long: refused", test_refused);
    CU_add_test(suite, "long: order, no monitor", test_order);
    CU_add_test(suite, "long: unmapped by the helper", test_unmapped);
    return run_tests();
}
