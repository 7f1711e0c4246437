/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_atomics: tests of accumulates by a device, for test/sim/verbs.
 */
#ifndef WEFT_TEST_SIM_VERBS_ATOMICS_H
#define WEFT_TEST_SIM_VERBS_ATOMICS_H

void verbs_targets_are_counted_at(void);
void verbs_device_words_are_counted_at(void);
void verbs_cpu_atomics_are_detected(void);
void verbs_atomics_without_memory(void);
void verbs_unknown_atomics_are_reported(void);

#endif
