/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inbox: see inbox.h.
 * Invariant: the HEADs of an origin are handled in their order, and none while its accumulate waits for DATA; so accumulates of an origin
 * are performed in their order (MPI 5.0 12.7.2), and the count of operations performed is that of a prefix.
 */
#include "rma/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "collectives/sched.h"
#include "core/wait.h"
#include "core/worker.h"
#include "p2p/p2p.h"
#include "rma/job.h"
#include "rma/message.h"
#include "rma/notice.h"
#include "rma/regions.h"
#include "rma/sync_state.h"
#include "rma/words.h"
#include "type/pack.h"
#include "type/wire.h"

#define BUDGET 16   /* HEADs of an origin per poll */
#define JOBS_MAX 64 /* of an origin at one time: bounds temporary memory by JOBS_MAX * WEFT_RMA_PIECE */

static void handle(weft_window_inbox *inbox, uint32_t from, const char *message, uint64_t bytes);

void weft_rma_error_set(weft_rma_error *error, int rc, const char *text)
{
    if (error->rc)
        return;
    error->rc = rc;
    free(error->text);
    error->text = strdup(text); /* NULL: a general text serves */
}

void weft_rma_inbox_link(weft_window_inbox *inbox)
{
    if (inbox->is_linked || !inbox->window)
        return;
    inbox->is_linked = true;
    weft_list_append(&inbox->window->worker->inboxes, &inbox->link);
}

static void make_ready(weft_window_inbox *inbox, uint32_t from)
{
    weft_rma_peer *peer = &inbox->peers[from];
    if (!peer->is_ready) {
        peer->is_ready = true;
        weft_list_append(&inbox->ready, &peer->ready);
    }
    weft_rma_inbox_link(inbox);
}

/* Called inside of an iface's poll: only takes note. A sender that waits for credit may have HEADs among its messages. */
static void on_unexpected(weft_chan *chan, uint32_t from, int32_t tag)
{
    const weft_window *window = chan->owner;
    (void)tag;
    make_ready(window->inbox, from);
}

/* -- answers -- */

static uint64_t performed_of(const weft_rma_peer *peer)
{
    uint64_t received =
        weft_list_is_empty(&peer->puts) ? peer->handled : weft_container(peer->puts.next, weft_rma_job, order)->sequence - 1;
    return weft_rma_notice_counted(peer, received);
}

static void tell(weft_window_inbox *inbox, uint32_t to, weft_rma_note *note, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length > sizeof note->text - 1)
        length = sizeof note->text - 1;
    if (length)
        memcpy(note->text, text, length);
    note->text[length] = 0;
    weft_chan_notify(inbox->window->chan, to, note, (uint32_t)(offsetof(weft_rma_note, text) + length + 1));
}

static void answer_flush(weft_window_inbox *inbox, uint32_t from)
{
    weft_rma_peer *peer = &inbox->peers[from];
    weft_rma_note note = {.kind = WEFT_RMA_ACK, .performed = performed_of(peer), .rc = peer->failed.rc};
    if (!peer->flush || note.performed < peer->flush)
        return;
    peer->flush = peer->flush_last > note.performed ? peer->flush_last : 0;
    tell(inbox, from, &note, peer->failed.text);
    free(peer->failed.text);
    peer->failed = (weft_rma_error){0};
}

static void on_flush(weft_window_inbox *inbox, uint32_t from, uint64_t count)
{
    weft_rma_peer *peer = &inbox->peers[from];
    peer->flush_last = count;
    if (!peer->flush)
        peer->flush = count;
    answer_flush(inbox, from);
}

/* -- operations -- */

static bool is_answered(const weft_rma_head *head) { return head->kind != WEFT_RMA_PUT && head->kind != WEFT_RMA_ACCUMULATE; }

static const weft_type *type_of(const weft_rma_peer *peer, const weft_rma_head *head)
{
    if (head->slot == WEFT_RMA_PREDEFINED)
        return weft_type_of((void *)(uintptr_t)head->type);
    return peer->types ? peer->types[head->slot % WEFT_RMA_SLOTS] : NULL;
}

