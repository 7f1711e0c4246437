/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock_plan: the recorded steps of all ranks of one call, reduced to what takes time.
 */
#ifndef WEFT_TEST_PLANS_CLOCK_PLAN_H
#define WEFT_TEST_PLANS_CLOCK_PLAN_H

#include "collectives/select.h"

typedef struct clock_pair {
    uint32_t from, to;
    uint32_t sends, receives; /* steps */
    uint32_t first;           /* number of its first message */
} clock_pair;

typedef struct clock_step {
    uint8_t op;      /* enum weft_step_op */
    uint32_t pair;   /* of a send or receive: index in pairs */
    union {
        uint32_t nth;    /* of a send or receive: so many of its pair came before on this side */
        uint32_t target; /* of an await: the step of the message */
    };
    uint64_t bytes;
} clock_step;

typedef struct clock_plan {
    clock_step *steps;    /* of rank 0, then of rank 1, ... */
    uint32_t count, capacity;
    uint32_t messages;    /* a pair has as many as its busier side has steps */
    uint32_t *starts;     /* [ranks + 1] first step of each rank */
    clock_pair *pairs;
    uint32_t pair_count;
    uint32_t *table, table_size; /* pair index + 1 by hash of from and to */
} clock_plan;

/* Records the first `ranks` ranks. 0, or 1: memory for the temporary buffers of one rank cannot be had. */
int clock_plan_open(const weft_coll_query *query, weft_sched_algorithm *algorithm, uint32_t ranks, clock_plan *plan);
void clock_plan_close(clock_plan *plan);
/* Steps of the second rank. */
uint32_t clock_plan_steps(const weft_coll_query *query, weft_sched_algorithm *algorithm);

#endif
