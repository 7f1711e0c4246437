/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: see device.h. A target has a queue of operations that are not all issued; they are issued in order, but for those that await a
 * registration. A flush follows them. Progress continues what an iface did not take, inside of any poll of the worker.
 */
#include "rma/device.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/wait.h"
#include "core/worker.h"
#include "rma/device_state.h"
#include "rma/keys.h"
#include "rma/notify.h"
#include "rma/regions.h"
#include "rma/sync_state.h"
#include "rma/words.h"

#define OPS_MANY 64 /* under way to a target, from which each further one polls first */

void weft_device_link(weft_window_device *device)
{
    if (weft_list_is_empty(&device->link))
        weft_list_append(&device->window->worker->devices, &device->link);
}

void weft_device_wait_turn(weft_device_target *target)
{
    if (weft_list_is_empty(&target->link))
        weft_list_append(&target->device->waiting, &target->link);
    weft_device_link(target->device);
}

/* -- progress -- */

/* 0; AGAIN: the registration is not made yet; UNSUPPORTED: none will be, or the region has ended. */
static int settle(weft_device_op *op)
{
    int rc = op->awaits_reg ? weft_reg_settle(op->target->iface, op->reg) : 0;
    if (rc == WEFT_INPROGRESS)
        return WEFT_AGAIN;
    op->target->device->window->worker->awaited_regs -= op->awaits_reg;
    op->awaits_reg = false;
    return rc || op->is_refused ? WEFT_E_UNSUPPORTED : 0;
}

/* Is a get or accumulate before it under way, or an operation that may turn out to be refused, and be sent again behind it? Those in the
 * same region cannot be refused without this one, too: they have the same key. Later ones, begun before this one came back to the queue,
 * wait behind it and do not count. */
static bool follows_unsettled(const weft_device_op *op)
{
    const weft_device_target *target = op->target;
    if (!target->fetches && (!target->unsure || (op->region && target->unsure_in == op->region)))
        return false;
    for (const weft_list_link *link = target->under_way.next; link != &target->under_way; link = link->next) {
        const weft_device_op *other = weft_container(link, weft_device_op, under_way);
        if (other->order < op->order && (other->is_fetch_counted || other->region != op->region))
            return true;
    }
    return false;
}

/* Must a notification wait for what is before it? Operations by messages are asked for. */
static bool is_held(weft_device_op *op)
{
    weft_device_target *target = op->target;
    weft_window *window = target->device->window;
    int rc = 0;
    if (target->queue.next != &op->link || op->is_led || follows_unsettled(op))
        return true;
    if (window->targets[target->rank].performed >= target->sent)
        return false;
    if (weft_window_target_is_gone(&window->targets[target->rank])) /* it performs nothing more */
        rc = weft_fail(WEFT_E_PEER, "the process of target %u %s", target->rank, weft_window_gone_text(window, target->rank));
    else
        rc = weft_rma_ask(window, target->rank);
    if (rc)
        weft_rma_error_set(&op->error, rc, weft_fail_text(rc)); /* which ends it */
    return !rc;
}

/* Calls weft_known_acquire. Of a region that this member has found in the target's table the target learns by a note FOUND, once. */
static weft_known_region *acquire(weft_device_target *target, const weft_rma_op *what)
{
    weft_known_region *region = weft_known_acquire(&target->known, what);
    if (weft_unlikely(region && region->is_untold))
        weft_device_tell_found(target, region);
    return region;
}

/* Finds the region of the first operation in the queue that awaits it. False: not yet. If there is none it is to be sent as a message. */
static bool locate(weft_device_op *op, int *events)
{
    weft_device_target *target = op->target;
    weft_device_lookup *lookup = target->lookup;
    if (!op->awaits_region)
        return true;
    if (!lookup->op)
        op->region = acquire(target, &op->what);
    if (!op->region && (lookup->op || weft_known_misses(&target->known, &op->what))) {
        int rc = weft_device_look_up(op);
        *events += lookup->is_repeated;
        if (rc == WEFT_AGAIN)
            return false;
        op->region = rc ? NULL : acquire(target, &op->what);
    }
    op->awaits_region = false;
    op->is_refused = !op->region;
    return true;
}

/* Issues what the iface takes. Returns the number of events. */
static int issue_all(weft_device_target *target)
{
    weft_list_link *link = target->queue.next;
    int n = 0;
    while (link != &target->queue) {
        weft_device_op *op = weft_container(link, weft_device_op, link);
        uint64_t issued = op->issued;
        bool awaits_reg = op->awaits_reg;
        int rc;
        if (!locate(op, &n) || (op->notify && !op->is_refused && is_held(op)))
            return n;
        rc = settle(op);
        link = link->next;
        if (rc == WEFT_AGAIN)
            continue;
        weft_device_op_count_fetch(op);
        if (!rc)
            rc = weft_device_op_issue(op);
        if (rc == WEFT_AGAIN)
            return n + (op->issued > issued || awaits_reg);
        if (rc) {
            weft_list_link *before = op->link.prev;
            weft_device_op_send(op);
            link = before->next; /* a notice may have taken its place */
        }
        n++;
    }
    return n;
}

