/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_device: a device that only counts, and a memmon that tracks everything and reports nothing by itself, for tests of the
 * registration cache. `hold` and `touch` verify by CUnit that they got what they asked for.
 */
#ifndef WEFT_TEST_UNIT_REGCACHE_DEVICE_H
#define WEFT_TEST_UNIT_REGCACHE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "mem/memmon_internal.h"
#include "mem/regcache.h"

#define PAGE ((uint64_t)4096)

typedef struct device {
    pthread_mutex_t lock;
    _Atomic uint64_t bytes, regions, max_bytes, maps, unmaps; /* read by tests without the lock */
    uint64_t limit_bytes, limit_regions; /* 0: no limit */
    int refuse;                          /* result of every mr_reg; 0: success */
    _Atomic int hold_up;                 /* mr_reg waits while it is 1 */
    _Atomic int inside, readies;         /* in mr_reg now; calls of config.ready */
} device;

typedef struct record {
    uint64_t start, bytes;
    uint32_t rights;
    int is_live;
} record;

/* Callbacks of the device, for weft_regcache_config; its registrations are `record`s. */
int device_map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *at);
void device_unmap(void *owner, void *at);

extern weft_inval_log silent_log; /* of the silent memmon */
extern weft_memmon blind;
/* Discards the silent memmon's reports: only the cache itself is tested. */
void see_all(void);
/* Pages of unused addresses have changed. */
void tell(uint64_t page, uint64_t pages);

/* inline_max of caches opened later; 0: no helper for acquire. */
extern uint64_t inline_max;
weft_regcache *open_cache(device *d, weft_memmon *memmon, uint64_t max_bytes, uint32_t max_regions);
/* Verifies that the device has no registration left. */
void close_cache(weft_regcache *cache, device *d);

void *at(uint64_t page);
/* weft_regcache_acquire, and a wait for the helper while it is INPROGRESS: 0, or an error and *pin NULL. */
int acquire_made(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin);
weft_reg *hold(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights);
void touch(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights);

/* Runs the added tests; returns the program's exit code. */
int run_tests(void);

#endif
