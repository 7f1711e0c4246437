/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_op: an operation by an iface, in parts: of caps.rma_max bytes, of the runs of datatypes with gaps, of what the CPU copies in a
 * slice of time, or an atomic for each element (device_amo.c). Short ones pass through a slot (bounce.h), others need the origin's memory
 * registered, if the iface does.
 */
#include <stdlib.h>

#include "base/status.h"
#include "collectives/sched.h"
#include "core/worker.h"
#include "p2p/p2p.h"
#include "rma/device_state.h"
#include "rma/sync_state.h"
#include "type/pack.h"

#define PARTS_MAX 64u    /* of an operation under way at one time */
#define RUN_BYTES 4096u  /* mean run from which a part for each run costs less than packing */
#define RUNS_LOOK 16u    /* runs that are looked at to find the mean */
#define SPAN_FACTOR 4u   /* most bytes of memory with gaps that are registered for each byte of data */
#define ALONE_FACTOR 4u  /* factor on caps.rma_fragment if no other thread waits for the lock */

static weft_window *window_of(const weft_device_op *op) { return op->target->device->window; }

/* -- begin -- */

static uint64_t remote_of(const weft_device_target *target, const weft_rma_op *what)
{
    return target->device->window->targets[target->rank].base + what->offset;
}

static void begin_runs(weft_device_runs *runs, uint64_t remote, const weft_rma_op *what, uint64_t bytes)
{
    weft_runs_begin(&runs->origin, what->origin_type, what->origin, what->origin_count, 0, bytes);
    weft_runs_begin(&runs->target, what->target_type, (const void *)(uintptr_t)remote, what->target_count, 0, bytes);
    runs->origin.bytes = runs->target.bytes = 0;
}

/* The next part that is contiguous on both sides: at most min(*local_left, *remote_left). False: there is none. */
static bool next_part(weft_device_runs *runs, char **local, uint64_t *local_left, uint64_t *remote, uint64_t *remote_left)
{
    if (!*local_left && runs && weft_runs_next(&runs->origin)) {
        *local = runs->origin.at;
        *local_left = runs->origin.bytes;
    }
    if (!*remote_left && runs && weft_runs_next(&runs->target)) {
        *remote = (uintptr_t)runs->target.at;
        *remote_left = runs->target.bytes;
    }
    return *local_left && *remote_left;
}

/* Are the runs of both sides long enough? */
static bool pays(uint64_t remote, const weft_rma_op *what, uint64_t bytes)
{
    weft_device_runs runs;
    uint64_t local_left = 0, remote_left = 0, seen = 0, count = 0;
    char *local = NULL;
    begin_runs(&runs, remote, what, bytes);
    while (count < RUNS_LOOK && next_part(&runs, &local, &local_left, &remote, &remote_left)) {
        uint64_t part = local_left < remote_left ? local_left : remote_left;
        seen += part;
        count++;
        local_left -= part;
        remote_left -= part;
    }
    return seen >= count * RUN_BYTES;
}

/* Registers the origin's memory. 0; WEFT_INPROGRESS; or an error: it cannot be. */
static int register_origin(weft_device_target *target, const weft_rma_op *what, uint64_t bytes, weft_reg **reg)
{
    weft_iface *iface = target->iface;
    const weft_type *type = what->origin_type;
    int64_t span = (int64_t)(what->origin_count - 1) * type->extent;
    const char *from = what->origin;
    uint64_t length = bytes;
    if (!iface->caps.mr_local)
        return 0;
    if (!type->is_dense) {
        from += type->true_lb + (span < 0 ? span : 0);
        length = (uint64_t)(type->true_extent + (span < 0 ? -span : span));
    }
    if (length / SPAN_FACTOR > bytes)
        return WEFT_E_NOSPACE;
    return weft_reg_acquire(iface, from, length, 0, reg);
}

static void begin(weft_device_op *op, weft_device_target *target, const weft_rma_op *what, weft_req *user)
{
    op->target = target;
    op->what = *what;
    op->user = user;
    weft_type_hold(what->origin_type);
    weft_type_hold(what->target_type);
    if (what->result_type)
        weft_type_hold(what->result_type);
    op->remote = remote_of(target, what);
    op->order = ++target->begun;
    target->ops++;
    target->amos += op->amo != NULL;
    target->device->window->moving++;
    if (what->kind != WEFT_RMA_PUT)
        return;
    target->device->window->moving += target->puts == target->flushed;
    target->puts++;
}