/* Starts the flush that is asked for, once all operations are issued. */
static int flush(weft_device_target *target)
{
    weft_ep *ep = target->peer->ep;
    int rc;
    if (target->is_flushing || target->asked <= target->flushed || !weft_list_is_empty(&target->queue))
        return 0;
    target->is_flushing = true;
    target->flushing = target->puts;
    rc = ep->iface->ops->flush(ep->iface, ep, true, &target->flushed_call);
    if (rc > 0)
        target->is_flushing = false;
    else if (rc < 0)
        target->flushed_call.call(&target->flushed_call, rc);
    return rc <= 0;
}

static int advance(weft_device_target *target)
{
    int n = issue_all(target);
    n += flush(target);
    if (!weft_list_is_empty(&target->queue) || (target->asked > target->flushed && !target->is_flushing))
        weft_device_wait_turn(target);
    else
        weft_list_remove(&target->link);
    return n;
}

static int end_messages(weft_window_device *device)
{
    weft_list_link *link;
    int n = 0;
    while ((link = weft_list_take(&device->ended))) {
        weft_device_op *op = weft_container(link, weft_device_op, link);
        int rc = op->message->rc;
        if (rc)
            weft_rma_error_set(&op->error, rc, weft_fail_text(rc));
        op->message->completion = NULL;
        weft_req_free(op->message);
        weft_device_op_end(op);
        n++;
    }
    return n;
}

static int progress(weft_window_device *device)
{
    weft_list_link turn, *link;
    int n = end_messages(device);
    weft_list_init(&turn);
    weft_list_splice(&turn, &device->waiting);
    while ((link = weft_list_take(&turn)))
        n += advance(weft_container(link, weft_device_target, link));
    return n;
}

static int progress_devices(weft_worker *worker)
{
    weft_list_link turn, *link;
    int n = 0;
    weft_list_init(&turn);
    weft_list_splice(&turn, &worker->devices);
    while ((link = weft_list_take(&turn))) {
        weft_window_device *device = weft_container(link, weft_window_device, link);
        n += progress(device);
        if (!weft_list_is_empty(&device->waiting) || !weft_list_is_empty(&device->ended))
            weft_device_link(device);
    }
    return n;
}

/* -- operations -- */

/* May operations by messages be under way, as far as is known? */
static bool has_messages(const weft_window *window, uint32_t rank)
{
    const weft_window_target *at = &window->targets[rank];
    return at->sent != at->performed || !weft_list_is_empty(&window->inbox->peers[rank].records);
}

/* Value by which a device notifies; 0: the notification goes by message, as operations before it have. */
static uint32_t value_of(const weft_device_target *target, uint32_t notify)
{
    const weft_window *window = target->device->window;
    if (!target->can_put || !target->iface->caps.notify_after_all || (target->iface->caps.key_bytes && !target->rkey->length) ||
        has_messages(window, target->rank))
        return 0;
    return weft_notify_put_value(window, target->rank, notify - 1);
}

static enum weft_counter count_of(enum weft_rma_kind kind)
{
    return kind == WEFT_RMA_PUT ? WEFT_COUNT_DEVICE_PUTS : kind == WEFT_RMA_GET ? WEFT_COUNT_DEVICE_GETS : WEFT_COUNT_DEVICE_ATOMICS;
}

static bool start(weft_device_target *target, const weft_rma_op *what, weft_known_region *region, uint32_t value, weft_req **req)
{
    bool is_put = what->kind == WEFT_RMA_PUT;
    weft_device_op *op = weft_device_op_new(target, what, region, req), *notice = NULL;
    if (!op)
        return false;
    op->awaits_region = target->lookup && !region;
    if (value && (!is_put || op->awaits_reg) && !(notice = weft_device_notice_new(target, value)))
        weft_rma_error_set(&op->error, WEFT_E_NOMEM, "no memory for its notification"); /* ends it */
    if (value)
        weft_device_op_notify(op, value, notice);
    target->device->window->worker->counters[count_of(what->kind)]++;
    weft_list_append(&target->queue, &op->link);
    if (notice)
        weft_list_append(&target->queue, &notice->link);
    advance(target);
    return true;
}

/* Does the target's device perform such an operation? */
static bool performs(const weft_device_target *target, const weft_rma_op *what)
{
    if (what->kind == WEFT_RMA_PUT)
        return target->can_put;
    if (what->kind == WEFT_RMA_GET)
        return target->can_get;
    return target->can_amo && weft_device_amo_fits(target->device->window->targets[target->rank].base, what);
}

