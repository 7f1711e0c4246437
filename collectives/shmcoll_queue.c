/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_queue: see shmcoll_queue.h.
 */
#include "collectives/shmcoll_queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_exchange.h"
#include "collectives/shmcoll_short.h"
#include "collectives/shmcoll_wait.h"
#include "collectives/stop.h"
#include "core/progress_thread.h"
#include "core/wait.h"
#include "core/world.h"

#define CHECK_EVERY 64 /* polls without effect between two looks for members that will never post */

static int begin(weft_shmcoll *area, weft_shmcoll_pending *pending)
{
    int rc;

    area->current = pending;
    area->call_hash = pending->call_hash;
    pending->is_begun = true;
    if (area->rc)
        return weft_shmcoll_stop_error(area);
    rc = weft_shmcoll_open(area, pending->kind, &pending->args);
    return rc ? weft_shmcoll_stop(area, rc) : WEFT_OK;
}

/* After a poll without effect: looks for members that will never post. Before a sleep it looks after the ifaces are armed, because a member
 * that leaves the area later wakes this one. */
static int check_idle(weft_shmcoll *area)
{
    int rc = WEFT_OK;

    if (++area->idle_polls % CHECK_EVERY == 0 || area->worker->is_armed)
        rc = weft_shmcoll_check_awaited(area);
    if (!rc)
        return WEFT_AGAIN;
    weft_shmcoll_abandon(area);
    return rc;
}

/* Keeps the text of the call's first damage, which was just set. */
static void note_damage(weft_shmcoll *area, weft_shmcoll_pending *pending)
{
    pending->damage = area->damage;
    snprintf(area->damage_text, sizeof area->damage_text, "%s", weft_fail_text(area->damage));
}

static int perform(weft_shmcoll *area, weft_shmcoll_pending *pending, bool *has_moved)
{
    int rc = pending->is_begun ? WEFT_OK : begin(area, pending);

    if (rc)
        return rc;
    rc = weft_shmcoll_try(area, has_moved);
    if (weft_unlikely(area->damage && !pending->damage))
        note_damage(area, pending);
    if (rc == WEFT_AGAIN && !*has_moved)
        return check_idle(area);
    area->idle_polls = 0;
    return rc;
}

/* The team has stopped at this call or an older one. The others must not wait for what is left of it. */
static int halt(weft_shmcoll *area, weft_shmcoll_pending *pending)
{
    if (pending->is_begun) {
        weft_shmcoll_leave(area, pending->rc);
        weft_shmcoll_abandon(area);
    }
    return pending->rc;
}

/* After the last call: a team that has stopped needs the area no more. */
static void leave_if_stopped(const weft_shmcoll *area)
{
    if (weft_unlikely(area->team && area->team->stopped && !area->is_lane && !weft_shmcoll_has_pending(area)))
        weft_team_leave_area(area->team);
}

static void end(weft_shmcoll *area, weft_shmcoll_pending *pending, int rc)
{
    if (!pending->rc)
        pending->rc = rc;
    area->current = NULL;
    area->awaited = 0;
    area->idle_polls = 0;
    weft_list_remove(&pending->link);
    leave_if_stopped(area);
    if (weft_unlikely(pending->damage))
        weft_fail(pending->damage, "%s", area->damage_text);
    pending->end(pending);
}

/* Without MPI_THREAD_MULTIPLE the program's operators run on its own threads only (MPI 5.0 6.9.5). */
static bool is_barred(const weft_shmcoll *area, const weft_shmcoll_pending *pending)
{
    const weft_op *op = pending->args.op;

    return weft_unlikely(op && !op->handle) && weft_progress_thread_is_barred(area->worker);
}

/* Advances the oldest call by at most one round, so that the lock is not held for long. Returns whether it has advanced or ended. */
static bool advance(weft_shmcoll *area)
{
    weft_shmcoll_pending *pending = weft_container(area->pending.next, weft_shmcoll_pending, link);
    bool has_moved = false;
    int rc;

    area->worker->has_barred_area = is_barred(area, pending);
    if (weft_unlikely(area->worker->has_barred_area))
        return false;
    rc = weft_unlikely(pending->rc) ? halt(area, pending) : perform(area, pending, &has_moved);
    if (rc == WEFT_AGAIN)
        return has_moved;
    end(area, pending, rc);
    return true;
}

/* While an area is advanced it is off the list: another thread that takes the dropped lock does not advance it. */
static bool advance_off_list(weft_shmcoll *area)
{
    weft_worker *worker = area->worker;
    bool has_advanced = advance(area);

    worker->has_ready_area = has_advanced && weft_shmcoll_has_pending(area);
    if (!weft_shmcoll_has_pending(area))
        return has_advanced;
    weft_list_append(&worker->areas, &area->link);
    worker->area_count++;
    return has_advanced;
}

int weft_shmcoll_progress(weft_worker *worker)
{
    weft_list_link *link;
    bool has_barred = false, has_ready = false;
    int n = 0;

    for (uint32_t left = worker->area_count; left && (link = weft_list_take(&worker->areas)); left--) {
        worker->area_count--;
        n += advance_off_list(weft_container(link, weft_shmcoll, link));
        has_barred |= worker->has_barred_area;
        has_ready |= worker->has_ready_area;
    }
    worker->has_ready_area = has_ready;
    worker->has_barred_area = has_barred;
    return n;
}

