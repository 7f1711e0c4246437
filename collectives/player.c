/* SPDX-License-Identifier: BSD-3-Clause
 *
 * player: performs recorded plans, from the worker's progress. A plan stands in worker->plans only while it can go on: its completion
 * puts it there when the messages of its round are over. Nothing here runs inside a completion, so no transport callback ever nests
 * in an algorithm. A plan that is played is off the list, and its completion cannot open: while a program's operator or a long fold or copy
 * runs unlocked (weft_coll_apply_op, weft_coll_copy), other threads play the plans that are left, and never this one.
 */
#include "base/status.h"
#include "collectives/stop.h"
#include "core/worker.h"
#include "type/pack.h"

static void step_perform(weft_plan *plan, const weft_step *step)
{
    switch (step->verb) {
    case WEFT_STEP_SEND:
    case WEFT_STEP_RECV: {
        int rc = weft_plan_begin_message(plan, step);
        if (weft_unlikely(rc))
            weft_plan_fail(plan, rc);
        break;
    }
    case WEFT_STEP_COPY:
        weft_coll_copy(plan->team->chan->worker, step->to_type, step->to, step->to_count, step->from_type, step->from, step->from_count);
        break;
    case WEFT_STEP_FOLD:
        weft_coll_apply_op(plan->team->chan->worker, plan->op, step->to_type, step->from, step->to, step->to_count);
        break;
    case WEFT_STEP_FENCE:
        break;
    }
}

static void plan_go_on(weft_plan *plan)
{
    for (;;) {
        weft_plan_free_requests(plan);
        if (plan->rc || plan->next == plan->step_count)
            break;
        while (!plan->rc && plan->next < plan->step_count) {
            const weft_step *step = &plan->steps[plan->next++];
            if (step->verb == WEFT_STEP_FENCE)
                break;
            step_perform(plan, step);
        }
        if (plan->rc) /* it begins nothing more */
            weft_plan_cancel(plan);
        if (--plan->completion.left) /* the last of them opens the completion */
            return;
        plan->completion.left = 1;
    }
    if (weft_unlikely(plan->rc == WEFT_E_REVOKED)) {
        plan->is_parked = true;
        return;
    }
    weft_list_remove(&plan->active);
    if (weft_unlikely(plan->rc && plan->team->stopped))
        weft_fail(plan->rc, "%s", plan->team->stop_text); /* the request keeps this text */
    weft_req_end(plan->req, weft_plan_code(plan));
}

int weft_plan_play(weft_worker *worker)
{
    weft_list_link *link;
    int n = 0;

    /* What becomes ready meanwhile waits for the next poll. */
    for (uint32_t left = worker->plans_ready; left && (link = weft_list_take(&worker->plans)); left--) {
        weft_plan *plan = weft_container(link, weft_plan, link);
        worker->plans_ready--;
        plan->completion.left = 1;
        plan_go_on(plan);
        n++;
    }
    return n;
}

int weft_plan_restart(weft_req *req)
{
    weft_plan *plan = req->extra;

    plan->next = 0;
    plan->rc = 0;
    plan->damage = 0;
    plan->completion.left = 1;
    plan->completion.rc = 0;
    req->is_done = false;
    req->is_active = true;
    req->rc = 0;
    weft_list_append(&plan->team->active, &plan->active);
    if (weft_unlikely(plan->team->stopped) && weft_team_is_over(plan->team, (uint32_t)plan->tag))
        plan->rc = weft_team_refuse(plan->team);
    if (weft_unlikely(plan->tag & (int)WEFT_TAG_PREPARED))
        weft_calls_check_ahead(plan->team, (uint32_t)plan->tag, plan->call);
    plan_go_on(plan);
    return WEFT_OK;
}
