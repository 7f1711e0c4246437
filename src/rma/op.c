/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: see op.h. Mapped targets: direct.c; others: device.c, or outbox.c for what no device does.
 */
#include "rma/op.h"

#include <sched.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"
#include "rma/device.h"
#include "rma/direct.h"
#include "rma/message.h"
#include "rma/notify.h"
#include "rma/sync_state.h"
#include "rma/words.h"

#define IDLE_MAX 16 /* flushes in a row without an event, after which ranks that share CPUs yield */

/* A wait for the operations of this member on some targets. */
typedef struct flush {
    weft_wait wait;
    weft_window *window;
    uint32_t first, last; /* targets */
    bool is_remote;
} flush;

static bool is_target_done(const flush *self, uint32_t target)
{
    const weft_rma_peer *peer = &self->window->inbox->peers[target];
    const weft_window_target *at = &self->window->targets[target];
    if (!weft_list_is_empty(&peer->records)) { /* its answers do not come any more, if it is gone */
        weft_window_is_gone(self->window, target);
        return weft_list_is_empty(&peer->records);
    }
    return (!self->is_remote || at->performed >= peer->asked || weft_window_is_gone(self->window, target));
}

static bool is_over(weft_wait *wait)
{
    const flush *self = weft_container(wait, flush, wait);
    for (uint32_t i = self->first; i <= self->last; i++)
        if (!is_target_done(self, i))
            return false;
    return true;
}

static int take_errors(weft_window *window, uint32_t first, uint32_t last)
{
    int rc = 0;
    if (!first && last == window->size - 1)
        window->inbox->has_error = false;
    for (uint32_t i = first; i <= last; i++) {
        weft_rma_error *error = &window->inbox->peers[i].error;
        if (weft_likely(!error->rc))
            continue;
        if (!rc && error->rc == WEFT_E_KEY && weft_window_look_gone(window, i))
            rc = weft_fail(WEFT_E_PEER, "operations on target %u are lost: its process %s", i, weft_window_gone_text(window, i));
        else if (!rc)
            rc = weft_fail(error->rc, "an operation on target %u failed: %s", i, error->text ? error->text : "no memory for its text");
        free(error->text);
        *error = (weft_rma_error){0};
    }
    return rc;
}

static bool is_moved(weft_wait *wait)
{
    const flush *self = weft_container(wait, flush, wait);
    for (uint32_t i = self->first; i <= self->last; i++)
        if (!weft_rma_device_is_flushed(self->window, i, self->is_remote))
            return false;
    return true;
}

/* Completes operations by devices. Some of them may become messages meanwhile. */
static __attribute__((noinline)) void flush_devices(flush *self)
{
    weft_window *window = self->window;
    for (uint32_t i = self->first; i <= self->last && self->is_remote; i++)
        weft_rma_device_flush(window, i);
    if (is_moved(&self->wait))
        return;
    weft_wait_begin(&self->wait, window->worker, WEFT_WAIT_REASON_WINDOW,
                    self->first == self->last ? weft_chan_job_rank(window->chan, (int)self->first) : WEFT_ANY, 0, 0);
    self->wait.is_over = is_moved;
    while (!is_moved(&self->wait))
        weft_wait_progress(&self->wait);
    weft_wait_end(&self->wait);
}

/* Operations on targets that have died or left, of which it is not known whether they were performed. */
static int give_up_gone(weft_window *window, uint32_t first, uint32_t last)
{
    int rc = 0;
    for (uint32_t i = first; i <= last; i++) {
        weft_window_target *at = &window->targets[i];
        if (!weft_window_target_is_gone(at) || at->sent == at->performed)
            continue;
        window->messaged -= at->sent - at->performed;
        at->performed = at->sent;
        rc = weft_fail(WEFT_E_PEER, "operations on target %u are lost: its process %s", i, weft_window_gone_text(window, i));
    }
    return rc;
}

static __attribute__((noinline)) int flush_all(weft_window *window, int target, bool is_remote)
{
    flush self = {.window = window, .first = target < 0 ? 0 : (uint32_t)target, .last = target < 0 ? window->size - 1 : (uint32_t)target,
                  .is_remote = is_remote};
    int rc = 0;
    if (window->moving)
        flush_devices(&self);
    for (uint32_t i = self.first; i <= self.last && is_remote && !rc; i++)
        if (window->targets[i].sent != window->targets[i].performed && !weft_window_look_gone(window, i))
            rc = weft_rma_ask(window, i);
    if (rc)
        return rc;
    if (!is_over(&self.wait)) {
        weft_wait_begin(&self.wait, window->worker, WEFT_WAIT_REASON_WINDOW, weft_chan_job_rank(window->chan, target), 0, 0);
        self.wait.is_over = is_over;
        while (!is_over(&self.wait))
            weft_wait_progress(&self.wait);
        weft_wait_end(&self.wait);
    }
    weft_rma_outbox_finish(window->inbox);
    rc = take_errors(window, self.first, self.last);
    return window->messaged && !rc ? give_up_gone(window, self.first, self.last) : rc;
}