static weft_req *request_new(weft_device_target *target)
{
    weft_req *user = weft_req_new(target->device->window->worker, WEFT_REQ_RMA);
    if (user) {
        user->rank = (int)target->rank;
        user->bytes = 0;
    }
    return user;
}

/* Registration and runs as the operation needs them. False: no device can perform it, or no memory. */
static bool prepare(weft_device_op *op, weft_device_target *target, const weft_rma_op *what)
{
    bool is_origin_dense = what->origin_type->is_dense, is_target_dense = what->target_type->is_dense;
    uint64_t remote = remote_of(target, what);
    int rc;
    if (what->kind >= WEFT_RMA_ACCUMULATE) {
        op->amo = weft_device_amo_new(target->device->window->targets[target->rank].base, what);
        return op->amo != NULL;
    }
    op->uses_slot = is_target_dense && op->bytes <= WEFT_BOUNCE_BYTES && (target->iface->caps.mr_local || !is_origin_dense) &&
                    weft_bounce_serves(&target->device->bounce, target->iface);
    if (op->uses_slot) {
        op->remote_left = op->bytes;
        return true;
    }
    if (is_origin_dense && is_target_dense) {
        op->local = (char *)what->origin;
        op->local_left = op->remote_left = op->bytes;
    } else if (!pays(remote, what, op->bytes) || !(op->runs = malloc(sizeof *op->runs))) {
        return false;
    } else {
        begin_runs(op->runs, remote, what, op->bytes);
    }
    rc = register_origin(target, what, op->bytes, &op->reg);
    op->awaits_reg = rc == WEFT_INPROGRESS;
    return rc >= 0;
}

static void on_part(weft_done *done, int rc);

weft_device_op *weft_device_op_new(weft_device_target *target, const weft_rma_op *what, weft_known_region *region, weft_req **req)
{
    weft_device_op *op = calloc(1, sizeof *op);
    weft_req *user = NULL;
    if (!op) {
        weft_known_release(region);
        return NULL;
    }
    op->region = region;
    op->done.call = on_part;
    weft_list_init(&op->link);
    weft_list_init(&op->under_way);
    op->bytes = what->target_count * (uint64_t)what->target_type->size;
    if (!prepare(op, target, what) || (req && !(user = request_new(target)))) {
        weft_reg_release(target->iface, op->reg);
        weft_known_release(region);
        free(op->runs);
        free(op->amo);
        free(op);
        return NULL;
    }
    if (req)
        *req = user;
    target->device->window->worker->awaited_regs += op->awaits_reg;
    begin(op, target, what, user);
    return op;
}

weft_device_op *weft_device_notice_new(weft_device_target *target, uint32_t value)
{
    const weft_type *bytes = weft_sched_bytes();
    const weft_window_device *device = target->device;
    const weft_rma_op what = {.kind = WEFT_RMA_PUT, .target = target->rank, .origin_type = bytes, .target_type = bytes,
                              .offset = device->window->regions ? device->keys[target->rank].root : 0};
    weft_device_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->done.call = on_part;
    op->notify = value;
    weft_list_init(&op->link);
    weft_list_init(&op->under_way);
    begin(op, target, &what, NULL);
    return op;
}

void weft_device_op_notify(weft_device_op *op, uint32_t value, weft_device_op *notice)
{
    op->notice = notice;
    op->what.notify = 0; /* if it goes by message after all */
    if (notice)
        notice->is_led = true;
    else
        op->notify = value;
}

bool weft_device_copies(weft_device_target *target, const weft_rma_op *what, weft_known_region *region)
{
    weft_iface *iface = target->iface;
    const weft_caps *caps = &iface->caps;
    uint64_t *counters = target->device->window->worker->counters;
    bool is_put = what->kind == WEFT_RMA_PUT;
    const weft_rma rma = {.local = (void *)what->origin, .remote = remote_of(target, what), .rkey = region ? &region->rkey : target->rkey,
                          .bytes = what->target_count * (uint64_t)what->target_type->size};
    if (!caps->prompt || caps->mr_local || rma.bytes > caps->rma_fragment || !what->origin_type->is_dense ||
        !what->target_type->is_dense || !weft_list_is_empty(&target->queue))
        return false;
    if (is_put ? iface->ops->put(iface, target->peer->ep, &rma) : iface->ops->get(iface, target->peer->ep, &rma))
        return false; /* which finds the error again */
    counters[is_put ? WEFT_COUNT_DEVICE_PUTS : WEFT_COUNT_DEVICE_GETS]++;
    counters[WEFT_COUNT_BYTES_CMA] += rma.bytes;
    weft_known_release(region);
    return true;
}

