/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_progress: performs recorded schedules from the worker's progress. A schedule is in worker->scheds only while it can progress:
 * its completion inserts it once the requests of a round are complete. Requires worker->lock.
 * Invariant: algorithms' steps never run inside a completion, hence never inside a transport callback.
 * While a schedule is performed it is off the list and its completion cannot open. So while an operator or a long copy runs unlocked
 * (weft_coll_apply_op, weft_coll_copy), other threads may progress other schedules, but not this one.
 */
#include "base/status.h"
#include "collectives/sched_area.h"
#include "collectives/sched_internal.h"
#include "collectives/stop.h"
#include "core/progress_thread.h"
#include "core/worker.h"
#include "type/pack.h"

static void step_perform(weft_sched *sched, const weft_step *step)
{
    switch (step->op) {
    case WEFT_STEP_SEND:
    case WEFT_STEP_RECV: {
        int rc = weft_sched_begin_message(sched, step);
        if (weft_unlikely(rc))
            weft_sched_fail(sched, rc);
        break;
    }
    case WEFT_STEP_COPY:
        weft_coll_copy(sched->team->chan->worker, step->to_type, step->to, step->to_count, step->from_type, step->from, step->from_count);
        break;
    case WEFT_STEP_REDUCE:
        weft_coll_apply_op(sched->team->chan->worker, sched->op, step->to_type, step->from, step->to, step->to_count);
        break;
    case WEFT_STEP_CALL:
        step->call(sched, step->to);
        break;
    case WEFT_STEP_AWAIT:
    case WEFT_STEP_FENCE:
    case WEFT_STEP_HOLD:
        break;
    }
}

/* Performs steps up to a fence, the end or an error. False: the schedule waits for a message. */
static bool steps_perform(weft_sched *sched)
{
    while (!sched->rc && sched->next < sched->step_count) {
        const weft_step *step = &sched->steps[sched->next++];
        if (step->op == WEFT_STEP_FENCE)
            break;
        if (step->op != WEFT_STEP_AWAIT)
            step_perform(sched, step);
        else if (weft_sched_begin_await(sched, step->message))
            return false;
    }
    return true;
}

/* Ends the wait for a message, if the schedule is in one. False: it is not. */
static bool end_await(weft_sched *sched)
{
    const weft_step *step = sched->next ? &sched->steps[sched->next - 1] : NULL;

    if (!step || step->op != WEFT_STEP_AWAIT)
        return false;
    weft_sched_end_await(sched, step->message);
    return true;
}

/* Without MPI_THREAD_MULTIPLE the program's operators run on its own threads only (MPI 5.0 6.9.5). */
static bool is_user_op(const weft_sched *sched) { return sched->op && !sched->op->handle; }

static void help_begin(weft_sched *sched)
{
    const weft_chan *chan = sched->team->chan;
    sched->is_helped = chan->is_helped && (!is_user_op(sched) || weft_worker_is_multiple(chan->worker));
    weft_worker_help_begin(chan->worker, sched->is_helped);
}

static void help_end(weft_sched *sched)
{
    weft_worker_help_end(sched->team->chan->worker, sched->is_helped);
    sched->is_helped = false;
}

/* is_awake: no message has ended a round: none was begun, or the schedule has awaited one. */
static void sched_continue(weft_sched *sched, bool is_awake)
{
    for (;;) {
        if (!is_awake) {
            weft_sched_free_requests(sched);
            if (sched->rc || sched->next == sched->step_count)
                break;
        }
        is_awake = false;
        if (!steps_perform(sched))
            return;
        if (sched->rc) /* no further step begins */
            weft_sched_cancel(sched);
        if (--sched->completion.left) /* messages are under way; the last one opens the completion */
            return;
        sched->completion.left = 1;
    }
    if (weft_unlikely(sched->rc == WEFT_E_REVOKED)) {
        help_end(sched);
        sched->is_parked = true;
        return;
    }
    weft_sched_end(sched);
}

void weft_sched_end(weft_sched *sched)
{
    help_end(sched);
    weft_list_remove(&sched->active);
    if (weft_unlikely(sched->rc && sched->team->stopped))
        weft_fail(sched->rc, "%s", sched->team->stop_text); /* weft_req_end() keeps this text */
    weft_req_end(sched->req, weft_sched_code(sched));
}

int weft_sched_progress(weft_worker *worker)
{
    weft_list_link *link;
    int n = 0;

    /* Schedules that become ready meanwhile wait for the next poll. */
    for (uint32_t left = worker->scheds_ready; left && (link = weft_list_take(&worker->scheds)); left--) {
        weft_sched *sched = weft_container(link, weft_sched, link);
        worker->scheds_ready--;
        if (weft_unlikely(is_user_op(sched)) && weft_progress_thread_is_barred(worker)) {
            weft_list_append(&worker->scheds, &sched->link);
            worker->scheds_ready++;
            continue;
        }
        sched_continue(sched, end_await(sched));
        n++;
    }
    return n;
}

static void prepare(weft_req *req)
{
    weft_sched *sched = req->extra;

    sched->next = 0;
    sched->rc = 0;
    sched->damage = 0;
    sched->completion.left = 1;
    sched->completion.rc = sched->awaited.rc = 0;
    sched->message_first = 0;
    req->is_done = false;
    req->is_active = true;
    req->rc = 0;
    weft_sched_join(sched);
}

static void begin_in_area(weft_sched *sched)
{
    const weft_req *req = sched->req;

    weft_sched_begin_in_area(sched);
    if (!req->is_done)
        help_begin(sched);
}

void weft_sched_go_on(weft_sched *sched)
{
    help_begin(sched);
    sched_continue(sched, true);
}

int weft_sched_restart(weft_req *req)
{
    weft_sched *sched = req->extra;

    prepare(req);
    if (weft_unlikely(sched->tag & (int)WEFT_TAG_PREPARED))
        weft_calls_check_ahead(sched->team, (uint32_t)sched->tag, sched->call);
    if (sched->pending) {
        begin_in_area(sched);
        return WEFT_OK;
    }
    weft_sched_go_on(sched);
    return WEFT_OK;
}

void weft_sched_restart_later(weft_req *req)
{
    weft_sched *sched = req->extra;

    prepare(req);
    if (sched->pending) {
        begin_in_area(sched);
        return;
    }
    help_begin(sched);
    weft_sched_make_ready(sched);
}
