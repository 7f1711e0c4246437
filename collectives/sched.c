/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched: the steps of a schedule, immediate or recorded. Called by the algorithms and coll.c.
 */
#include "collectives/sched.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/sched_internal.h"
#include "collectives/shmcoll_area.h"
#include "collectives/stop.h"
#include "core/callout.h"
#include "core/wait.h"
#include "core/worker.h"
#include "type/pack.h"

#define SPARE_SCHEDS 16 /* most freed schedules that a worker keeps: allocating one costs more than a short call */

static void sched_reset(weft_sched *sched, weft_team *team, int tag, bool is_immediate)
{
    memset(sched, 0, offsetof(weft_sched, few));
    sched->rank = team->rank;
    sched->size = team->size;
    sched->team = team;
    sched->tag = tag;
    sched->is_immediate = sched->performs = is_immediate;
    sched->completion.left = 1;
    sched->reqs = sched->few;
    sched->req_capacity = WEFT_SCHED_FEW;
    weft_list_init(&sched->active);
}

void weft_sched_fail(weft_sched *sched, int rc)
{
    if (weft_status_is_damage(rc)) {
        if (!sched->damage)
            sched->damage = rc;
        return;
    }
    if (sched->team->stopped && weft_team_is_over(sched->team, (uint32_t)sched->tag)) /* the reason is known */
        rc = weft_team_stop_error(sched->team);
    else if (rc == WEFT_E_COMM)
        rc = weft_fail(WEFT_E_NOT_SAME, "another member has freed the communicator");
    if (!sched->rc)
        sched->rc = rc;
    if (rc != WEFT_E_REVOKED) /* a stopped member rejected a message; its notification follows */
        weft_team_stop(sched->team, rc, sched->tag);
}

void weft_coll_call_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, const void *second, void *out,
                       uint64_t count)
{
    bool is_unlocked = !op->handle || weft_worker_is_long(worker, count * (uint64_t)type->size);

    if (is_unlocked)
        weft_worker_callout_begin(worker);
    else
        weft_worker_offer(worker);
    weft_op_combine(op, type, in, second, out, count);
    if (is_unlocked)
        weft_worker_callout_end(worker);
}

void weft_coll_copy(weft_worker *worker, const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type,
                    const void *from, uint64_t from_count)
{
    bool is_unlocked = weft_worker_is_long(worker, to_count * (uint64_t)to_type->size);

    if (is_unlocked)
        weft_worker_callout_begin(worker);
    weft_copy(to_type, to, to_count, from_type, from, from_count);
    if (is_unlocked)
        weft_worker_callout_end(worker);
}

/* ---- immediate ---- */

typedef struct reason_wait {
    weft_wait wait;
    const weft_sched *sched;
} reason_wait;

static bool has_reason(weft_wait *wait) { return weft_container(wait, reason_wait, wait)->sched->rc != WEFT_E_REVOKED; }

static __attribute__((noinline)) void await_reason(weft_sched *sched)
{
    reason_wait self = {.sched = sched};

    weft_wait_begin(&self.wait, sched->team->chan->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, sched->tag, 0);
    self.wait.is_over = has_reason;
    while (sched->rc == WEFT_E_REVOKED)
        weft_wait_progress(&self.wait);
    weft_wait_end(&self.wait);
}

void weft_sched_join(weft_sched *sched)
{
    weft_team *team = sched->team;

    weft_list_append(&team->active, &sched->active);
    if (weft_unlikely(team->stopped) && weft_team_is_over(team, (uint32_t)sched->tag))
        sched->rc = weft_team_stop_error(team);
}

void weft_sched_begin_immediate(weft_sched *sched, weft_team *team, int tag)
{
    sched_reset(sched, team, tag, true);
    weft_sched_join(sched);
}

int weft_sched_end_immediate(weft_sched *sched)
{
    weft_sched_immediate_fence(sched);
    if (weft_unlikely(sched->rc == WEFT_E_REVOKED))
        await_reason(sched);
    weft_list_remove(&sched->active);
    weft_sched_free_memory(sched);
    if (weft_unlikely(sched->team->stopped)) {
        weft_team_leave_area(sched->team);
        if (sched->rc)
            weft_fail(sched->rc, "%s", sched->team->stop_text); /* notifying other members may have changed the text */
    }
    return weft_sched_code(sched);
}

/* ---- recorded ---- */

void weft_sched_record_step(weft_sched *sched, const weft_step *step)
{
    if (sched->step_count == sched->step_capacity) {
        uint32_t capacity = sched->step_capacity ? sched->step_capacity * 2 : 16;
        weft_step *more = realloc(sched->steps, capacity * sizeof *more);

        if (!more) {
            weft_sched_fail(sched, weft_fail(WEFT_E_NOMEM, "no memory for %u steps of a collective", capacity));
            return;
        }
        sched->steps = more;
        sched->step_capacity = capacity;
    }
    weft_type_hold(step->to_type);
    if (step->from_type)
        weft_type_hold(step->from_type);
    sched->steps[sched->step_count++] = *step;
}

