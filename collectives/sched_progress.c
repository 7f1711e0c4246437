/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_progress: performs recorded schedules, from the worker's progress. A schedule stands in worker->schedules only while it can go on: its completion
 * puts it there when the messages of its round are over. Nothing here runs inside a completion, so no transport callback ever nests
 * in an algorithm. A schedule that is played is off the list, and its completion cannot open: while a program's operator or a long fold or copy
 * runs unlocked (weft_coll_apply_op, weft_coll_copy), other threads play the schedules that are left, and never this one.
 */
#include "base/status.h"
#include "collectives/stop.h"
#include "core/worker.h"
#include "type/pack.h"

static void step_perform(weft_sched *sched, const weft_step *step)
{
    switch (step->verb) {
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
    case WEFT_STEP_FENCE:
        break;
    }
}

static void plan_go_on(weft_sched *sched)
{
    for (;;) {
        weft_sched_free_requests(sched);
        if (sched->rc || sched->next == sched->step_count)
            break;
        while (!sched->rc && sched->next < sched->step_count) {
            const weft_step *step = &sched->steps[sched->next++];
            if (step->verb == WEFT_STEP_FENCE)
                break;
            step_perform(sched, step);
        }
        if (sched->rc) /* it begins nothing more */
            weft_sched_cancel(sched);
        if (--sched->completion.left) /* the last of them opens the completion */
            return;
        sched->completion.left = 1;
    }
    if (weft_unlikely(sched->rc == WEFT_E_REVOKED)) {
        sched->is_parked = true;
        return;
    }
    weft_list_remove(&sched->active);
    if (weft_unlikely(sched->rc && sched->team->stopped))
        weft_fail(sched->rc, "%s", sched->team->stop_text); /* the request keeps this text */
    weft_req_end(sched->req, weft_sched_code(sched));
}

int weft_sched_progress(weft_worker *worker)
{
    weft_list_link *link;
    int n = 0;

    /* What becomes ready meanwhile waits for the next poll. */
    for (uint32_t left = worker->scheds_ready; left && (link = weft_list_take(&worker->scheds)); left--) {
        weft_sched *sched = weft_container(link, weft_sched, link);
        worker->scheds_ready--;
        sched->completion.left = 1;
        plan_go_on(sched);
        n++;
    }
    return n;
}

int weft_sched_restart(weft_req *req)
{
    weft_sched *sched = req->extra;

    sched->next = 0;
    sched->rc = 0;
    sched->damage = 0;
    sched->completion.left = 1;
    sched->completion.rc = 0;
    req->is_done = false;
    req->is_active = true;
    req->rc = 0;
    weft_list_append(&sched->team->active, &sched->active);
    if (weft_unlikely(sched->team->stopped) && weft_team_is_over(sched->team, (uint32_t)sched->tag))
        sched->rc = weft_team_refuse(sched->team);
    if (weft_unlikely(sched->tag & (int)WEFT_TAG_PREPARED))
        weft_calls_check_ahead(sched->team, (uint32_t)sched->tag, sched->call);
    plan_go_on(sched);
    return WEFT_OK;
}
