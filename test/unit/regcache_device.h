/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_device: a device that only counts, and a watch that covers everything and never has news by itself, for the tests of
 * the registration cache. `hold` and `touch` check by CUnit that what they got is what they asked for.
 */
#ifndef WEFT_TEST_REGCACHE_DEVICE_H
#define WEFT_TEST_REGCACHE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "mem/memmon_internal.h"
#include "mem/regcache.h"

#define PAGE ((uint64_t)4096)

typedef struct device {
    pthread_mutex_t lock;
    _Atomic uint64_t bytes, regions, max_bytes, maps, unmaps; /* tests look at them without the lock */
    uint64_t limit_bytes, limit_regions; /* 0: none */
    int refuse;                          /* every map answers this */
    _Atomic int hold_up;                 /* map waits while it is 1 */
    _Atomic int inside;
} device;

typedef struct record {
    uint64_t start, bytes;
    uint32_t rights;
    int is_live;
} record;

/* The device's, for weft_regcache_config; its record is a `record`. */
int device_map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *at);
void device_unmap(void *owner, void *at);

extern weft_inval_log no_news; /* of the blind watch */
extern weft_memmon blind;
/* The blind watch forgets that it has heard of anything: the cache alone is to draw conclusions. */
void see_all(void);
/* Pages of addresses that nobody uses changed. */
void tell(uint64_t page, uint64_t pages);

weft_regcache *open_cache(device *d, weft_memmon *watch, uint64_t max_bytes, uint32_t max_regions);
/* Nothing may be left in the device. */
void close_cache(weft_regcache *cache, device *d);

void *at(uint64_t page);
weft_reg *hold(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights);
void touch(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights);

/* What every program of these tests ends with: runs what was added; its exit code. */
int run_tests(void);

#endif
