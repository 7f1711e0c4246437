/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model: a network of one process for the plans' tests. Ranks are fibres; messages between two ranks keep their order, all
 * else is decided by a seed: which rank runs, which message arrives, whether a send is over at once or when it is received. It
 * stands in for p2p, req and wait. Sends that are not over at once are read when they arrive, receives are written when they
 * arrive, so that a missing fence shows as wrong data. A receive must have exactly the length of its message.
 */
#ifndef WEFT_TEST_PLANS_MODEL_H
#define WEFT_TEST_PLANS_MODEL_H

#include "collectives/coll.h"
#include "collectives/sched.h"

typedef void model_rank(weft_team *team, void *argument);

/* Runs `body` on `ranks` fibres; 0, or 1 with a text on stderr: deadlock, lengths that differ, messages left over. */
int model_run(uint32_t ranks, uint64_t seed, model_rank *body, void *argument);
/* Of a fibre: lets others run, and the network. */
void model_yield(void);
/* Something is wrong with this run; it goes on. */
void model_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t model_random(uint64_t *state);

/* What happened, over all runs: a model that never delays proves nothing. */
typedef struct model_counts {
    uint64_t messages, late_sends, unexpected, turns;
} model_counts;
extern model_counts model_total;

#endif
