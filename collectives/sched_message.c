/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_message: the messages of a schedule, see sched_internal.h.
 */
#include "collectives/sched_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/wait.h"
#include "core/worker.h"

static int reqs_grow(weft_sched *sched)
{
    uint32_t capacity = sched->req_capacity * 2;
    weft_req **more = realloc(sched->reqs == sched->few ? NULL : sched->reqs, capacity * sizeof *more);

    if (!more)
        return weft_fail(WEFT_E_NOMEM, "no memory for %u messages of a collective", capacity);
    if (sched->reqs == sched->few)
        memcpy(more, sched->few, sizeof sched->few);
    sched->reqs = more;
    sched->req_capacity = capacity;
    return WEFT_OK;
}

static enum weft_send_mode mode_of(const weft_sched *sched, const weft_step *step)
{
    if (weft_unlikely(sched->damage))
        return WEFT_SEND_TAINTED;
    if (sched->announces && step->to_count * (uint64_t)step->to_type->size > WEFT_SCHED_ANNOUNCED)
        return WEFT_SEND_SYNC;
    return WEFT_SEND_STANDARD;
}

/* Posts the message into *slot, an element of reqs. */
static int begin_message(weft_sched *sched, const weft_step *step, weft_req **slot)
{
    weft_chan *chan = sched->team->chan;
    weft_req *req = NULL;
    int rc;

    if (step->op == WEFT_STEP_SEND)
        rc = weft_isend(chan, step->peer, sched->tag, step->from, step->to_count, step->to_type, mode_of(sched, step), &req);
    else
        rc = weft_irecv(chan, step->peer, sched->tag, step->to, step->to_count, step->to_type, &req);
    if (rc)
        return rc;
    if (req->is_done) {
        rc = req->rc;
        weft_req_free(req);
        if (weft_likely(!weft_status_is_damage(rc)))
            return rc;
        sched->completion.rc = weft_status_worse(sched->completion.rc, rc); /* damage when awaited: no earlier send depends on it */
        return WEFT_OK;
    }
    req->completion = &sched->completion;
    sched->completion.left++;
    *slot = req;
    return WEFT_OK;
}

/* The element of reqs for the next message, NULL. Returns NULL: out of memory. */
static weft_req **next_slot(weft_sched *sched)
{
    if (weft_unlikely(sched->req_count == sched->req_capacity) && reqs_grow(sched))
        return NULL;
    sched->reqs[sched->req_count] = NULL;
    return &sched->reqs[sched->req_count++];
}

int weft_sched_begin_message(weft_sched *sched, const weft_step *step)
{
    weft_req **slot = next_slot(sched);

    return slot ? begin_message(sched, step, slot) : WEFT_E_NOMEM;
}

/* Keeps the error of the messages that ended. */
static void record_messages(weft_sched *sched)
{
    weft_sched_record_error(sched, sched->completion.rc);
    sched->completion.rc = 0;
}

void weft_sched_free_requests(weft_sched *sched)
{
    for (uint32_t i = 0; i < sched->req_count; i++)
        if (sched->reqs[i])
            weft_req_free(sched->reqs[i]);
    sched->message_first += sched->req_count;
    sched->req_count = 0;
    record_messages(sched);
}

/* The element of reqs of a message that may be under way; NULL: it has ended. */
static weft_req **slot_of(const weft_sched *sched, uint32_t message)
{
    uint32_t i = message - sched->message_first; /* large if it was before the last fence */

    return i < sched->req_count && sched->reqs[i] ? &sched->reqs[i] : NULL;
}

bool weft_sched_has_ended(const weft_sched *sched, uint32_t message)
{
    weft_req **slot = slot_of(sched, message);

    return !slot || (*slot)->is_done;
}

static void free_message(weft_sched *sched, weft_req **slot)
{
    weft_req_free(*slot);
    *slot = NULL;
    record_messages(sched);
}

bool weft_sched_begin_await(weft_sched *sched, uint32_t message)
{
    weft_req **slot = slot_of(sched, message);

    if (!slot || (*slot)->is_done) {
        weft_sched_end_await(sched, message);
        return false;
    }
    sched->completion.left--; /* not the last one: progress holds one */
    sched->awaited = (weft_completion){.left = 1, .open = sched->awaited.open};
    (*slot)->completion = &sched->awaited;
    return true;
}