/* -- end -- */

/* A notice is not sent if its operation has failed. */
static void free_notice(weft_device_op *notice, int rc)
{
    notice->is_led = false;
    if (rc)
        notice->notify = 0;
}

static void keep_error(weft_device_op *op)
{
    weft_window_inbox *inbox = window_of(op)->inbox;
    weft_rma_error_set(&inbox->peers[op->target->rank].error, op->error.rc, op->error.text ? op->error.text : "no memory for its text");
    inbox->has_error = true;
}

/* Keys but those of regions are valid until the target closes the window. May run inside a poll: asks, but does not wait. */
static void explain_key(weft_device_op *op)
{
    weft_window *window = window_of(op);
    uint32_t rank = op->target->rank;
    if (op->error.rc != WEFT_E_KEY || op->region || !weft_window_has_closed(window, rank))
        return;
    free(op->error.text);
    op->error = (weft_rma_error){0};
    weft_rma_error_set(&op->error, WEFT_E_PEER,
                       weft_fail_text(weft_fail(WEFT_E_PEER, "the process of target %u %s", rank, weft_window_gone_text(window, rank))));
}

/* Nothing of it is under way: no notification waits for it, but for its place in the queue. */
static void land(weft_device_op *op)
{
    op->target->unsure -= op->is_unsure;
    op->target->fetches -= op->is_fetch_counted;
    op->is_unsure = op->is_fetch_counted = false;
    weft_list_remove(&op->under_way);
}

/* A key that was refused has served a later operation that notified. That does not happen, unless connections that broke again and again
 * were taken for a refusal. */
static bool is_out_of_order(const weft_device_op *op)
{
    return op->carried && !op->error.rc && op->region && op->region->refused && op->region->refused < op->order;
}

void weft_device_op_end(weft_device_op *op)
{
    weft_device_target *target = op->target;
    int rc;
    if (is_out_of_order(op))
        weft_rma_error_set(&op->error, WEFT_E_OTHER,
                           "its notification may have been counted before an earlier operation, in which the connection broke repeatedly");
    explain_key(op);
    rc = op->error.rc;
    land(op);
    if (op->slot) {
        if (!rc && op->what.kind == WEFT_RMA_GET && op->is_issued)
            weft_unpack(op->what.origin_type, (void *)op->what.origin, op->what.origin_count, 0, op->bytes, op->slot);
        weft_bounce_give(&target->device->bounce, op->slot);
    }
    if (op->amo)
        weft_device_amo_end(op);
    weft_list_remove(&op->link);
    window_of(op)->worker->awaited_regs -= op->awaits_reg;
    weft_reg_release(target->iface, op->reg);
    weft_known_release(op->region);
    target->ops--;
    target->amos -= op->amo != NULL;
    if (op->notice)
        free_notice(op->notice, rc);
    window_of(op)->moving--;
    if (op->user)
        weft_req_end(op->user, rc ? weft_fail(rc, "%s", op->error.text ? op->error.text : weft_fail_text(rc)) : 0);
    else if (rc)
        keep_error(op);
    weft_type_drop(op->what.origin_type);
    weft_type_drop(op->what.target_type);
    if (op->what.result_type)
        weft_type_drop(op->what.result_type);
    free(op->error.text);
    free(op->runs);
    free(op->amo);
    free(op);
}

/* -- parts -- */

/* Did it fail because its region has ended? A key that is refused has ended, or does not work. */
static bool is_refused(const weft_device_op *op)
{
    return op->region && op->error.rc == WEFT_E_KEY &&
           (op->target->iface->caps.key_bytes || !weft_known_is_current(&op->target->known, op->region));
}

static void enqueue(weft_device_op *op)
{
    weft_list_link *queue = &op->target->queue, *at = queue->next;
    while (at != queue && weft_container(at, weft_device_op, link)->order <= op->order)
        at = at->next;
    weft_list_append(at, &op->link);
}

