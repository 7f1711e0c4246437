/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan: the verbs. Called by the algorithms only. A live plan performs, a recorded one appends a step; both hold the same rules:
 * errors stick (plan.h: which of them stop the plan), temporary memory lives as long as the plan, and completion.left is one more than
 * the messages under way.
 */
#include "collectives/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/wait.h"
#include "core/worker.h"
#include "type/pack.h"

/* The largest block that a team keeps for the next plan: page faults cost more than the copy that it serves. */
#define SPARE_MAX (8u << 20)

typedef struct weft_plan_block {
    struct weft_plan_block *next;
    uint64_t bytes; /* usable, behind this header */
} __attribute__((aligned(64))) block;

static void plan_reset(weft_plan *plan, weft_team *team, int tag, bool is_live)
{
    memset(plan, 0, offsetof(weft_plan, few));
    plan->rank = team->rank;
    plan->size = team->size;
    plan->team = team;
    plan->tag = tag;
    plan->is_live = is_live;
    plan->completion.left = 1;
    plan->reqs = plan->few;
    plan->req_room = WEFT_PLAN_FEW;
    weft_list_init(&plan->active);
}

static int32_t plan_peer(const weft_plan *plan, uint32_t rank) { return (int32_t)(plan->map ? plan->map[rank] : rank); }

void weft_plan_fail(weft_plan *plan, int rc)
{
    if (weft_status_is_damage(rc)) {
        if (!plan->damage)
            plan->damage = rc;
        return;
    }
    if (plan->team->stopped && weft_team_is_over(plan->team, (uint32_t)plan->tag)) /* known why */
        rc = weft_team_refuse(plan->team);
    else if (rc == WEFT_E_COMM)
        rc = weft_fail(WEFT_E_NOT_SAME, "another member has freed the communicator");
    if (!plan->rc)
        plan->rc = rc;
    if (rc != WEFT_E_REVOKED) /* a member that has stopped refused a message of ours: it notifies us of the reason */
        weft_team_stop(plan->team, rc, plan->tag);
}

static inline void plan_note(weft_plan *plan, int rc)
{
    if (weft_unlikely(rc))
        weft_plan_fail(plan, rc);
}

void weft_coll_call_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count)
{
    bool is_unlocked = !op->handle || weft_worker_is_long(worker, count * (uint64_t)type->size);

    if (is_unlocked)
        weft_worker_callout_begin(worker);
    else
        weft_worker_offer(worker);
    weft_op_apply(op, type, in, inout, count);
    if (is_unlocked)
        weft_worker_callout_end(worker);
}

void weft_coll_copy(weft_worker *worker, const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type, const void *from,
                    uint64_t from_count)
{
    bool is_unlocked = weft_worker_is_long(worker, to_count * (uint64_t)to_type->size);

    if (is_unlocked)
        weft_worker_callout_begin(worker);
    weft_copy(to_type, to, to_count, from_type, from, from_count);
    if (is_unlocked)
        weft_worker_callout_end(worker);
}

/* ---- messages ---- */

static int reqs_grow(weft_plan *plan)
{
    uint32_t room = plan->req_room * 2;
    weft_req **more = realloc(plan->reqs == plan->few ? NULL : plan->reqs, room * sizeof *more);

    if (!more)
        return weft_fail(WEFT_E_NOMEM, "no memory for %u messages of a collective", room);
    if (plan->reqs == plan->few)
        memcpy(more, plan->few, sizeof plan->few);
    plan->reqs = more;
    plan->req_room = room;
    return WEFT_OK;
}

int weft_plan_begin_message(weft_plan *plan, const weft_step *step)
{
    weft_chan *chan = plan->team->chan;
    weft_req *req = NULL;
    int rc = plan->req_count == plan->req_room ? reqs_grow(plan) : WEFT_OK;

    if (rc)
        return rc;
    if (step->verb == WEFT_STEP_SEND)
        rc = weft_isend(chan, step->peer, plan->tag, step->from, step->to_count, step->to_type,
                        weft_unlikely(plan->damage) ? WEFT_SEND_TAINTED : WEFT_SEND_STANDARD, &req);
    else
        rc = weft_irecv(chan, step->peer, plan->tag, step->to, step->to_count, step->to_type, &req);
    if (rc)
        return rc;
    if (req->is_done) {
        rc = req->rc;
        weft_req_free(req);
        if (weft_likely(!weft_status_is_damage(rc)))
            return rc;
        plan->completion.rc = weft_status_worse(plan->completion.rc, rc); /* nothing that is sent before the fence is made of it */
        return WEFT_OK;
    }
    req->completion = &plan->completion;
    plan->completion.left++;
    plan->reqs[plan->req_count++] = req;
    return WEFT_OK;
}

