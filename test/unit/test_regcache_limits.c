/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_regcache_limits: capacity of a registration cache, order of eviction, result when nothing can be evicted; limits of the user, the
 * device, and the defaults.
 */
#include <CUnit/Basic.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "regcache_device.h"

static void test_limits(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 16 * PAGE, 6);
    weft_reg *held[4], *none;

    for (uint64_t i = 0; i < 50; i++) {
        touch(cache, i * 10, 4, 0);
        CU_ASSERT(d.bytes <= 16 * PAGE && d.regions <= 6);
    }
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).evictions, 46);
    for (uint64_t i = 0; i < 50; i++)
        touch(cache, 1000 + i * 10, 1, 0);
    CU_ASSERT_EQUAL(d.regions, 6);
    /* Least recently used first: 40 is used, 41 is evicted. */
    touch(cache, 1440, 1, 0);
    touch(cache, 5000, 1, 0);
    uint64_t maps = d.maps;
    touch(cache, 1440, 1, 0);
    CU_ASSERT_EQUAL(d.maps, maps);
    touch(cache, 1450, 1, 0);
    CU_ASSERT_EQUAL(d.maps, maps + 1);
    /* Referenced registrations stay; then there is no space. */
    for (uint64_t i = 0; i < 4; i++)
        held[i] = hold(cache, 7000 + i * 10, 4, 0);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(9000), PAGE, 0, &none), WEFT_E_NOSPACE);
    CU_ASSERT_PTR_NULL(none);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(9000), 17 * PAGE, 0, &none), WEFT_E_NOSPACE);
    weft_regcache_release(cache, held[2]);
    held[2] = hold(cache, 9000, 1, 0);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).refused, 2);
    for (int i = 0; i < 4; i++)
        weft_regcache_release(cache, held[i]);
    CU_ASSERT_EQUAL(d.max_bytes, 16 * PAGE);
    close_cache(cache, &d);
}

/* Limits known to the device only: evicts, tries again, then fails. */
static void test_device_limits(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 1 << 30, 1000);
    weft_reg *pin, *none;

    d.limit_bytes = 20 * PAGE;
    for (uint64_t i = 0; i < 50; i++)
        touch(cache, i * 10, 3, 0);
    touch(cache, 3000, 20, 0);
    CU_ASSERT_EQUAL(d.regions, 1);
    d.limit_regions = 3;
    for (uint64_t i = 0; i < 50; i++)
        touch(cache, i * 10, 1, 0);
    pin = hold(cache, 5000, 20, 0);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(6000), PAGE, 0, &none), WEFT_E_NOSPACE);
    weft_regcache_release(cache, pin);
    d.refuse = WEFT_E_UNSUPPORTED; /* unsupported memory: nothing is evicted for it */
    uint64_t unmaps = d.unmaps;
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(6000), PAGE, 0, &none), WEFT_E_UNSUPPORTED);
    CU_ASSERT_EQUAL(d.unmaps, unmaps);
    d.refuse = 0;
    touch(cache, 6000, 1, 0);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).pinned_bytes, d.bytes);
    close_cache(cache, &d);
}

static void test_default_limits(void)
{
    device d;
    weft_regcache_config config = {.map = device_map, .unmap = device_unmap, .owner = &d, .record_bytes = sizeof(record), .memmon = &blind,
                                   .device_bytes_max = 16 * PAGE, .device_regions_max = 4};
    weft_regcache *cache;

    memset(&d, 0, sizeof(d));
    pthread_mutex_init(&d.lock, NULL);
    CU_ASSERT_EQUAL_FATAL(weft_regcache_open(&config, &cache), WEFT_OK);
    for (uint64_t i = 0; i < 20; i++)
        touch(cache, i * 10, 4, 0);
    CU_ASSERT(d.max_bytes > 0 && d.max_bytes <= 12 * PAGE);
    for (uint64_t i = 0; i < 20; i++)
        touch(cache, i * 10, 1, 0);
    CU_ASSERT_EQUAL(d.regions, 2);
    weft_regcache_close(cache);
    weft_knob.regcache_max_size = 2 * PAGE; /* allowed to the user */
    weft_knob.regcache_max_count = 1;
    CU_ASSERT_EQUAL_FATAL(weft_regcache_open(&config, &cache), WEFT_OK);
    d.max_bytes = 0;
    for (uint64_t i = 0; i < 20; i++)
        touch(cache, i * 10, 1 + i % 2, 0);
    CU_ASSERT_EQUAL(d.max_bytes, 2 * PAGE);
    CU_ASSERT_EQUAL(d.regions, 1);
    weft_regcache_close(cache);
    weft_knob.regcache_max_size = 0;
    weft_knob.regcache_max_count = 0;
}

static uint64_t bound_of(uint32_t ranks, uint32_t ports)
{
    device d;
    weft_regcache_config config = {.map = device_map, .unmap = device_unmap, .owner = &d, .record_bytes = sizeof(record), .memmon = &blind,
                                   .ranks = ranks, .ports = ports};
    weft_regcache *cache;

    CU_ASSERT_EQUAL_FATAL(weft_regcache_open(&config, &cache), WEFT_OK);
    uint64_t bound = weft_regcache_max_bytes(cache);
    weft_regcache_close(cache);
    return bound;
}

/* All caches of a node together keep at most a quarter of its memory. */
static void test_shared_memory(void)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    CU_ASSERT(bound_of(0, 0) > 0 && bound_of(0, 0) == bound_of(1, 1));
    CU_ASSERT(bound_of(1, 1) <= memory / 4);
    CU_ASSERT(bound_of(8, 2) <= memory / 4 / 16);
    CU_ASSERT(bound_of(8, 2) > 0 && bound_of(1, 2) <= bound_of(1, 1) / 2);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("regcache limits", NULL, NULL);
    CU_add_test(suite, "limits", test_limits);
    CU_add_test(suite, "device's limits", test_device_limits);
    CU_add_test(suite, "default limits", test_default_limits);
    CU_add_test(suite, "memory shared by ranks and ports", test_shared_memory);
    return run_tests();
}