/* All parts are done: ends it, or has it sent as messages, all of it: the target knows what is attached. Parts that were moved before
 * are moved again, by the same data. */
static void conclude(weft_device_op *op)
{
    weft_device_target *target = op->target;
    if (!is_refused(op)) {
        weft_device_op_end(op);
        return;
    }
    weft_known_forget(&target->known, op->region);
    land(op);
    if (op->carried)
        op->notify = op->carried;
    op->carried = 0;
    if (op->slot)
        weft_bounce_give(&target->device->bounce, op->slot);
    op->slot = NULL;
    free(op->error.text);
    op->error = (weft_rma_error){0};
    op->is_issued = false;
    op->is_refused = true;
    enqueue(op);
    weft_device_wait_turn(target);
}

static void on_part(weft_done *done, int rc)
{
    weft_device_op *op = weft_container(done, weft_device_op, done);
    op->parts--;
    if (rc == WEFT_E_KEY && op->region && (!op->region->refused || op->order < op->region->refused))
        op->region->refused = op->order;
    if (rc)
        weft_rma_error_set(&op->error, rc, weft_fail_text(rc));
    if (op->is_issued && !op->parts)
        conclude(op);
}

/* Most bytes of a part. */
static uint64_t part_max(const weft_device_op *op)
{
    const weft_caps *caps = &op->target->iface->caps;
    uint64_t slice = caps->rma_fragment;
    if (!weft_worker_is_shared(window_of(op)->worker))
        slice *= ALONE_FACTOR;
    return slice && slice < caps->rma_max ? slice : caps->rma_max;
}

/* One get or put. 0, AGAIN or an error: then none is under way. */
static int start_part(weft_device_op *op)
{
    weft_device_target *target = op->target;
    weft_ep *ep = target->peer->ep;
    const weft_iface_ops *ops = ep->iface->ops;
    uint64_t bytes = op->local_left < op->remote_left ? op->local_left : op->remote_left, max = part_max(op);
    weft_rma rma = {.local = op->local, .remote = op->remote, .bytes = bytes < max ? bytes : max, .done = &op->done};
    int rc;
    bool is_last = op->issued + rma.bytes == op->bytes;
    rma.rkey = op->region ? &op->region->rkey : target->rkey;
    if (is_last && op->notify) {
        rma.notify = op->notify;
        rma.notify_after_all = true;
    }
    if (target->iface->caps.mr_local && op->bytes)
        rma.mr = op->slot ? weft_bounce_mr(&target->device->bounce) : weft_reg_mr(op->reg);
    op->parts++;
    rc = op->what.kind == WEFT_RMA_GET ? ops->get(ep->iface, ep, &rma) : ops->put(ep->iface, ep, &rma);
    if (rc) {
        op->parts--;
        return rc;
    }
    op->local += rma.bytes;
    op->local_left -= rma.bytes;
    op->remote += rma.bytes;
    op->remote_left -= rma.bytes;
    op->issued += rma.bytes;
    if (is_last && op->notify) {
        op->carried = op->notify;
        op->notify = 0;
    }
    window_of(op)->worker->counters[target->iface->caps.rma_fragment ? WEFT_COUNT_BYTES_CMA : WEFT_COUNT_BYTES_RMA] += rma.bytes;
    return 0;
}

/* False: all slots are in use. */
static bool take_slot(weft_device_op *op)
{
    op->slot = weft_bounce_take(&op->target->device->bounce);
    if (!op->slot)
        return false;
    op->local = op->slot;
    op->local_left = op->bytes;
    if (op->what.kind == WEFT_RMA_PUT)
        weft_pack(op->what.origin_type, op->what.origin, op->what.origin_count, 0, op->bytes, op->slot);
    if (op->bytes > 32) /* shorter copies do not count (core/counters.def) */
        window_of(op)->worker->counters[WEFT_COUNT_BYTES_COPIED] += op->bytes;
    return true;
}

static void track(weft_device_op *op)
{
    if (!op->is_fetch_counted && !op->is_unsure)
        weft_list_append(&op->target->under_way, &op->under_way);
}

void weft_device_op_count_fetch(weft_device_op *op)
{
    if (op->what.kind == WEFT_RMA_PUT || op->is_fetch_counted)
        return;
    track(op);
    op->is_fetch_counted = true;
    op->target->fetches++;
}

