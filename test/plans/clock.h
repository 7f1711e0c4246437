/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock: how long an algorithm takes on a machine that does not exist: its steps are recorded for every rank, and no data moves.
 * As cost.h: a send keeps the CPU for the overhead; bytes to another node wait for the ports of both nodes; the receiver's CPU is kept for
 * the overhead, within a node also while it copies the bytes. At a fence a rank takes its messages in the order of their arrival, others
 * one by one as it awaits them. Reductions and copies take their time. Ranks are on nodes in blocks; the root is rank 0.
 */
#ifndef WEFT_TEST_PLANS_CLOCK_H
#define WEFT_TEST_PLANS_CLOCK_H

#include "collectives/select.h"

/* Time in ns from the start, common to all, to the end of the last rank. query: kind, ranks, nodes, bytes, params, latency_bytes, has.
 * An algorithm with too many steps is recorded for fewer ranks, and continued: with equal blocks in a straight line, or in rounds.
 * Negative: not computed (too much memory, or no such law). */
double clock_time(const weft_coll_query *query, const weft_coll_rule *rule);
/* From the steps of all ranks; or of one, where all take the same ones at the same time, each on its own node. */
double clock_time_all(const weft_coll_query *query, const weft_coll_rule *rule, bool is_one);
extern uint64_t clock_steps; /* played so far */

#endif