/* The same on a dynamic window. The operation waits in the queue until its region is found, if the target's table can be read. */
static bool start_in_region(weft_device_target *target, const weft_rma_op *what, uint32_t value, weft_req **req)
{
    weft_known_region *region = acquire(target, what);
    if (!region && (!target->lookup || !weft_known_misses(&target->known, what)))
        return false;
    if (region && !value && weft_device_copies(target, what, region))
        return true;
    return start(target, what, region, value, req);
}

/* Else a message tells why it is not. */
static inline bool is_there(const weft_window_target *at)
{
    return at->device->peer->state == WEFT_PEER_ALIVE && !weft_window_target_is_gone(at);
}

bool weft_rma_device_start(weft_window *window, const weft_rma_op *what, weft_req **req)
{
    weft_device_target *target = weft_device_target_of(window, what->target);
    uint32_t value = 0;
    if (!target)
        return false;
    if (target->ops >= OPS_MANY)
        weft_worker_poll(window->worker);
    if (!performs(target, what) || !is_there(&window->targets[what->target]))
        return false;
    if (what->notify && !(value = value_of(target, what->notify)))
        return false;
    if (what->kind >= WEFT_RMA_ACCUMULATE && has_messages(window, what->target))
        return false; /* an earlier accumulate may be among them: this one stays behind it */
    if (window->regions)
        return start_in_region(target, what, value, req);
    if (!value && weft_device_copies(target, what, NULL))
        return true;
    return start(target, what, NULL, value, req);
}

bool weft_rma_device_notify(weft_window *window, uint32_t rank, uint32_t notify)
{
    weft_device_target *target = weft_device_target_of(window, rank);
    uint32_t value = target && is_there(&window->targets[rank]) ? value_of(target, notify) : 0;
    weft_device_op *notice = value ? weft_device_notice_new(target, value) : NULL;
    if (!notice)
        return false;
    weft_list_append(&target->queue, &notice->link);
    advance(target);
    return true;
}

bool weft_rma_device_has_amos(const weft_window *window, uint32_t rank)
{
    const weft_device_target *target = window->targets[rank].device;
    return target && target->amos;
}

/* -- regions of dynamic windows -- */

bool weft_rma_device_asks(weft_window *window, const weft_rma_op *what)
{
    weft_device_target *target = window->targets[what->target].device;
    return window->regions && target && performs(target, what) && weft_known_ask(&target->known, what);
}

void weft_rma_device_on_note(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    weft_device_target *target = from < window->size ? window->targets[from].device : NULL;
    if (target)
        weft_known_on_note(&target->known, body, bytes);
}

/* -- flush -- */

void weft_rma_device_flush(weft_window *window, uint32_t rank)
{
    weft_device_target *target = window->targets[rank].device;
    if (!target || target->flushed == target->puts)
        return;
    target->asked = target->puts;
    advance(target);
}

bool weft_rma_device_is_flushed(const weft_window *window, uint32_t rank, bool is_remote)
{
    const weft_device_target *target = window->targets[rank].device;
    return !target || (!target->ops && (!is_remote || target->flushed >= target->asked));
}

/* -- open, close -- */

int weft_window_device_open(weft_window *window, bool wants_words)
{
    weft_window_device *device = calloc(1, sizeof *device);
    window->device = device;
    if (!device || !(device->keys = calloc(window->size, sizeof *device->keys)))
        return weft_fail(WEFT_E_NOMEM, "no memory for the keys of %u members of a window", window->size);
    device->window = window;
    device->wants_words = wants_words;
    weft_list_init(&device->link);
    weft_list_init(&device->waiting);
    weft_list_init(&device->ended);
    window->worker->progress_devices = progress_devices;
    return 0;
}

/* An erroneous program has closed the window with operations under way: devices may use memory until these end. */
static void drain(weft_window *window)
{
    weft_wait wait;
    weft_wait_begin(&wait, window->worker, WEFT_WAIT_REASON_WINDOW, WEFT_ANY, 0, 0);
    for (uint32_t i = 0; i < window->size; i++)
        while (!weft_rma_device_is_flushed(window, i, true))
            weft_wait_progress(&wait);
    weft_wait_end(&wait);
}

static void target_free(weft_device_target *target)
{
    if (!target)
        return;
    weft_known_close(&target->known);
    free(target->lookup);
    free(target);
}

void weft_window_device_close(weft_window *window)
{
    weft_window_device *device = window->device;
    if (!device)
        return;
    if (device->keys) {
        drain(window);
        weft_list_remove(&device->link);
        if (window->regions)
            weft_rma_regions_unregister(window);
        weft_rma_words_close(window);
        weft_window_key_end(window);
        weft_bounce_close(&device->bounce);
    }
    for (uint32_t i = 0; i < window->size; i++)
        target_free(window->targets[i].device);
    free(device->keys);
    free(device);
    window->device = NULL;
}