void weft_plan_free_requests(weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->req_count; i++)
        weft_req_free(plan->reqs[i]);
    plan->req_count = 0;
    plan_note(plan, plan->completion.rc);
    plan->completion.rc = 0;
}

/* ---- live ---- */

static void live_post_held(weft_plan *plan)
{
    if (!plan->is_holding)
        return;
    plan->is_holding = false;
    if (!plan->rc)
        plan_note(plan, weft_plan_begin_message(plan, &plan->held));
}

void weft_plan_cancel(weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->req_count; i++)
        if (plan->reqs[i]->kind == WEFT_REQ_RECV && !plan->reqs[i]->is_done)
            weft_cancel(plan->reqs[i]);
}

static bool has_stopped(const weft_plan *plan) { return plan->rc || (plan->completion.rc && !weft_status_is_damage(plan->completion.rc)); }

typedef struct live_wait {
    weft_wait wait;
    const weft_plan *plan;
    bool is_cancelled;
} live_wait;

/* Another thread may look for us. */
static bool live_is_over(weft_wait *wait)
{
    const live_wait *self = weft_container(wait, live_wait, wait);

    return self->plan->completion.left <= 1 || (has_stopped(self->plan) && !self->is_cancelled);
}

/* Once the plan has stopped, nobody promises that our receives will be served: they are cancelled, and only then waited for. */
static void live_settle(weft_plan *plan)
{
    live_wait self = {.plan = plan};

    weft_wait_begin(&self.wait, plan->team->chan->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, plan->tag, 0);
    self.wait.is_over = live_is_over;
    while (plan->completion.left > 1) {
        if (weft_unlikely(has_stopped(plan)) && !self.is_cancelled) {
            self.is_cancelled = true;
            weft_plan_cancel(plan);
            continue;
        }
        weft_wait_progress(&self.wait);
    }
    weft_wait_end(&self.wait);
    weft_plan_free_requests(plan);
}

static __attribute__((noinline)) void await_receive(weft_req *req)
{
    weft_wait wait;

    weft_wait_begin(&wait, req->worker, WEFT_WAIT_REASON_COLLECTIVE, req->rank, req->tag, req->bytes);
    wait.req = req;
    do
        weft_wait_progress(&wait);
    while (!req->is_done);
    weft_wait_end(&wait);
}

/* As weft_recv does it, but the team may be stopped while it waits. The request leaves the matching before we return, which the compiler
 * cannot see. */
static void live_receive(weft_plan *plan, const weft_step *step)
{
    weft_req on_stack, *req = &on_stack;

    __asm__("" : "+r"(req));
    req->completion = NULL;
    req->worker = plan->team->chan->worker;
    req->id = 0;
    req->is_posted = false;
    weft_irecv_into(plan->team->chan, step->peer, plan->tag, step->to, step->to_count, step->to_type, req);
    if (!req->is_done) {
        plan->receiving = req;
        weft_worker_poll(req->worker);
        if (!req->is_done)
            await_receive(req);
        plan->receiving = NULL;
    }
    plan_note(plan, req->rc);
}

static void live_fence(weft_plan *plan)
{
    if (plan->is_holding) {
        plan->is_holding = false;
        if (!plan->rc)
            live_receive(plan, &plan->held);
    }
    if (plan->completion.left > 1)
        live_settle(plan);
    else if (plan->req_count || weft_unlikely(plan->completion.rc))
        weft_plan_free_requests(plan);
}

typedef struct reason_wait {
    weft_wait wait;
    const weft_plan *plan;
} reason_wait;

static bool has_reason(weft_wait *wait) { return weft_container(wait, reason_wait, wait)->plan->rc != WEFT_E_REVOKED; }

static __attribute__((noinline)) void await_reason(weft_plan *plan)
{
    reason_wait self = {.plan = plan};

    weft_wait_begin(&self.wait, plan->team->chan->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, plan->tag, 0);
    self.wait.is_over = has_reason;
    while (plan->rc == WEFT_E_REVOKED)
        weft_wait_progress(&self.wait);
    weft_wait_end(&self.wait);
}