void weft_sched_end_await(weft_sched *sched, uint32_t message)
{
    weft_req **slot = slot_of(sched, message);

    sched->completion.rc = weft_status_worse(sched->completion.rc, sched->awaited.rc);
    sched->awaited.rc = 0;
    if (slot)
        free_message(sched, slot);
    else
        record_messages(sched);
}

/* ---- performed at once: immediate and started ---- */

void weft_sched_post_deferred(weft_sched *sched)
{
    if (!sched->has_deferred)
        return;
    sched->has_deferred = false;
    if (!sched->rc)
        weft_sched_record_error(sched, begin_message(sched, &sched->deferred,
                                                         &sched->reqs[sched->deferred_message - sched->message_first]));
}

void weft_sched_defer_recv(weft_sched *sched, const weft_step *step)
{
    weft_sched_post_deferred(sched);
    if (weft_unlikely(!next_slot(sched))) {
        weft_sched_fail(sched, WEFT_E_NOMEM);
        return;
    }
    sched->deferred = *step;
    sched->deferred_message = sched->message_next;
    sched->has_deferred = true;
}

static bool has_stopped(const weft_sched *sched)
{
    return sched->rc || (sched->completion.rc && !weft_status_is_damage(sched->completion.rc));
}

typedef struct immediate_wait {
    weft_wait wait;
    const weft_sched *sched;
    const weft_req *req; /* NULL: all */
    bool is_cancelled;
} immediate_wait;

static bool has_ended(const immediate_wait *self) { return self->req ? self->req->is_done : self->sched->completion.left <= 1; }

/* Wait condition; also called by the thread that polls for this one. */
static bool immediate_is_over(weft_wait *wait)
{
    const immediate_wait *self = weft_container(wait, immediate_wait, wait);

    return has_ended(self) || (has_stopped(self->sched) && !self->is_cancelled);
}

/* Waits for one message, or all since the last fence. A stopped schedule's receives may never match, so they are cancelled before the
 * wait. */
static void immediate_wait_for(weft_sched *sched, const weft_req *req)
{
    immediate_wait self = {.sched = sched, .req = req};

    weft_wait_begin(&self.wait, sched->team->chan->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, sched->tag, 0);
    self.wait.is_over = immediate_is_over;
    while (!has_ended(&self)) {
        if (weft_unlikely(has_stopped(sched)) && !self.is_cancelled) {
            self.is_cancelled = true;
            weft_sched_cancel(sched);
            continue;
        }
        weft_wait_progress(&self.wait);
    }
    weft_wait_end(&self.wait);
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

/* Blocking receive with the request on the stack; sched->receiving lets halt() cancel it. It is unposted before return, which the compiler
 * cannot see. */
static void immediate_receive(weft_sched *sched, const weft_step *step)
{
    weft_req on_stack, *req = &on_stack;

    __asm__("" : "+r"(req));
    req->completion = NULL;
    req->worker = sched->team->chan->worker;
    req->has_rndv = false;
    req->is_posted = false;
    weft_irecv_into(sched->team->chan, step->peer, sched->tag, step->to, step->to_count, step->to_type, req);
    if (!req->is_done) {
        sched->receiving = req;
        weft_worker_poll(req->worker);
        if (!req->is_done)
            await_receive(req);
        sched->receiving = NULL;
    }
    weft_sched_record_error(sched, req->rc);
}

void weft_sched_immediate_fence(weft_sched *sched)
{
    if (sched->has_deferred) {
        sched->has_deferred = false;
        if (!sched->rc)
            immediate_receive(sched, &sched->deferred);
    }
    if (sched->completion.left > 1)
        immediate_wait_for(sched, NULL);
    if (sched->req_count || weft_unlikely(sched->completion.rc))
        weft_sched_free_requests(sched);
}

void weft_sched_immediate_await(weft_sched *sched, uint32_t message)
{
    weft_req **slot;

    if (sched->has_deferred && message == sched->deferred_message) {
        sched->has_deferred = false;
        if (!sched->rc)
            immediate_receive(sched, &sched->deferred);
    } else {
        weft_sched_post_deferred(sched);
    }
    slot = slot_of(sched, message);
    if (slot && !(*slot)->is_done)
        immediate_wait_for(sched, *slot);
    if (slot)
        free_message(sched, slot);
    else
        record_messages(sched);
}
