/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_runs: what the files of test/sim/verbs share: knobs of a run, and tests of accumulates by a device (verbs_atomics.c).
 */
#ifndef WEFT_TEST_SIM_VERBS_RUNS_H
#define WEFT_TEST_SIM_VERBS_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "test/transports/simhca/simhca.h"

extern bool verbs_keeps_registrations; /* also when no transfer uses them */

/* Sets the environment. The seed, never a measured time, sets protocols, registration and other knobs. */
void verbs_choose_knobs(uint64_t seed, const simhca_profile *profile);
/* Do connections break at random? */
bool verbs_breaks(const simhca_profile *profile);

void verbs_targets_are_counted_at(void);
void verbs_device_words_are_counted_at(void);
void verbs_cpu_atomics_are_detected(void);
void verbs_atomics_without_memory(void);
void verbs_unknown_atomics_are_reported(void);

#endif