/* The place of an operation; NULL: it is outside of the window's memory, and the error text is set. */
static char *place_of(const weft_window *window, const weft_rma_head *head, const weft_type *type)
{
    const weft_window_target *own = &window->targets[window->rank];
    uint64_t from, bytes;
    if (!weft_rma_span(head->offset, type, head->count, &from, &bytes)) {
        weft_fail(WEFT_E_RMA_RANGE, "%llu elements are more than the memory of member %u", (unsigned long long)head->count, window->rank);
        return NULL;
    }
    if (window->regions ? weft_rma_is_attached(window, from, bytes) : from <= own->bytes && bytes <= own->bytes - from)
        return (char *)((uintptr_t)own->mapped + head->offset);
    if (window->regions)
        weft_fail(WEFT_E_RMA_RANGE, "%llu bytes at address 0x%llx of member %u are not attached to the window",
                  (unsigned long long)bytes, (unsigned long long)from, window->rank);
    else
        weft_fail(WEFT_E_RMA_RANGE, "%llu bytes at offset %llu are outside of the %llu bytes of member %u", (unsigned long long)bytes,
                  (unsigned long long)from, (unsigned long long)own->bytes, window->rank);
    return NULL;
}

/* Reports the error of an operation to the origin; what it would fetch has no bytes. reply: its job; NULL: none is made yet. */
static void fail(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, weft_rma_job *reply, int rc)
{
    weft_rma_peer *peer = &inbox->peers[from];
    const char *text = weft_fail_text(rc);
    if (is_answered(head)) {
        weft_rma_note note = {.kind = WEFT_RMA_FAILED, .number = head->number, .rc = rc};
        tell(inbox, from, &note, text);
        if (reply || (reply = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_REPLY, head, 0)))
            weft_rma_job_reply(reply, NULL, 0, weft_sched_bytes());
    } else {
        weft_rma_error_set(&peer->failed, rc, text);
        peer->handled++;
    }
}

/* Refuses an operation, and receives its data without bytes. */
static void refuse(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head)
{
    weft_rma_job *at;
    fail(inbox, from, head, NULL, WEFT_E_RMA_RANGE);
    if (head->has_data && (at = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_REPLY, head, 0))) /* ends truncated */
        weft_rma_job_receive(at, NULL, 0, weft_sched_bytes());
}

/* A notification of a job. False: out of memory, and the job was aborted. */
static bool notify_later(weft_rma_job *self, uint64_t sequence)
{
    weft_rma_peer *peer = &self->inbox->peers[self->from];
    if (weft_rma_notice_begin(self->inbox->window, peer, self->head.notify, sequence, &self->notice))
        return true;
    weft_rma_abort_job(self->inbox, self->from);
    return false;
}

/* The same of an operation without REPLY that is performed. */
static void notify(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head)
{
    weft_rma_peer *peer = &inbox->peers[from];
    if (!weft_rma_notice_now(inbox->window, peer, head->notify, peer->handled))
        weft_rma_abort_job(inbox, from);
}

static void put(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const weft_type *type, char *at, const char *data)
{
    weft_rma_peer *peer = &inbox->peers[from];
    weft_rma_job *receive;
    peer->handled++;
    if (!head->has_data) {
        weft_unpack(type, at, head->count, 0, head->bytes, data);
        notify(inbox, from, head);
        return;
    }
    receive = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_PUT, head, 0);
    if (!receive || !notify_later(receive, peer->handled))
        return;
    receive->sequence = peer->handled;
    weft_list_append(&peer->puts, &receive->order);
    weft_rma_job_hold(receive, type);
    weft_rma_job_receive(receive, at, head->count, type);
}

static void get(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const weft_type *type, const char *at)
{
    weft_rma_job *reply = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_REPLY, head, 0);
    if (!reply || !notify_later(reply, 0))
        return;
    weft_rma_job_hold(reply, type);
    weft_rma_job_reply(reply, at, head->count, type);
}

static void compare_and_swap(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const weft_type *type, char *at,
                             const char *data)
{
    weft_rma_job *reply = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_REPLY, head, head->bytes);
    int rc;
    if (!reply)
        return;
    rc = weft_rma_swap_at(inbox->window, inbox->window->rank, type, at, data, data + head->bytes, reply->temporary);
    if (rc)
        fail(inbox, from, head, reply, rc);
    else
        weft_rma_job_reply(reply, reply->temporary, head->bytes, weft_sched_bytes());
}