void weft_sched_make_ready(weft_sched *sched)
{
    weft_worker *worker = sched->team->chan->worker;

    weft_list_append(&worker->scheds, &sched->link);
    worker->scheds_ready++;
}

static void on_round_done(weft_completion *completion)
{
    completion->left = 1;
    weft_sched_make_ready(weft_container(completion, weft_sched, completion));
}

static void on_awaited(weft_completion *awaited) { weft_sched_make_ready(weft_container(awaited, weft_sched, awaited)); }

static weft_sched *take_spare(weft_worker *worker)
{
    weft_sched *sched = worker->spare_scheds;

    if (!sched)
        return aligned_alloc(64, weft_round_up(sizeof *sched, 64));
    worker->spare_scheds = sched->next_spare;
    worker->spare_sched_count--;
    return sched;
}

static void give_back(weft_worker *worker, weft_sched *sched)
{
    if (worker->spare_sched_count == SPARE_SCHEDS) {
        free(sched);
        return;
    }
    sched->next_spare = worker->spare_scheds;
    worker->spare_scheds = sched;
    worker->spare_sched_count++;
}

void weft_sched_free_spares(weft_worker *worker)
{
    while (worker->spare_scheds) {
        weft_sched *sched = worker->spare_scheds;
        worker->spare_scheds = sched->next_spare;
        free(sched);
    }
    weft_sched_free_blocks(worker);
}

void weft_sched_free(weft_sched *sched)
{
    weft_list_remove(&sched->active);
    if (sched->regs)
        sched->free_regs(sched->regs);
    if (sched->pending) {
        weft_sched_drop_types(&sched->pending->args, sched->size);
        if (sched->pending->area && sched->pending->area->is_lane)
            weft_shmcoll_close(sched->pending->area);
    }
    for (uint32_t i = 0; i < sched->step_count; i++) {
        weft_type_drop(sched->steps[i].to_type);
        if (sched->steps[i].from_type)
            weft_type_drop(sched->steps[i].from_type);
    }
    weft_sched_free_memory(sched);
    free(sched->steps);
    give_back(sched->team->chan->worker, sched);
}

static void free_with_request(weft_req *req) { weft_sched_free(req->extra); }

static int __attribute__((cold)) no_memory(weft_team *team, int tag)
{
    weft_team_stop(team, weft_fail(WEFT_E_NOMEM, "no memory to record a collective"), tag);
    return WEFT_E_NOMEM;
}

weft_sched *weft_sched_new(weft_team *team, const weft_op *op, int tag)
{
    weft_sched *sched = take_spare(team->chan->worker);

    if (weft_unlikely(!sched)) {
        no_memory(team, tag);
        return NULL;
    }
    sched_reset(sched, team, tag, false);
    sched->completion.open = on_round_done;
    sched->awaited.open = on_awaited;
    weft_list_init(&sched->link);
    if (op) { /* the user may free the operator meanwhile */
        sched->own_op = *op;
        sched->op = &sched->own_op;
    }
    return sched;
}

int weft_sched_request(weft_sched *sched, weft_req **req)
{
    weft_team *team = sched->team;

    *req = weft_req_new(team->chan->worker, WEFT_REQ_SCHED);
    if (weft_unlikely(!*req))
        return no_memory(team, sched->tag);
    sched->req = *req;
    sched->ext = (weft_req_ext){.free = free_with_request};
    (*req)->chan = team->chan;
    (*req)->extra = sched;
    return WEFT_OK;
}

int weft_sched_make(weft_team *team, const weft_op *op, int tag, weft_req **req)
{
    weft_sched *sched = weft_sched_new(team, op, tag);
    int rc;

    *req = NULL;
    if (!sched)
        return WEFT_E_NOMEM;
    rc = weft_sched_request(sched, req);
    if (rc)
        weft_sched_free(sched);
    return rc;
}

int weft_sched_record(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req)
{
    int rc = weft_sched_make(team, args->op, tag, req);
    weft_sched *sched;

    if (rc)
        return rc;
    sched = (*req)->extra;
    algorithm(sched, args);
    weft_sched_fence(sched);
    rc = sched->rc;
    if (rc) {
        weft_req_free(*req);
        *req = NULL;
    }
    return rc;
}

/* ---- steps ---- */

weft_sched_message weft_sched_send(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type)
{
    weft_step step = {.op = WEFT_STEP_SEND, .peer = (int32_t)weft_sched_member(sched, to), .from = buf, .to_count = count, .to_type = type};

    if (sched->rc)
        return sched->message_next;
    if (sched->performs)
        weft_sched_record_error(sched, weft_sched_begin_message(sched, &step));
    else
        weft_sched_record_step(sched, &step);
    return sched->message_next++;
}

