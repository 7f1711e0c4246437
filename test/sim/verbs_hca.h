/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_hca: parts of the test of the simulated HCA.
 */
#ifndef WEFT_TEST_SIM_VERBS_HCA_H
#define WEFT_TEST_SIM_VERBS_HCA_H

#include "test/sim/verbs_ends.h"

typedef struct hca_test {
    const char *name;
    void (*run)(void);
} hca_test;

extern const hca_test hca_fails[], hca_limits[], hca_windows[], hca_relaxed[]; /* each ends with name NULL */

static inline const simhca_profile *hca_calm(void)
{
    return simhca_profile_find("calm");
}

#endif
