/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model: a simulated network in one process for test_plans, in place of p2p, req and wait. Ranks are fibres. Messages between two ranks
 * keep their order; a seed decides which rank runs, which message arrives, and whether a send completes at once or at its arrival.
 * Buffers of late sends are read, and those of receives written, at arrival, so a missing fence shows as wrong data. A receive must have
 * exactly the length of its message.
 */
#ifndef WEFT_TEST_PLANS_MODEL_H
#define WEFT_TEST_PLANS_MODEL_H

#include "collectives/coll.h"
#include "collectives/sched.h"

typedef void model_rank(weft_team *team, void *argument);

/* Runs `body` on `ranks` fibres. 0, or 1 with a text on stderr: deadlock, different lengths, messages left over. */
int model_run(uint32_t ranks, uint64_t seed, model_rank *body, void *argument);
/* Called by a fibre: runs other fibres and the network. */
void model_yield(void);
/* Records a failure of this run, which continues. */
void model_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t model_random(uint64_t *state);

/* Sums over all runs, to show that delays and unexpected messages occurred. */
typedef struct model_counts {
    uint64_t messages, late_sends, unexpected, turns;
} model_counts;
extern model_counts model_total;

#endif
