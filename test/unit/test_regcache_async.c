/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_regcache_async: the helper that registers asynchronously: its registrations are found, waited for, taken over, dropped midway,
 * refused, closed, and under load.
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
static void test_async_under_load(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 40 * PAGE, 30);
    weft_reg *held[8] = {NULL};

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
        CU_ASSERT_FATAL(weft_regcache_stats(cache).pinned_bytes >= d.bytes || atomic_load(&d.inside) || step % 64);
    }
    for (int i = 0; i < 8; i++)
        if (held[i])
            weft_regcache_release(cache, held[i]);
    CU_ASSERT(weft_regcache_stats(cache).async > 100);
    close_cache(cache, &d);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("regcache async", NULL, NULL);
    CU_add_test(suite, "reclaim", test_reclaim);
    CU_add_test(suite, "async", test_async);
    CU_add_test(suite, "async under load", test_async_under_load);
    return run_tests();
}
