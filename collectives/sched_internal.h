/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_internal: the messages of a schedule: posted by its steps, numbered, and awaited one by one or all at a fence.
 * In sched_message.c; called by sched.c (immediate schedules) and sched_progress.c (recorded ones); requires worker->lock.
 * Invariant: completion.left is 1 + the messages under way, without an awaited one.
 */
#ifndef WEFT_COLLECTIVES_SCHED_INTERNAL_H
#define WEFT_COLLECTIVES_SCHED_INTERNAL_H

#include "base/macros.h"
#include "collectives/sched.h"

/* Posts a send or receive step. Does not block. Returns 0 or an error; damage goes to completion.rc instead. */
int weft_sched_begin_message(weft_sched *sched, const weft_step *step);
/* Frees the requests since the last fence, all complete, and keeps their error in the schedule. */
void weft_sched_free_requests(weft_sched *sched);

/* Immediate schedules. A receive is posted by the next step, or performed as a blocking one by the await or fence that follows. */
void weft_sched_immediate_recv(weft_sched *sched, const weft_step *step);
/* Blocks until the message has ended, or all of them. Errors are kept in the schedule. */
void weft_sched_immediate_await(weft_sched *sched, uint32_t message);
void weft_sched_immediate_fence(weft_sched *sched);

/* Recorded schedules. True: the message is under way; sched->awaited opens when it has ended; then call end_await. False: it has ended. */
bool weft_sched_begin_await(weft_sched *sched, uint32_t message);
void weft_sched_end_await(weft_sched *sched, uint32_t message);

/* Frees the temporary memory that the worker keeps. */
void weft_sched_free_blocks(weft_worker *worker);
/* Of the call of so many ranks that a recorded schedule keeps. */
void weft_sched_drop_types(const weft_coll *args, uint32_t ranks);
/* Recorded schedules: the next poll performs its next steps. */
void weft_sched_make_ready(weft_sched *sched);
/* Recorded schedules: the schedule has ended, by sched->rc or damage; completes its request (sched_progress.c). */
void weft_sched_end(weft_sched *sched);

static inline void weft_sched_record_error(weft_sched *sched, int rc)
{
    if (weft_unlikely(rc))
        weft_sched_fail(sched, rc);
}

#endif