void weft_plan_begin_live(weft_plan *plan, weft_team *team, int tag)
{
    plan_reset(plan, team, tag, true);
    weft_list_append(&team->active, &plan->active);
    if (weft_unlikely(team->stopped) && weft_team_is_over(team, (uint32_t)tag))
        plan->rc = weft_team_refuse(team);
}

int weft_plan_end_live(weft_plan *plan)
{
    live_fence(plan);
    if (weft_unlikely(plan->rc == WEFT_E_REVOKED))
        await_reason(plan);
    weft_list_remove(&plan->active);
    weft_plan_free_memory(plan);
    if (weft_unlikely(plan->team->stopped))
        weft_team_leave_node(plan->team);
    return weft_plan_code(plan);
}

/* ---- recorded ---- */

static void record(weft_plan *plan, const weft_step *step)
{
    if (plan->step_count == plan->step_room) {
        uint32_t room = plan->step_room ? plan->step_room * 2 : 16;
        weft_step *more = realloc(plan->steps, room * sizeof *more);

        if (!more) {
            weft_plan_fail(plan, weft_fail(WEFT_E_NOMEM, "no memory for %u steps of a collective", room));
            return;
        }
        plan->steps = more;
        plan->step_room = room;
    }
    weft_type_hold(step->to_type);
    if (step->from_type)
        weft_type_hold(step->from_type);
    plan->steps[plan->step_count++] = *step;
}

static void open_gate(weft_completion *completion)
{
    weft_plan *plan = weft_container(completion, weft_plan, completion);

    weft_worker *worker = plan->team->chan->worker;

    weft_list_append(&worker->plans, &plan->link);
    worker->plans_ready++;
}

static void free_plan(weft_req *req)
{
    weft_plan *plan = req->extra;

    weft_list_remove(&plan->active);
    if (plan->kept)
        plan->drop_kept(plan->kept);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        weft_type_drop(plan->steps[i].to_type);
        if (plan->steps[i].from_type)
            weft_type_drop(plan->steps[i].from_type);
    }
    weft_plan_free_memory(plan);
    free(plan->steps);
    free(plan);
    req->extra = NULL;
}

int weft_plan_record(weft_team *team, weft_plan_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req)
{
    weft_plan *plan = aligned_alloc(64, weft_round_up(sizeof *plan, 64));
    int rc;

    *req = plan ? weft_req_new(team->chan->worker, WEFT_REQ_PLAN) : NULL;
    if (!*req) {
        free(plan);
        weft_team_stop(team, weft_fail(WEFT_E_NOMEM, "no memory to record a collective"), tag);
        return WEFT_E_NOMEM;
    }
    plan_reset(plan, team, tag, false);
    plan->completion.open = open_gate;
    plan->req = *req;
    (*req)->chan = team->chan;
    (*req)->extra = plan;
    (*req)->free_extra = free_plan;
    weft_list_init(&plan->link);
    if (args->op) { /* the user may free an operator while it is in use here */
        plan->own_op = *args->op;
        plan->op = &plan->own_op;
    }
    algorithm(plan, args);
    weft_plan_fence(plan);
    rc = plan->rc;
    if (rc) {
        weft_req_free(*req);
        *req = NULL;
    }
    return rc;
}

/* ---- verbs ---- */

void weft_plan_send(weft_plan *plan, uint32_t to, const void *buf, uint64_t count, const weft_type *type)
{
    weft_step step = {.verb = WEFT_STEP_SEND, .peer = plan_peer(plan, to), .from = buf, .to_count = count, .to_type = type};

    if (plan->rc)
        return;
    if (plan->is_live)
        plan_note(plan, weft_plan_begin_message(plan, &step));
    else
        record(plan, &step);
}

void weft_plan_recv(weft_plan *plan, uint32_t from, void *buf, uint64_t count, const weft_type *type)
{
    weft_step step = {.verb = WEFT_STEP_RECV, .peer = plan_peer(plan, from), .to = buf, .to_count = count, .to_type = type};

    if (plan->rc)
        return;
    if (!plan->is_live) {
        record(plan, &step);
        return;
    }
    live_post_held(plan);
    plan->held = step;
    plan->is_holding = true;
}

