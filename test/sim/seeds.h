/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds: selects the seeds of runs of the whole library: another range every day, as many as fit into the given time, so that the tests
 * meet new interleavings. A failure prints its seed, which replays it.
 *    WEFT_TEST_SIM_SECONDS   time for all tests of a program (45); hours when run by hand
 *    WEFT_TEST_SIM_SEEDS     number of seeds for each test instead, without a time limit
 *    WEFT_TEST_SIM_FIRST     the first seed; default: by the day
 */
#ifndef WEFT_TEST_SIM_SEEDS_H
#define WEFT_TEST_SIM_SEEDS_H

#include <stdint.h>

typedef struct seeds {
    uint64_t first, next;
    uint64_t until_ns;
} seeds;

/* Called once, with the number of tests that share the time. */
void seeds_share(uint32_t tests);
/* Starts the range of one test. */
void seeds_begin(seeds *seeds);
/* Returns the next seed, never 0; 0 if the time is over. Returns at least one. */
uint64_t seeds_next(seeds *seeds);

/* Networks of test/transports/sim over which everything must succeed; ends with NULL. "shuffled" is among the faults: p2p uses ordered
 * ifaces only. */
extern const char *const seeds_sound_profiles[];
#define SEEDS_SOUND_PROFILES 21

#define SEEDS_HELP                                                                                                     \
    "Seeds: WEFT_TEST_SIM_SECONDS=N for the whole program (45); WEFT_TEST_SIM_SEEDS=N for each test instead;\n"           \
    "WEFT_TEST_SIM_FIRST=N begins there (else the day chooses). For a long run by hand, with only the tests whose name\n" \
    "contains TEXT:  WEFT_TEST_SIM_SECONDS=7200 %s [TEXT]\n"

#endif