/* data: the packed operand; NULL: MPI_NO_OP. */
static void accumulate(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const weft_type *type, char *at,
                       const void *data)
{
    weft_rma_update update = {.op = weft_op_of((void *)(uintptr_t)head->op), .basic = weft_type_of((void *)(uintptr_t)head->basic),
                              .at = at, .target_type = type, .count = head->count, .skip = head->skip, .bytes = head->bytes,
                              .operand = data};
    weft_rma_job *reply = NULL;
    int rc;
    if (head->kind == WEFT_RMA_GET_ACCUMULATE) {
        reply = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_REPLY, head, head->bytes);
        if (!reply)
            return;
        update.result = reply->temporary;
    }
    rc = weft_rma_accumulate_at(inbox->window, inbox->window->rank, &update);
    if (rc)
        fail(inbox, from, head, reply, rc);
    else if (!reply)
        inbox->peers[from].handled++;
    else
        weft_rma_job_reply(reply, reply->temporary, head->bytes, weft_sched_bytes());
}

/* The operand is on its way: the origin's next HEADs wait for it. */
static void accumulate_later(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const weft_type *type, char *at)
{
    weft_rma_job *receive = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_ACCUMULATE, head, head->bytes);
    if (!receive)
        return;
    inbox->peers[from].is_busy = true;
    receive->at = at;
    weft_rma_job_hold(receive, type);
    weft_rma_job_receive(receive, receive->temporary, head->bytes, weft_sched_bytes());
}

static void keep_type(weft_window_inbox *inbox, uint32_t from, uint8_t slot, const void *wire, uint64_t bytes)
{
    weft_rma_peer *peer = &inbox->peers[from];
    weft_type *made;
    slot %= WEFT_RMA_SLOTS;
    if (!peer->types)
        peer->types = calloc(WEFT_RMA_SLOTS, sizeof(weft_type *));
    if (!peer->types || weft_type_decode(wire, bytes, &made)) {
        weft_rma_abort_job(inbox, from);
        return;
    }
    if (peer->types[slot])
        weft_type_drop(peer->types[slot]);
    peer->types[slot] = made;
}

static void on_type(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const char *data, uint64_t behind)
{
    weft_rma_job *receive;
    if (!head->has_data) {
        keep_type(inbox, from, head->slot, data, head->bytes < behind ? head->bytes : behind);
        return;
    }
    receive = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_TYPE, head, head->bytes);
    if (!receive)
        return;
    inbox->peers[from].is_busy = true;
    weft_rma_job_receive(receive, receive->temporary, head->bytes, weft_sched_bytes());
}

/* behind: bytes at data. */
static void operate(weft_window_inbox *inbox, uint32_t from, const weft_rma_head *head, const char *data, uint64_t behind)
{
    const weft_type *type = type_of(&inbox->peers[from], head);
    char *at = NULL;
    if (head->asks)
        weft_rma_regions_answer(inbox->window, from, head, type);
    if (type && weft_rma_head_is_sound(head, type, behind))
        at = place_of(inbox->window, head, type);
    else
        weft_fail(WEFT_E_RMA_RANGE, "an operation was damaged on its way to member %u: WEFT_CHECKSUM=yes finds the message",
                  inbox->window->rank);
    if (!at) {
        refuse(inbox, from, head);
        return;
    }
    switch (head->kind) {
    case WEFT_RMA_PUT: put(inbox, from, head, type, at, data); break;
    case WEFT_RMA_GET: get(inbox, from, head, type, at); break;
    case WEFT_RMA_COMPARE_AND_SWAP: compare_and_swap(inbox, from, head, type, at, data); break;
    default:
        if (head->has_data)
            accumulate_later(inbox, from, head, type, at);
        else
            accumulate(inbox, from, head, type, at, head->op == WEFT_RMA_NO_OP ? NULL : data);
    }
}