void weft_shmcoll_spin(const weft_shmcoll_pending *pending)
{
    weft_shmcoll *area = pending->area;
    weft_worker *worker = area->worker;
    uint32_t looks = weft_shmcoll_looks(area), left = looks;

    while (left) {
        if (!weft_shmcoll_has_news(area)) {
            left = weft_shmcoll_looked(area, left);
            continue;
        }
        left--;
        if (area->pending.next != &pending->link || weft_list_is_empty(&area->link))
            break; /* it has ended, or waits for older calls, or another thread advances it */
        weft_list_remove(&area->link);
        worker->area_count--;
        advance_off_list(area);
    }
    if (looks)
        weft_wait_policy_looked(&worker->world->wait_policy, left);
}

/* Publishes a call. */
static inline __attribute__((always_inline)) void log_call(weft_shmcoll *area, weft_call call, uint32_t tag)
{
    weft_shmcoll_log_call(area, call);
    weft_shmcoll_log_number(area, tag);
}

/* The call's arguments are now these, a copy. */
static void use_copy(weft_shmcoll_exchange *ex, const weft_coll *copy)
{
    if (ex->blocks.layout)
        ex->blocks.layout = ex->blocks.layout == ex->args->send_layout ? copy->send_layout : copy->recv_layout;
    ex->args = ex->reduction.args = copy;
}

/* The attempted call gets a schedule, which owns its arguments. */
static void adopt(weft_shmcoll *area, weft_shmcoll_pending *pending)
{
    int rc = area->attempted;

    area->attempted = 0;
    area->current = pending;
    pending->is_begun = true;
    if (rc == WEFT_AGAIN) {
        use_copy(area->exchange, &pending->args);
        advance_off_list(area);
    } else {
        end(area, pending, rc);
    }
}

int weft_shmcoll_enqueue(weft_shmcoll_pending *pending)
{
    weft_shmcoll *area = pending->area;
    bool is_first = !weft_shmcoll_has_pending(area);

    if (!area->attempted) {
        if (weft_unlikely(area->rc))
            return weft_shmcoll_stop_error(area);
        if (weft_unlikely(!area->exchange) && !(area->exchange = calloc(1, sizeof *area->exchange)))
            return weft_fail(WEFT_E_NOMEM, "no memory for nonblocking collectives");
        log_call(area, pending->call, pending->tag);
    }
    pending->call_hash = area->log_hash;
    pending->number = area->calls;
    pending->is_begun = false;
    pending->rc = pending->damage = 0;
    weft_list_append(&area->pending, &pending->link);
    if (area->attempted)
        adopt(area, pending);
    else if (is_first)
        advance_off_list(area);
    return WEFT_OK;
}

/* ---- calls without a schedule ---- */

static inline uint32_t looks_of_attempt(weft_shmcoll *area)
{
    bool may_wait = weft_attempts_may_wait(&area->attempts);

    if (weft_likely(!area->is_oversubscribed))
        return may_wait ? WEFT_WAIT_LOOKS : 1;
    area->yields = (weft_wait_yields){.left = may_wait ? WEFT_ATTEMPTS_YIELDS : 0};
    area->turns = may_wait ? WEFT_ATTEMPTS_YIELDS + area->ranks : 0; /* members may post one by one */
    return 1;
}

static inline int end_attempt(weft_shmcoll *area, int rc)
{
    weft_attempts_note(&area->attempts, !rc);
    if (weft_unlikely(area->is_oversubscribed) && !rc)
        weft_wait_yields_succeeded(area->worker, &area->yields);
    area->attempted = rc;
    if (!rc)
        area->awaited = 0;
    return rc;
}

int weft_shmcoll_attempt(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, uint32_t tag)
{
    log_call(area, call, tag);
    area->call_hash = area->log_hash;
    return end_attempt(area, weft_shmcoll_open_and_try(area, kind, args, looks_of_attempt(area)));
}

int weft_shmcoll_attempt_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, const weft_shmcoll_short *same,
                               weft_call call, uint32_t tag)
{
    log_call(area, call, tag);
    area->call_hash = area->log_hash;
    return end_attempt(area, weft_shmcoll_try_short(area, kind, same, args, looks_of_attempt(area)));
}

void weft_shmcoll_drop_attempt(weft_shmcoll *area)
{
    if (!area->attempted)
        return;
    if (area->attempted == WEFT_AGAIN)
        weft_shmcoll_abandon(area);
    area->attempted = 0;
    area->awaited = 0;
    leave_if_stopped(area);
}

typedef struct drain_wait {
    weft_wait wait;
    const weft_shmcoll *area;
} drain_wait;

static bool is_drained(weft_wait *wait) { return !weft_shmcoll_has_pending(weft_container(wait, drain_wait, wait)->area); }

void weft_shmcoll_drain(weft_shmcoll *area)
{
    drain_wait self = {.area = area};

    weft_wait_begin(&self.wait, area->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
    self.wait.is_over = is_drained;
    while (weft_shmcoll_has_pending(area))
        weft_wait_progress(&self.wait);
    weft_wait_end(&self.wait);
}