static void count_unsure(weft_device_op *op)
{
    weft_device_target *target = op->target;
    if (!op->region || op->is_unsure)
        return;
    track(op);
    op->is_unsure = true;
    target->unsure_in = !target->unsure || target->unsure_in == op->region ? op->region : NULL;
    target->unsure++;
}

/* Does the iface not perform it, and is nothing of it moved? If there is no memory for results of atomics the target's accumulates go by
 * message from now on: later ones do not pass this one. */
static bool is_declined(weft_device_op *op, int rc)
{
    if (op->error.rc || op->issued || !op->bytes || rc != (op->amo ? WEFT_E_NOSPACE : WEFT_E_UNSUPPORTED))
        return false;
    op->target->can_amo = op->target->can_amo && !op->amo;
    return true;
}

/* A notice that has not been sent. */
static bool is_notice(const weft_device_op *op) { return !op->bytes && op->notify; }

static bool has_part(weft_device_op *op)
{
    if (op->amo)
        return op->issued < op->bytes;
    return next_part(op->runs, &op->local, &op->local_left, &op->remote, &op->remote_left) || is_notice(op);
}

int weft_device_op_issue(weft_device_op *op)
{
    bool is_slow = op->target->iface->caps.rma_fragment;
    int rc = 0;
    if (op->uses_slot && !op->slot && !take_slot(op))
        return WEFT_AGAIN;
    if (op->amo && !op->target->can_amo && !op->issued)
        return WEFT_E_UNSUPPORTED;
    if (op->amo && !weft_device_amo_reserve(op))
        return WEFT_AGAIN;
    count_unsure(op);
    op->parts++; /* keeps it while its parts end */
    if (op->region && !weft_known_is_current(&op->target->known, op->region))
        weft_rma_error_set(&op->error, WEFT_E_KEY, "its region was detached");
    while (!rc && !op->error.rc && has_part(op)) {
        rc = op->parts > PARTS_MAX ? WEFT_AGAIN : op->amo ? weft_device_amo_start(op) : start_part(op);
        if (!rc && is_slow && op->issued < op->bytes)
            rc = WEFT_AGAIN; /* other work comes first */
    }
    op->parts--;
    if (!op->error.rc && rc > 0)
        return WEFT_AGAIN;
    if (is_declined(op, rc))
        return WEFT_E_UNSUPPORTED;
    if (rc < 0)
        weft_rma_error_set(&op->error, rc, weft_fail_text(rc));
    op->is_issued = true;
    weft_list_remove(&op->link);
    if (!op->parts)
        conclude(op);
    return 0;
}

/* -- by message -- */

static void on_message(weft_completion *completion)
{
    weft_device_op *op = weft_container(completion, weft_device_op, completion);
    weft_list_append(&op->target->device->ended, &op->link);
    weft_device_link(op->target->device);
}

static bool is_fetching(const weft_device_op *op) { return op->what.kind != WEFT_RMA_PUT && op->what.kind != WEFT_RMA_ACCUMULATE; }

static bool leave_notice(weft_device_op *op)
{
    weft_device_op *notice = weft_device_notice_new(op->target, op->notify);
    if (!notice)
        return false;
    op->notify = 0;
    weft_device_op_notify(op, 0, notice);
    notice->order = op->order;
    enqueue(notice);
    return true;
}

void weft_device_op_send(weft_device_op *op)
{
    weft_window *window = window_of(op);
    weft_req *message = NULL;
    int rc;
    if (op->notify && !leave_notice(op)) {
        weft_rma_error_set(&op->error, WEFT_E_NOMEM, "no memory for a notification");
        weft_device_op_end(op);
        return;
    }
    if (op->amo)
        weft_device_amo_drop(op);
    /* what fetches stays under way until its answer has come: notifications behind it wait */
    rc = weft_rma_send(window, &op->what, op->user || is_fetching(op) ? &message : NULL);
    op->target->sent = window->targets[op->target->rank].sent;
    weft_list_remove(&op->link);
    if (!rc && message && message != &window->worker->done_req && !message->is_done) {
        op->message = message;
        op->completion = (weft_completion){.left = 1, .open = on_message};
        message->completion = &op->completion;
        return;
    }
    if (rc)
        weft_rma_error_set(&op->error, rc, weft_fail_text(rc));
    weft_device_op_end(op);
}