static void handle(weft_window_inbox *inbox, uint32_t from, const char *message, uint64_t bytes)
{
    const char *data = message + sizeof(weft_rma_head);
    weft_rma_head head;
    if (bytes < sizeof head)
        return;
    memcpy(&head, message, sizeof head);
    switch (head.kind) {
    case WEFT_RMA_FLUSH: on_flush(inbox, from, head.offset); break;
    case WEFT_RMA_TYPE: on_type(inbox, from, &head, data, bytes - sizeof head); break;
    case WEFT_RMA_NOTIFY:
        inbox->peers[from].handled++;
        notify(inbox, from, &head);
        break;
    default: operate(inbox, from, &head, data, bytes - sizeof head);
    }
}

/* -- progress -- */

static void job_finish(weft_rma_job *self)
{
    weft_window_inbox *inbox = self->inbox;
    uint32_t from = self->from;
    weft_rma_peer *peer = &inbox->peers[from];
    int rc = self->req->rc;
    if (rc && self->kind != WEFT_RMA_JOB_REPLY) /* damaged or cut off */
        weft_rma_error_set(&peer->failed, rc, weft_fail_text(rc));
    weft_rma_notice_end(inbox->window, peer, self->notice, !rc);
    if (self->kind == WEFT_RMA_JOB_PUT)
        weft_list_remove(&self->order);
    else if (self->kind != WEFT_RMA_JOB_REPLY)
        peer->is_busy = false;
    if (self->kind == WEFT_RMA_JOB_HEAD)
        handle(inbox, from, self->temporary, self->req->recv_info.bytes);
    else if (self->kind == WEFT_RMA_JOB_TYPE)
        keep_type(inbox, from, self->head.slot, self->temporary, self->req->recv_info.bytes);
    else if (self->kind == WEFT_RMA_JOB_ACCUMULATE)
        accumulate(inbox, from, &self->head, self->type, self->at, self->temporary);
    weft_rma_job_free(self);
    answer_flush(inbox, from);
    make_ready(inbox, from);
}

/* Takes and handles the origin's next HEAD. False: none can be taken now. */
static bool take(weft_window_inbox *inbox, uint32_t from)
{
    weft_chan *chan = inbox->window->chan;
    weft_rma_peer *peer = &inbox->peers[from];
    weft_unexpected *message;
    weft_recv_info info;
    weft_rma_job *receive;
    if (peer->is_busy || peer->jobs >= JOBS_MAX)
        return false;
    message = weft_mprobe_now(chan, (int)from, WEFT_RMA_TAG_HEAD, &info);
    if (!message)
        return false;
    receive = weft_rma_job_new(inbox, from, WEFT_RMA_JOB_HEAD, NULL, info.bytes);
    if (!receive)
        return false;
    peer->is_busy = true;
    weft_mrecv_into(chan, message, receive->temporary, info.bytes, weft_sched_bytes(), receive->req);
    return true;
}

static void finish_jobs(weft_window_inbox *inbox)
{
    while (!weft_list_is_empty(&inbox->jobs)) {
        weft_rma_job *self = weft_container(inbox->jobs.next, weft_rma_job, link);
        weft_list_remove(&self->link);
        job_finish(self);
    }
}

/* One turn: ends what has ended, and handles some HEADs of each origin. */
static int progress(weft_window_inbox *inbox)
{
    int n = 0;
    uint32_t turns = 0;
    weft_list_link *link;
    weft_rma_outbox_finish(inbox);
    finish_jobs(inbox);
    while (turns++ < inbox->window->size && (link = weft_list_take(&inbox->ready))) {
        weft_rma_peer *peer = weft_container(link, weft_rma_peer, ready);
        uint32_t from = (uint32_t)(peer - inbox->peers), taken = 0;
        peer->is_ready = false;
        while (taken < BUDGET && take(inbox, from)) {
            taken++;
            finish_jobs(inbox);
        }
        n += (int)taken;
        if (taken == BUDGET)
            make_ready(inbox, from);
    }
    weft_rma_outbox_finish(inbox);
    return n;
}