weft_sched_message weft_sched_recv(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type)
{
    weft_step step = {.op = WEFT_STEP_RECV, .peer = (int32_t)weft_sched_member(sched, from), .to = buf, .to_count = count, .to_type = type};

    if (sched->rc)
        return sched->message_next;
    if (sched->performs)
        weft_sched_defer_recv(sched, &step);
    else
        weft_sched_record_step(sched, &step);
    return sched->message_next++;
}

void weft_sched_await(weft_sched *sched, weft_sched_message message)
{
    weft_step step = {.op = WEFT_STEP_AWAIT, .message = message, .to_type = weft_sched_bytes()};

    if (sched->is_immediate)
        weft_sched_immediate_await(sched, message);
    else if (sched->performs)
        weft_sched_start_wait(sched, &step);
    else if (!sched->rc)
        weft_sched_record_step(sched, &step);
}

void weft_sched_copy(weft_sched *sched, void *to, uint64_t to_count, const weft_type *to_type, const void *from, uint64_t from_count,
                    const weft_type *from_type)
{
    weft_step step = {.op = WEFT_STEP_COPY, .from = from, .to = to, .from_count = from_count, .to_count = to_count,
                      .from_type = from_type, .to_type = to_type};

    if (sched->rc || !to_count)
        return;
    /* Equal addresses are equal memory only for one layout: MPI_BOTTOM is the address of every absolute type. */
    if (to == from && (to_type == from_type || (to_type->is_dense && from_type->is_dense)))
        return;
    if (sched->performs)
        weft_coll_copy(sched->team->chan->worker, to_type, to, to_count, from_type, from, from_count);
    else
        weft_sched_record_step(sched, &step);
}

void weft_sched_reduce(weft_sched *sched, const void *in, void *inout, uint64_t count, const weft_type *type)
{
    weft_step step = {.op = WEFT_STEP_REDUCE, .from = in, .to = inout, .to_count = count, .to_type = type};

    if (sched->rc || !count)
        return;
    if (sched->performs)
        weft_coll_apply_op(sched->team->chan->worker, sched->op, type, in, inout, count);
    else
        weft_sched_record_step(sched, &step);
}

void weft_sched_call(weft_sched *sched, weft_sched_callback *call, void *arg)
{
    weft_step step = {.op = WEFT_STEP_CALL, .call = call, .to = arg, .to_type = weft_sched_bytes()};

    if (sched->rc)
        return;
    if (sched->performs)
        call(sched, arg);
    else
        weft_sched_record_step(sched, &step);
}

/* Of a started or a recorded schedule. Every step holds a type, so weft_sched_free() need not test. */
static __attribute__((noinline)) void fence_later(weft_sched *sched)
{
    weft_step step = {.op = WEFT_STEP_FENCE, .to_type = weft_sched_bytes()};

    if (sched->performs)
        weft_sched_start_wait(sched, &step);
    else if (!sched->rc && sched->step_count && sched->steps[sched->step_count - 1].op != WEFT_STEP_FENCE)
        weft_sched_record_step(sched, &step);
}

void weft_sched_fence(weft_sched *sched)
{
    if (sched->is_immediate)
        weft_sched_immediate_fence(sched);
    else if (!sched->performs || sched->has_deferred || sched->completion.left > 1)
        fence_later(sched);
    else if (sched->req_count || weft_unlikely(sched->completion.rc)) /* all messages have ended */
        weft_sched_free_requests(sched);
}

/* A view of some members. */
typedef struct view {
    const uint32_t *map;
    uint32_t base, rank, size;
} view;

static void view_run(weft_sched *sched, view inner, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    view outer = {sched->map, sched->base, sched->rank, sched->size};

    sched->map = inner.map;
    sched->base = inner.base;
    sched->rank = inner.rank;
    sched->size = inner.size;
    algorithm(sched, args);
    weft_sched_fence(sched);
    sched->map = outer.map;
    sched->base = outer.base;
    sched->rank = outer.rank;
    sched->size = outer.size;
}

void weft_sched_sub(weft_sched *sched, const uint32_t *ranks, uint32_t size, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    uint32_t *map = weft_sched_temp(sched, size * sizeof *map, weft_sched_bytes());
    view inner = {.map = map, .size = size};

    if (!map)
        return;
    for (uint32_t i = 0; i < size; i++) {
        map[i] = weft_sched_member(sched, ranks[i]);
        if (ranks[i] == sched->rank)
            inner.rank = i;
    }
    view_run(sched, inner, algorithm, args);
}

void weft_sched_among(weft_sched *sched, weft_members ranks, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    view inner = {.map = sched->map ? sched->map + ranks.first : NULL, .base = sched->base + ranks.first,
                  .rank = sched->rank - ranks.first, .size = ranks.count};

    view_run(sched, inner, algorithm, args);
}
