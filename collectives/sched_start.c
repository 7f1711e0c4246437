/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_start: nonblocking calls by messages. A started schedule performs its steps when the algorithm calls them. A wait polls for a short
 * time; if the messages have ended then, the next steps are performed too. Else the wait and all later steps are recorded, and progress
 * performs them (sched_progress.c). So a short call ends in its start, as an eager send, without a copy of its steps or its arguments.
 * Called by coll.c and sched.c; requires worker->lock.
 */
#include "collectives/sched_internal.h"

#include "base/status.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"

#define POLLS 64       /* of a wait: a short message of the node comes meanwhile */
#define NETWORK_POLLS 8 /* if there are other nodes: a poll may cost a system call */

static bool has_stopped(const weft_sched *sched) { return weft_unlikely(sched->rc != 0); }

static uint32_t polls_of(const weft_sched *sched)
{
    const weft_team *team = sched->team;

    if (team->chan->worker->world->wait_policy.yields || !weft_attempts_may_wait(&team->attempts))
        return 1;
    return team->nodes > 1 ? NETWORK_POLLS : POLLS;
}

/* The program may free the types when the start has returned. */
static void hold_types(weft_sched *sched)
{
    for (uint32_t i = 0; i < sched->req_count; i++) {
        weft_step hold = {.op = WEFT_STEP_HOLD};
        if (!sched->reqs[i])
            continue;
        hold.to_type = sched->reqs[i]->type;
        weft_sched_record_step(sched, &hold);
    }
}

/* The other members are late. */
static void record_from(weft_sched *sched, const weft_step *step)
{
    weft_attempts_note(&sched->team->attempts, false);
    sched->performs = false;
    hold_types(sched);
    if (!sched->rc)
        weft_sched_record_step(sched, step);
}

static inline bool has_ended(const weft_sched *sched, const weft_step *wait)
{
    return wait->op == WEFT_STEP_FENCE ? sched->completion.left <= 1 : weft_sched_has_ended(sched, wait->message);
}

/* The other members may share this member's CPU. */
static __attribute__((noinline)) void yield(weft_sched *sched, const weft_step *wait)
{
    weft_worker *worker = sched->team->chan->worker;
    weft_wait_yields yields = {.left = WEFT_ATTEMPTS_YIELDS};
    uint32_t left = POLLS;

    while (left-- && !has_ended(sched, wait) && !has_stopped(sched) && (weft_worker_poll(worker) > 0 || weft_wait_yield(worker, &yields)))
        ;
    if (has_ended(sched, wait))
        weft_wait_yields_succeeded(worker, &yields);
}

static inline bool ends_soon(weft_sched *sched, const weft_step *wait)
{
    uint32_t polls, left;

    if (has_ended(sched, wait))
        return true;
    for (polls = left = polls_of(sched); left && !has_ended(sched, wait) && !has_stopped(sched); left--)
        weft_worker_poll(sched->team->chan->worker);
    if (!left && sched->team->chan->worker->world->wait_policy.yields && weft_attempts_may_wait(&sched->team->attempts))
        yield(sched, wait);
    if (!has_ended(sched, wait))
        return false;
    if (left < polls)
        weft_attempts_note(&sched->team->attempts, true);
    return true;
}

void weft_sched_start_wait(weft_sched *sched, const weft_step *wait)
{
    weft_sched_post_deferred(sched);
    if (weft_unlikely(!ends_soon(sched, wait)))
        record_from(sched, wait);
    else if (wait->op == WEFT_STEP_AWAIT)
        weft_sched_end_await(sched, wait->message);
    else if (sched->req_count || weft_unlikely(sched->completion.rc))
        weft_sched_free_requests(sched);
}

/* The call has not ended, or has ended by an error. */
static __attribute__((noinline)) int go_on(weft_sched *sched, weft_req **req)
{
    int rc = sched->rc == WEFT_E_NOMEM ? sched->rc : weft_sched_request(sched, req);

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

/* A user operator, or another thread while it runs, may free the types. */
static void perform(weft_sched *sched, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    bool holds = weft_unlikely(args->op && !args->op->handle);

    if (holds)
        weft_type_hold(args->recvtype);
    algorithm(sched, args);
    weft_sched_fence(sched);
    if (holds)
        weft_type_drop(args->recvtype);
}

int weft_sched_start(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req)
{
    weft_sched *sched = weft_sched_new(team, args->op, tag);

    *req = NULL;
    if (weft_unlikely(!sched))
        return WEFT_E_NOMEM;
    weft_sched_join(sched);
    sched->performs = true;
    perform(sched, algorithm, args);
    if (weft_unlikely(!sched->performs || sched->rc || sched->damage))
        return go_on(sched, req);
    weft_sched_free(sched);
    *req = &team->chan->worker->done_sched;
    return WEFT_OK;
}