static int progress_inboxes(weft_worker *worker)
{
    weft_list_link turn, *link;
    int n = 0;
    weft_list_init(&turn);
    weft_list_splice(&turn, &worker->inboxes);
    while ((link = weft_list_take(&turn))) {
        weft_window_inbox *inbox = weft_container(link, weft_window_inbox, link);
        inbox->is_linked = false;
        n += progress(inbox);
        if (!weft_list_is_empty(&inbox->ready) || !weft_list_is_empty(&inbox->jobs))
            weft_rma_inbox_link(inbox);
    }
    return n + 1;
}

/* -- open, close -- */

/* Is every other member's memory mapped here, and this member's there? */
static bool is_local(const weft_window *window)
{
    for (uint32_t i = 0; i < window->size; i++)
        if (!window->targets[i].is_mapped)
            return false;
    return true;
}

int weft_rma_inbox_open(weft_window *window)
{
    weft_window_inbox *inbox = calloc(1, sizeof *inbox + window->size * sizeof *inbox->peers);
    char *buffer = inbox ? malloc(sizeof(weft_rma_head) + WEFT_RMA_INLINE) : NULL;
    if (!buffer) {
        free(inbox);
        return weft_fail(WEFT_E_NOMEM, "no memory for a window of %u members", window->size);
    }
    inbox->window = window;
    inbox->out = buffer;
    inbox->size = window->size;
    weft_list_init(&inbox->ready);
    weft_list_init(&inbox->open);
    weft_list_init(&inbox->jobs);
    weft_list_init(&inbox->records);
    for (uint32_t i = 0; i < window->size; i++) {
        weft_list_init(&inbox->peers[i].puts);
        weft_list_init(&inbox->peers[i].notices);
        weft_list_init(&inbox->peers[i].records);
    }
    window->inbox = inbox;
    window->worker->progress_inboxes = progress_inboxes;
    window->chan->on_unexpected = on_unexpected;
    window->chan->may_overtake = true; /* a HEAD that is asked for need not bring the DATA before it */
    inbox->is_remote = !is_local(window);
    inbox->is_helped = inbox->is_remote && window->worker->progress_thread;
    weft_worker_help_begin(window->worker, inbox->is_helped);
    return 0;
}

void weft_rma_inbox_drain(weft_window *window)
{
    weft_window_inbox *inbox = window->inbox;
    weft_wait wait;
    weft_wait_begin(&wait, window->worker, WEFT_WAIT_REASON_WINDOW, WEFT_ANY, 0, 0);
    while (inbox->jobs_count || inbox->records_count)
        weft_wait_progress(&wait);
    weft_wait_end(&wait);
}

bool weft_rma_inbox_close(weft_window *window)
{
    weft_window_inbox *inbox = window->inbox;
    weft_list_link *link;
    bool is_awaited;
    window->inbox = NULL;
    window->chan->on_unexpected = NULL;
    weft_worker_help_end(window->worker, inbox->is_helped);
    if (inbox->is_linked)
        weft_list_remove(&inbox->link);
    weft_rma_outbox_close(inbox);
    for (uint32_t i = 0; i < window->size; i++) {
        weft_rma_peer *peer = &inbox->peers[i];
        for (uint32_t slot = 0; peer->types && slot < WEFT_RMA_SLOTS; slot++)
            if (peer->types[slot])
                weft_type_drop(peer->types[slot]);
        free(peer->types);
        free(peer->failed.text);
        weft_rma_notices_free(peer);
    }
    free(inbox->out);
    while ((link = weft_list_take(&inbox->jobs)))
        weft_rma_job_free(weft_container(link, weft_rma_job, link));
    is_awaited = inbox->jobs_count || inbox->records_count;
    inbox->window = NULL;
    if (!is_awaited) /* else messages of an erroneous program refer to it until they end */
        free(inbox);
    return is_awaited;
}

void weft_rma_inbox_forget(weft_window_inbox *inbox)
{
    weft_rma_jobs_forget(&inbox->open);
    weft_rma_jobs_forget(&inbox->jobs);
    weft_rma_outbox_forget(inbox);
    free(inbox);
}

void weft_rma_inbox_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    weft_rma_note note = {0};
    if (from >= window->size || bytes < offsetof(weft_rma_note, text) || bytes > sizeof note)
        return;
    memcpy(&note, body, bytes);
    note.text[sizeof note.text - 1] = 0;
    weft_rma_outbox_on_note(window->inbox, from, &note);
}
