/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds: see seeds.h.
 */
#include "test/sim/seeds.h"

#include <stdlib.h>
#include <time.h>

const char *const seeds_sound_profiles[SEEDS_SOUND_PROFILES + 1] = {
    "calm", "slow", "storm", "narrow", "torn", "copyonly", "pinched", "tiny", "wild", "kernel", "grudging", "lopsided", "pinning", "scarce",
    "starved", "rails", "flapping", "pressed", "ticking", "hca", "holding"};

static uint32_t sharers = 1;

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    return value ? value : otherwise;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void seeds_share(uint32_t tests)
{
    sharers = tests ? tests : 1;
}

void seeds_begin(seeds *seeds)
{
    uint64_t today = (uint64_t)time(NULL) / 86400;
    seeds->first = seeds->next = number("WEFT_TEST_SIM_FIRST", today * 100000 + 1);
    seeds->until_ns = now_ns() + number("WEFT_TEST_SIM_SECONDS", 45) * 1000000000u / sharers;
}

uint64_t seeds_next(seeds *seeds)
{
    uint64_t taken = seeds->next - seeds->first, fixed = number("WEFT_TEST_SIM_SEEDS", 0);
    if (fixed ? taken >= fixed : taken >= 1 && now_ns() >= seeds->until_ns)
        return 0;
    return seeds->next++;
}
