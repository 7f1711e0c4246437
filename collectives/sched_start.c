/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_start: nonblocking calls by messages. A started schedule performs its steps when the algorithm calls them. A wait polls for a short
 * time; if the messages have ended then, the next steps are performed too. Else the wait and all later steps are recorded, and progress
 * performs them (sched_progress.c). So a short call ends in its start, as an eager send, without a copy of its steps or its arguments.
 * Called by coll.c and sched.c; requires worker->lock.
 */
#include "collectives/sched_internal.h"

#include "base/status.h"
#include "core/worker.h"
#include "core/world.h"

#define POLLS 64 /* of a wait: longer than a short message takes on a node */

static bool has_stopped(const weft_sched *sched) { return weft_unlikely(sched->rc != 0); }

static uint32_t polls_of(const weft_sched *sched)
{
    const weft_worker *worker = sched->team->chan->worker;

    return worker->world->wait_policy.yields || !weft_attempts_may_wait(&sched->team->attempts) ? 1 : POLLS;
}

/* The other members are late. */
static void record_from(weft_sched *sched, const weft_step *step)
{
    weft_attempts_note(&sched->team->attempts, false);
    sched->performs = false;
    if (!sched->rc)
        weft_sched_record_step(sched, step);
}

void weft_sched_start_await(weft_sched *sched, const weft_step *step)
{
    weft_sched_post_deferred(sched);
    for (uint32_t polls = polls_of(sched); polls && !weft_sched_has_ended(sched, step->message) && !has_stopped(sched); polls--)
        weft_worker_poll(sched->team->chan->worker);
    if (weft_sched_has_ended(sched, step->message))
        weft_sched_end_await(sched, step->message);
    else
        record_from(sched, step);
}

void weft_sched_start_fence(weft_sched *sched, const weft_step *step)
{
    weft_sched_post_deferred(sched);
    for (uint32_t polls = polls_of(sched); polls && sched->completion.left > 1 && !has_stopped(sched); polls--)
        weft_worker_poll(sched->team->chan->worker);
    if (weft_unlikely(sched->completion.left > 1))
        record_from(sched, step);
    else if (sched->req_count || weft_unlikely(sched->completion.rc))
        weft_sched_free_requests(sched);
}

/* The call has not ended, or by an error. */
static __attribute__((noinline)) int go_on(weft_sched *sched, weft_req **req)
{
    int rc = weft_sched_request(sched, req);

    if (weft_unlikely(rc)) { /* its messages may be under way */
        sched->is_immediate = true;
        weft_sched_end_immediate(sched);
        weft_sched_free(sched);
        return rc;
    }
    (*req)->is_active = true;
    weft_sched_go_on(sched);
    return WEFT_OK;
}

int weft_sched_start(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req)
{
    weft_sched *sched = weft_sched_new(team, args->op, tag);

    *req = NULL;
    if (weft_unlikely(!sched))
        return WEFT_E_NOMEM;
    weft_sched_join(sched);
    sched->performs = true;
    algorithm(sched, args);
    weft_sched_fence(sched);
    if (weft_unlikely(!sched->performs || sched->rc || sched->damage))
        return go_on(sched, req);
    weft_attempts_note(&team->attempts, true);
    weft_sched_free(sched);
    *req = &team->chan->worker->done_sched;
    return WEFT_OK;
}
