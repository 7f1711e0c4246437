/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_limits: how much a cache may hold when nobody says. Called once, when it is opened.
 */
#include <linux/capability.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/knob.h"
#include "mem/regcache_internal.h"

/* Numerators over 16. Not tuned to any machine: each leaves to others what they cannot do without. */
enum {
    OF_MEMLOCK = 8,      /* bounce buffers, rings, windows, and a second port's cache are under the same limit */
    OF_MEMORY = 4,       /* several ranks share a node; what is pinned cannot be swapped, migrated or made into huge pages */
    OF_PORT_BYTES = 12,  /* others may have opened the device too */
    OF_PORT_REGIONS = 8,
    REGIONS = 8192       /* where a device allows more: some MiB of our own records, and a tree of 13 levels */
};

static uint64_t share(uint64_t of, unsigned sixteenths) { return of / 16 * sixteenths + of % 16 * sixteenths / 16; }
static uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* In a user namespace the kernel may still count against the limit: then map fails, and the cache evicts and goes on. */
static bool may_lock_all(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    return !syscall(SYS_capget, &head, data) && (data[0].effective >> CAP_IPC_LOCK & 1);
}

static uint64_t default_bytes(const weft_regcache_config *config)
{
    struct rlimit limit;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t max = share((uint64_t)1 << 40, OF_MEMORY);

    if (pages > 0 && page > 0)
        max = share((uint64_t)pages * (uint64_t)page, OF_MEMORY);
    if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY && !may_lock_all())
        max = lower(max, share(limit.rlim_cur, OF_MEMLOCK));
    if (config->port_bytes)
        max = lower(max, share(config->port_bytes, OF_PORT_BYTES));
    return max;
}

void weft_regcache_limit(weft_regcache *cache)
{
    const weft_regcache_config *config = &cache->config;
    uint64_t regions = REGIONS;

    if (config->port_regions)
        regions = lower(regions, share(config->port_regions, OF_PORT_REGIONS));
    regions = regions ? regions : 1;
    if (weft_knob.regcache_max_count)
        regions = (uint64_t)weft_knob.regcache_max_count;
    cache->max_regions = config->max_regions ? config->max_regions : (uint32_t)regions;
    cache->max_bytes = config->max_bytes ? config->max_bytes : weft_knob.regcache_max_size ? weft_knob.regcache_max_size : default_bytes(config);
    if (config->port_bytes)
        cache->max_bytes = lower(cache->max_bytes, config->port_bytes);
    if (config->port_regions)
        cache->max_regions = (uint32_t)lower(cache->max_regions, config->port_regions);
}

uint64_t weft_regcache_max_bytes(const weft_regcache *cache)
{
    return cache->max_bytes;
}
