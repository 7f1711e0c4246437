/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_internal: the messages of a schedule: posted by its steps, numbered, and awaited one by one or all at a fence.
 * In sched_message.c; called by sched.c (immediate schedules), sched_start.c (started ones) and sched_progress.c (recorded ones); requires
 * worker->lock.
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

/* Steps that are performed: a receive is posted by the next one, so that a send between both leaves before, or by the await or fence that
 * follows; of an immediate schedule these perform it as a blocking one. */
void weft_sched_defer_recv(weft_sched *sched, const weft_step *step);
void weft_sched_post_deferred(weft_sched *sched);

/* Immediate schedules. Blocks until the message has ended, or all of them. Errors are kept in the schedule. */
void weft_sched_immediate_await(weft_sched *sched, uint32_t message);
void weft_sched_immediate_fence(weft_sched *sched);

/* Started schedules (sched_start.c): performs an await or a fence that ends soon. Else records it, and the schedule records all later steps. */
void weft_sched_start_wait(weft_sched *sched, const weft_step *wait);
/* Whether the message has ended. */
bool weft_sched_has_ended(const weft_sched *sched, uint32_t message);

/* Recorded schedules. True: the message is under way; sched->awaited opens when it has ended; then call end_await. False: it has ended. */
bool weft_sched_begin_await(weft_sched *sched, uint32_t message);
void weft_sched_end_await(weft_sched *sched, uint32_t message);

/* Frees the temporary memory that the worker keeps. */
void weft_sched_free_blocks(weft_worker *worker);
/* Of the call of so many ranks that a recorded schedule keeps. */
void weft_sched_drop_types(const weft_coll *args, uint32_t ranks);
void weft_sched_record_step(weft_sched *sched, const weft_step *step);
/* A schedule without request. NULL: out of memory, and the team has stopped. */
weft_sched *weft_sched_new(weft_team *team, const weft_op *op, int tag);
/* Makes the request that owns the schedule. WEFT_E_NOMEM: *req is NULL, and the team has stopped. */
int weft_sched_request(weft_sched *sched, weft_req **req);
/* Frees a schedule that is not under way, and what it owns. The free of its request calls this. */
void weft_sched_free(weft_sched *sched);
/* The schedule is under way from now on. If its team has stopped, sched->rc is set. */
void weft_sched_join(weft_sched *sched);
/* Performs the recorded steps, while messages that the start has posted may be under way. */
void weft_sched_go_on(weft_sched *sched);
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
