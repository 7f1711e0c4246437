/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds: which seeds the whole-library runs take: another range every day, as many as fit the time that is given, so that the
 * same test meets new interleavings for ever. Whatever fails prints its seed, and a seed replays.
 *     WEFT_TEST_SIM_SECONDS   time for all of a program (45); hours, for a run by hand
 *     WEFT_TEST_SIM_SEEDS     so many seeds for each test instead, whatever time they take
 *     WEFT_TEST_SIM_FIRST     the first seed; else the day chooses
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
/* The range of one test. */
void seeds_begin(seeds *seeds);
/* The next seed, never 0; 0 when there was time for no more. At least one. */
uint64_t seeds_next(seeds *seeds);

/* Networks of test/transports/sim on which everything must go well; ends with NULL. "shuffled" is not here but among the faults: p2p takes ports
 * with order only. */
extern const char *const seeds_sound_profiles[];
#define SEEDS_SOUND_PROFILES 21

#define SEEDS_HELP                                                                                                     \
    "Seeds: WEFT_TEST_SIM_SECONDS=N for the whole program (45); WEFT_TEST_SIM_SEEDS=N for each test instead;\n"           \
    "WEFT_TEST_SIM_FIRST=N begins there (else the day chooses). For a long run by hand, with only the tests whose name\n" \
    "contains TEXT:  WEFT_TEST_SIM_SECONDS=7200 %s [TEXT]\n"

#endif