/* Has no operation of this member used a message or a device since the last flush? */
static bool is_quiet(const weft_window *window)
{
    return !window->messaged && !window->moving && !window->inbox->records_count && !window->inbox->has_error;
}

__attribute__((noinline)) void weft_rma_poll_between(weft_window *window)
{
    weft_window_inbox *inbox = window->inbox;
    inbox->idle = weft_worker_poll(window->worker) ? 0 : inbox->idle + 1;
    if (inbox->idle % IDLE_MAX || !inbox->idle || !window->worker->world->is_oversubscribed)
        return;
    weft_worker_unlock(window->worker);
    sched_yield();
    weft_worker_lock(window->worker);
}

int weft_rma_flush_local(weft_window *window, int target)
{
    if (weft_unlikely(window->inbox->is_remote))
        weft_rma_poll_between(window);
    return weft_likely(is_quiet(window)) ? 0 : flush_all(window, target, false);
}

int weft_rma_flush(weft_window *window, int target)
{
    atomic_thread_fence(memory_order_seq_cst); /* what was stored to mapped targets is visible */
    if (weft_unlikely(window->inbox->is_remote))
        weft_rma_poll_between(window);
    return weft_likely(is_quiet(window)) ? 0 : flush_all(window, target, true);
}

/* -- start -- */

/* A notification, or an accumulate behind such by a device, goes by message: operations by devices before it must be complete at the target
 * (docs/rma.md). */
static void settle_devices(weft_window *window, uint32_t target)
{
    flush self = {.window = window, .first = target, .last = target, .is_remote = true};
    if (window->moving)
        flush_devices(&self);
}

/* Accumulates by message on a mapped target (words.h) come before a notification, too. */
static int settle_messages(weft_window *window, uint32_t target)
{
    const weft_window_target *at = &window->targets[target];
    bool is_quiet = at->sent == at->performed && weft_list_is_empty(&window->inbox->peers[target].records);
    return is_quiet ? 0 : weft_rma_flush(window, (int)target);
}

/* False: it accumulates on words that the target's device alone changes, and this process does not reach them. */
static bool is_direct(weft_window *window, const weft_rma_op *op)
{
    const weft_window_target *at = &window->targets[op->target];
    return op->kind < WEFT_RMA_ACCUMULATE || !weft_rma_has_words(at, weft_type_of((void *)(uintptr_t)op->target_type->basic_handle)) ||
           weft_rma_words_reach(window, op->target);
}

static int notify_alone(weft_window *window, const weft_rma_op *op)
{
    if (!window->targets[op->target].is_mapped) {
        if (weft_rma_device_notify(window, op->target, op->notify))
            return 0;
        settle_devices(window, op->target);
        return weft_rma_send_notify(window, op->target, op->notify);
    }
    int rc = settle_messages(window, op->target);
    if (!rc)
        weft_notify_count(window, op->target, op->notify - 1);
    return rc;
}

static int start_direct(weft_window *window, const weft_rma_op *op)
{
    int rc = op->notify ? settle_messages(window, op->target) : 0;
    if (!rc)
        rc = weft_rma_direct(window, op);
    if (!rc && op->notify)
        weft_notify_count(window, op->target, op->notify - 1);
    return rc;
}

/* A notified operation, or one on a target that is not mapped, or has device words. */
static __attribute__((noinline)) int start_other(weft_window *window, const weft_rma_op *op, weft_req **req)
{
    if (!op->target_count || !op->target_type->size)
        return notify_alone(window, op);
    if (window->targets[op->target].is_mapped) {
        if (is_direct(window, op))
            return start_direct(window, op);
    } else if (weft_rma_device_start(window, op, req)) {
        return 0;
    }
    if (op->notify || (op->kind >= WEFT_RMA_ACCUMULATE && weft_rma_device_has_amos(window, op->target)))
        settle_devices(window, op->target);
    if (op->kind != WEFT_RMA_PUT && op->kind != WEFT_RMA_ACCUMULATE) /* the operation awaits an answer */
        weft_window_look_gone(window, op->target);
    return weft_rma_send(window, op, req);
}

int weft_rma_start(weft_window *window, const weft_rma_op *op, weft_req **req)
{
    if (req)
        *req = &window->worker->done_req;
    if (weft_likely(!op->notify)) {
        if (!op->target_count || !op->target_type->size)
            return 0;
        if (weft_likely(window->targets[op->target].direct == WEFT_DIRECT_ALL))
            return weft_rma_direct(window, op);
    }
    return start_other(window, op, req);
}