void weft_plan_copy(weft_plan *plan, void *to, uint64_t to_count, const weft_type *to_type, const void *from, uint64_t from_count,
                    const weft_type *from_type)
{
    weft_step step = {.verb = WEFT_STEP_COPY, .from = from, .to = to, .from_count = from_count, .to_count = to_count,
                      .from_type = from_type, .to_type = to_type};

    if (plan->rc || !to_count)
        return;
    /* The same address is the same place only for the same layout: MPI_BOTTOM is the address of all absolute types. */
    if (to == from && (to_type == from_type || (to_type->is_dense && from_type->is_dense)))
        return;
    if (plan->is_live)
        weft_coll_copy(plan->team->chan->worker, to_type, to, to_count, from_type, from, from_count);
    else
        record(plan, &step);
}

void weft_plan_fold(weft_plan *plan, const void *in, void *inout, uint64_t count, const weft_type *type)
{
    weft_step step = {.verb = WEFT_STEP_FOLD, .from = in, .to = inout, .to_count = count, .to_type = type};

    if (plan->rc || !count)
        return;
    if (plan->is_live)
        weft_coll_apply_op(plan->team->chan->worker, plan->op, type, in, inout, count);
    else
        record(plan, &step);
}

void weft_plan_fence(weft_plan *plan)
{
    weft_step step = {.verb = WEFT_STEP_FENCE, .to_type = NULL};

    if (plan->is_live)
        live_fence(plan);
    else if (!plan->rc && plan->step_count && plan->steps[plan->step_count - 1].verb != WEFT_STEP_FENCE) {
        step.to_type = weft_plan_bytes(); /* every step holds a type: no test when they are dropped */
        record(plan, &step);
    }
}

void weft_plan_sub(weft_plan *plan, const uint32_t *ranks, uint32_t size, weft_plan_algorithm *algorithm, const weft_coll *args)
{
    const uint32_t *outer_map = plan->map;
    uint32_t outer_rank = plan->rank, outer_size = plan->size;
    uint32_t *map = weft_plan_temp(plan, size * sizeof *map, weft_plan_bytes());

    if (!map)
        return;
    for (uint32_t i = 0; i < size; i++) {
        map[i] = (uint32_t)plan_peer(plan, ranks[i]);
        if (ranks[i] == outer_rank)
            plan->rank = i;
    }
    plan->map = map;
    plan->size = size;
    algorithm(plan, args);
    weft_plan_fence(plan);
    plan->map = outer_map;
    plan->rank = outer_rank;
    plan->size = outer_size;
}

/* ---- temporary memory ---- */

static void *temp_bytes(weft_plan *plan, uint64_t bytes)
{
    block *fresh = plan->is_live ? plan->team->cache : NULL;

    bytes = weft_round_up(bytes ? bytes : 1, 64);
    if (bytes <= WEFT_PLAN_SMALL - plan->small_used) {
        void *place = plan->small + plan->small_used;
        plan->small_used += (uint32_t)bytes;
        return place;
    }
    if (fresh && fresh->bytes >= bytes) {
        plan->team->cache = NULL;
    } else {
        fresh = bytes < UINT64_MAX / 2 ? aligned_alloc(64, sizeof *fresh + bytes) : NULL;
        if (!fresh) {
            weft_plan_fail(plan, weft_fail(WEFT_E_NOMEM, "a collective needs %llu bytes of temporary memory that are not to be had",
                                           (unsigned long long)bytes));
            return NULL;
        }
        fresh->bytes = bytes;
    }
    fresh->next = plan->blocks;
    plan->blocks = fresh;
    return fresh + 1;
}

void *weft_plan_temp(weft_plan *plan, uint64_t count, const weft_type *type)
{
    int64_t span = type->true_extent;
    char *place;

    if (plan->rc)
        return NULL;
    if (count > 1) /* a negative extent grows downwards */
        span += (int64_t)(count - 1) * (type->extent < 0 ? -type->extent : type->extent);
    place = temp_bytes(plan, count ? (uint64_t)span : 0);
    if (!place)
        return NULL;
    if (count > 1 && type->extent < 0)
        place += (int64_t)(count - 1) * -type->extent;
    return place - type->true_lb;
}

void weft_plan_free_memory(weft_plan *plan)
{
    block *at = plan->blocks;

    while (at) {
        block *next = at->next, *spare = plan->team->cache;
        if (plan->is_live && at->bytes <= SPARE_MAX && (!spare || spare->bytes < at->bytes)) {
            plan->team->cache = at;
            at = spare;
        }
        free(at);
        at = next;
    }
    plan->blocks = NULL;
    if (plan->reqs != plan->few)
        free(plan->reqs);
    plan->reqs = plan->few;
    plan->req_room = WEFT_PLAN_FEW;
}
