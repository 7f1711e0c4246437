/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_limits: bounds of a cache, from its config, the knobs, or defaults. Called once by weft_regcache_open().
 */
#include <linux/capability.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/memory_size.h"
#include "mem/regcache_internal.h"

/* Numerators over 16. Not tuned to any machine; each leaves a share for other users of the limit. */
enum {
    OF_MEMLOCK = 8,      /* of a process; bounce buffers, rings and windows share the limit */
    OF_MEMORY = 4,       /* of a node; pinned pages cannot be swapped, migrated or made huge pages */
    OF_PORT_BYTES = 12,  /* other processes may have opened the device */
    OF_PORT_REGIONS = 8,
    REGIONS = 8192       /* if the device allows more: some MiB of records, a tree of about 13 levels */
};

static uint64_t share(uint64_t of, unsigned sixteenths) { return of / 16 * sixteenths + of % 16 * sixteenths / 16; }
static uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* True with CAP_IPC_LOCK. In a user namespace the kernel may still enforce the limit: map then fails, and the cache evicts. */
static bool may_lock_all(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    return !syscall(SYS_capget, &head, data) && (data[0].effective >> CAP_IPC_LOCK & 1);
}

static uint64_t default_bytes(const weft_regcache_config *config)
{
    struct rlimit limit;
    uint64_t ranks = config->ranks ? config->ranks : 1, ports = config->ports ? config->ports : 1;
    uint64_t max = share(weft_memory_size((uint64_t)1 << 40), OF_MEMORY) / (ranks * ports);

    if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY && !may_lock_all())
        max = lower(max, share(limit.rlim_cur, OF_MEMLOCK) / ports);
    if (config->device_bytes_max)
        max = lower(max, share(config->device_bytes_max, OF_PORT_BYTES));
    return max;
}

void weft_regcache_limit(weft_regcache *cache)
{
    const weft_regcache_config *config = &cache->config;
    uint64_t regions = REGIONS;

    if (config->device_regions_max)
        regions = lower(regions, share(config->device_regions_max, OF_PORT_REGIONS));
    regions = regions ? regions : 1;
    if (weft_knob.regcache_max_count)
        regions = (uint64_t)weft_knob.regcache_max_count;
    cache->max_regions = config->max_regions ? config->max_regions : (uint32_t)regions;
    cache->max_bytes = config->max_bytes             ? config->max_bytes
                       : weft_knob.regcache_max_size ? weft_knob.regcache_max_size
                                                     : default_bytes(config);
    if (config->device_bytes_max)
        cache->max_bytes = lower(cache->max_bytes, config->device_bytes_max);
    if (config->device_regions_max)
        cache->max_regions = (uint32_t)lower(cache->max_regions, config->device_regions_max);
}

uint64_t weft_regcache_max_bytes(const weft_regcache *cache)
{
    return cache->max_bytes;
}
