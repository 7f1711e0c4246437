/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_device: see the header.
 */
#include "regcache_device.h"

#include <CUnit/Basic.h>
#include <sched.h>
#include <string.h>

#include "base/status.h"

int device_map(void *owner, void *addr, uint64_t bytes, uint32_t rights, void *at)
{
    device *d = owner;
    record *r = at;
    int rc = d->refuse;

    CU_ASSERT(((uintptr_t)at & 15) == 0 && ((uintptr_t)addr & (PAGE - 1)) == 0 && bytes % PAGE == 0);
    atomic_fetch_add(&d->inside, 1);
    while (atomic_load(&d->hold_up))
        sched_yield();
    pthread_mutex_lock(&d->lock);
    if (!rc && d->limit_bytes && d->bytes + bytes > d->limit_bytes)
        rc = WEFT_E_NOMEM;
    if (!rc && d->limit_regions && d->regions + 1 > d->limit_regions)
        rc = WEFT_E_NOSPACE;
    if (!rc) {
        *r = (record){(uint64_t)(uintptr_t)addr, bytes, rights, 1};
        d->bytes += bytes;
        d->max_bytes = d->bytes > d->max_bytes ? d->bytes : d->max_bytes;
        d->regions++;
        d->maps++;
    }
    pthread_mutex_unlock(&d->lock);
    atomic_fetch_sub(&d->inside, 1);
    return rc;
}

void device_unmap(void *owner, void *at)
{
    device *d = owner;
    record *r = at;

    pthread_mutex_lock(&d->lock);
    CU_ASSERT_EQUAL(r->is_live, 1);
    r->is_live = 0;
    d->bytes -= r->bytes;
    d->regions--;
    d->unmaps++;
    pthread_mutex_unlock(&d->lock);
}

weft_inval_log silent_log;
static weft_range blind_at[64];
weft_memmon blind = {.tracked = {.capacity = 64, .at = blind_at}, .log = &silent_log, .trusts_hooks = true,
                     .lock = PTHREAD_MUTEX_INITIALIZER, .maps = -1, .uffd = {.fd = -1}};

void see_all(void)
{
    blind.cursor = atomic_load(&silent_log.next);
    blind.tracked.count = 0;
    weft_ranges_add(&blind.tracked, 0, UINT64_MAX);
}

static void device_ready(void *owner) { atomic_fetch_add(&((device *)owner)->readies, 1); }

uint64_t inline_max;
weft_regcache *open_cache(device *d, weft_memmon *memmon, uint64_t max_bytes, uint32_t max_regions)
{
    weft_regcache_config config = {.map = device_map, .unmap = device_unmap, .ready = device_ready, .owner = d, .inline_max = inline_max,
                                   .record_bytes = sizeof(record),
                                   .max_bytes = max_bytes, .max_regions = max_regions, .memmon = memmon};
    weft_regcache *cache = NULL;

    memset(d, 0, sizeof(*d));
    pthread_mutex_init(&d->lock, NULL);
    see_all();
    CU_ASSERT_EQUAL_FATAL(weft_regcache_open(&config, &cache), WEFT_OK);
    return cache;
}

void close_cache(weft_regcache *cache, device *d)
{
    weft_regcache_close(cache);
    CU_ASSERT_EQUAL(d->regions, 0);
    CU_ASSERT_EQUAL(d->bytes, 0);
    CU_ASSERT_EQUAL(d->maps, d->unmaps);
}

void *at(uint64_t page) { return (void *)(uintptr_t)((1024 + page) * PAGE); }

int acquire_made(weft_regcache *cache, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **pin)
{
    int rc = weft_regcache_acquire(cache, addr, bytes, rights, pin);
    while (*pin && (rc = weft_regcache_settle(cache, *pin)) == WEFT_INPROGRESS)
        sched_yield();
    if (*pin && rc) {
        weft_regcache_release(cache, *pin);
        *pin = NULL;
    }
    return rc;
}

weft_reg *hold(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights)
{
    weft_reg *pin = NULL;
    int rc = acquire_made(cache, at(page), pages * PAGE, rights, &pin);
    CU_ASSERT((rc == 0) == (pin != NULL));
    if (pin) {
        record *r = (record *)(void *)pin->record;
        CU_ASSERT(r->is_live && r->start == pin->start && r->start + r->bytes == pin->end && (r->rights & rights) == rights);
        CU_ASSERT(pin->start <= (uint64_t)(uintptr_t)at(page) && pin->end >= (uint64_t)(uintptr_t)at(page + pages));
    }
    return pin;
}

void touch(weft_regcache *cache, uint64_t page, uint64_t pages, uint32_t rights)
{
    weft_reg *pin = hold(cache, page, pages, rights);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
    weft_regcache_release(cache, pin);
}

void tell(uint64_t page, uint64_t pages)
{
    weft_inval_log_append(&silent_log, (uint64_t)(uintptr_t)at(page), (uint64_t)(uintptr_t)at(page + pages));
    see_all();
}

int run_tests(void)
{
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
