/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outbox: own operations on targets that are reached by messages (message.h). A short put or accumulate that leaves at once needs no
 * record. Any other one is a record, which has its messages; their completions end it, and then the program's request.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/sched.h"
#include "p2p/p2p.h"
#include "rma/device.h"
#include "rma/inbox.h"
#include "rma/message.h"
#include "rma/sync_state.h"
#include "type/pack.h"
#include "type/wire.h"

enum { HANDLE_BYTE = 0x247 };

/* A message of a record. */
typedef struct child {
    weft_req *req;
    void *buffer; /* owned; NULL: none */
} child;

typedef struct record {
    weft_completion completion; /* of all messages, and one while it is made */
    weft_list_link link;        /* in peer->records, then in inbox->records */
    weft_window_inbox *inbox;
    uint32_t target;
    uint64_t order;             /* peer->begun when it began */
    weft_req *user;             /* NULL: completes by a flush */
    const weft_type *type;      /* of origin or result, held; NULL: none */
    void *packed;               /* operand in packed form, if the origin has gaps; owned */
    void *unpacked;             /* result in packed form, if the result has gaps; owned */
    void *result;
    uint64_t result_count, result_bytes;
    weft_rma_error error;
    bool is_ended;
    uint32_t first_number, numbers; /* of the operations that it is */
    uint32_t count;
    child children[];           /* [count] messages */
} record;

static char *head_data(weft_window_inbox *inbox) { return inbox->out + sizeof(weft_rma_head); }

/* A target in MPI_Finalize has freed the window's channel before its last frame: what comes then is refused (E_COMM). */
static int explain(const weft_window *window, uint32_t target, int rc)
{
    if (rc == WEFT_E_COMM || (rc == WEFT_E_PEER && weft_window_target_is_gone(&window->targets[target])))
        return weft_fail(WEFT_E_PEER, "the process of target %u %s", target, weft_window_gone_text(window, target));
    return rc;
}

static void on_complete(weft_completion *completion)
{
    record *self = weft_container(completion, record, completion);
    self->is_ended = true;
    weft_list_remove(&self->link);
    weft_list_append(&self->inbox->records, &self->link);
    weft_rma_inbox_link(self->inbox);
}

static record *record_new(weft_window_inbox *inbox, uint32_t target, uint64_t messages, weft_req **req)
{
    weft_rma_peer *peer = &inbox->peers[target];
    record *self = messages < UINT32_MAX ? calloc(1, sizeof *self + messages * sizeof *self->children) : NULL;
    if (self && req) {
        self->user = weft_req_new(inbox->window->worker, WEFT_REQ_RMA);
        if (!self->user) {
            free(self);
            self = NULL;
        } else {
            self->user->rank = (int)target;
            self->user->bytes = 0;
        }
    }
    if (!self) {
        weft_fail(WEFT_E_NOMEM, "no memory for an operation on target %u", target);
        return NULL;
    }
    self->completion = (weft_completion){.left = 1, .open = on_complete};
    self->inbox = inbox;
    self->target = target;
    self->order = ++peer->begun;
    self->first_number = peer->number + 1;
    weft_list_append(&peer->records, &self->link);
    inbox->records_count++;
    return self;
}

/* All its messages are under way. */
static void record_made(record *self, int rc)
{
    self->numbers = self->inbox->peers[self->target].number - self->first_number + 1;
    rc = explain(self->inbox->window, self->target, rc);
    if (rc)
        weft_rma_error_set(&self->error, rc, weft_fail_text(rc));
    if (--self->completion.left == 0)
        on_complete(&self->completion);
}

static child *child_new(record *self, enum weft_req_kind kind)
{
    child *made = &self->children[self->count];
    made->req = weft_req_new(self->inbox->window->worker, kind);
    if (!made->req)
        return NULL;
    made->req->completion = &self->completion;
    self->completion.left++;
    self->count++;
    return made;
}

static int child_send(record *self, int tag, const void *buf, uint64_t count, const weft_type *type, void *buffer)
{
    child *made = child_new(self, WEFT_REQ_SEND);
    int rc;
    if (!made) {
        free(buffer);
        return weft_fail(WEFT_E_NOMEM, "no memory for a message of a window");
    }
    made->buffer = buffer;
    rc = weft_isend_into(self->inbox->window->chan, (int)self->target, tag, buf, count, type, WEFT_SEND_STANDARD, made->req);
    if (rc)
        weft_req_end(made->req, rc);
    return rc;
}

static int child_recv(record *self, int tag, void *buf, uint64_t count, const weft_type *type)
{
    child *made = child_new(self, WEFT_REQ_RECV);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for a message of a window");
    return weft_irecv_into(self->inbox->window->chan, (int)self->target, tag, buf, count, type, made->req);
}

/* Sends the HEAD whose data are in inbox->out. *at: its record, made if it does not leave at once. */
static int send_head(weft_window_inbox *inbox, uint32_t target, const weft_rma_head *head, uint64_t data, record **at)
{
    uint64_t bytes = sizeof *head + data;
    weft_chan *chan = inbox->window->chan;
    void *copy;
    int rc;
    memcpy(inbox->out, head, sizeof *head);
    rc = weft_send_try(inbox->out, bytes, weft_sched_bytes(), (int)target, WEFT_RMA_TAG_HEAD, chan, false);
    if (rc <= 0)
        return explain(inbox->window, target, rc);
    if (!*at && !(*at = record_new(inbox, target, 1, NULL)))
        return WEFT_E_NOMEM;
    copy = malloc(bytes);
    if (!copy)
        return weft_fail(WEFT_E_NOMEM, "no memory for a message of a window");
    memcpy(copy, inbox->out, bytes);
    return child_send(*at, WEFT_RMA_TAG_HEAD, copy, bytes, weft_sched_bytes(), copy);
}

/* -- datatypes -- */

/* Sends the layout of a type, which the target keeps in this slot from then on. */
static int send_type(weft_window_inbox *inbox, uint32_t target, const weft_type *type, uint8_t slot)
{
    weft_rma_head head = {.kind = WEFT_RMA_TYPE, .slot = slot};
    record *at = NULL;
    void *wire;
    int rc = weft_type_encode(type, &wire, &head.bytes);
    if (rc)
        return rc;
    if (head.bytes <= WEFT_RMA_INLINE) {
        memcpy(head_data(inbox), wire, head.bytes);
        free(wire);
        rc = send_head(inbox, target, &head, head.bytes, &at);
    } else if (!(at = record_new(inbox, target, 2, NULL))) {
        free(wire);
        return WEFT_E_NOMEM;
    } else {
        head.has_data = true;
        head.number = ++inbox->peers[target].number;
        rc = send_head(inbox, target, &head, 0, &at);
        if (rc)
            free(wire);
        else
            rc = child_send(at, weft_rma_tag_data(head.number), wire, head.bytes, weft_sched_bytes(), wire);
    }
    if (at)
        record_made(at, rc);
    return rc;
}

/* A slot is for one type at a time, chosen by its address. */
static int know_type(weft_window_inbox *inbox, uint32_t target, const weft_type *type, uint8_t *out)
{
    weft_rma_peer *peer = &inbox->peers[target];
    uint8_t slot = (uint8_t)(((uintptr_t)type >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % WEFT_RMA_SLOTS;
    int rc;
    *out = slot;
    if (!peer->known && !(peer->known = calloc(WEFT_RMA_SLOTS, sizeof(weft_type *))))
        return weft_fail(WEFT_E_NOMEM, "no memory for the datatypes of target %u", target);
    if (peer->known[slot] == type)
        return 0;
    rc = send_type(inbox, target, type, slot);
    if (rc)
        return rc;
    if (peer->known[slot])
        weft_type_drop(peer->known[slot]);
    weft_type_hold(type);
    peer->known[slot] = type;
    return 0;
}

/* Describes the target's datatype and count in the head. */
static int describe(weft_window_inbox *inbox, const weft_rma_op *op, weft_rma_head *head)
{
    const weft_type *type = op->target_type;
    head->slot = WEFT_RMA_PREDEFINED;
    head->basic = type->basic_handle;
    head->count = op->target_count;
    if (type->is_predefined) {
        head->type = (uint16_t)type->handle;
        return 0;
    }
    if (type->is_dense) { /* its data begin at its address */
        const weft_type *unit = op->kind >= WEFT_RMA_ACCUMULATE ? weft_type_of((void *)(uintptr_t)head->basic)
                                                                : weft_type_of((void *)(uintptr_t)HANDLE_BYTE);
        head->type = (uint16_t)unit->handle;
        head->count = op->target_count * (uint64_t)type->size / (uint64_t)unit->size;
        return 0;
    }
    return know_type(inbox, op->target, type, &head->slot);
}

/* -- operations -- */

/* Operations without REPLY, which a flush asks for. */
static void count_sent(weft_window *window, uint32_t target)
{
    window->targets[target].sent++;
    window->messaged++;
}

static int put(weft_window_inbox *inbox, const weft_rma_op *op, weft_rma_head *head, weft_req **req)
{
    record *at = NULL;
    int rc;
    if (head->bytes <= WEFT_RMA_INLINE) {
        weft_pack(op->origin_type, op->origin, op->origin_count, 0, head->bytes, head_data(inbox));
        rc = send_head(inbox, op->target, head, head->bytes, &at);
        if (at)
            record_made(at, rc);
        if (!rc && req) /* the origin was copied */
            *req = &inbox->window->worker->done_req;
        return rc;
    }
    if (!(at = record_new(inbox, op->target, 2, req)))
        return WEFT_E_NOMEM;
    if (req)
        *req = at->user;
    head->has_data = true;
    head->number = ++inbox->peers[op->target].number;
    weft_type_hold(at->type = op->origin_type);
    rc = send_head(inbox, op->target, head, 0, &at);
    if (!rc)
        rc = child_send(at, weft_rma_tag_data(head->number), op->origin, op->origin_count, op->origin_type, NULL);
    record_made(at, rc);
    return 0;
}

static int get(weft_window_inbox *inbox, const weft_rma_op *op, weft_rma_head *head, weft_req **req)
{
    record *at = record_new(inbox, op->target, 2, req);
    int rc;
    if (!at)
        return WEFT_E_NOMEM;
    if (req)
        *req = at->user;
    head->number = ++inbox->peers[op->target].number;
    weft_type_hold(at->type = op->origin_type);
    rc = child_recv(at, weft_rma_tag_reply(head->number), (void *)op->origin, op->origin_count, op->origin_type);
    if (!rc)
        rc = send_head(inbox, op->target, head, 0, &at);
    record_made(at, rc);
    return 0;
}

static int compare_and_swap(weft_window_inbox *inbox, const weft_rma_op *op, weft_rma_head *head)
{
    record *at = record_new(inbox, op->target, 2, NULL);
    int rc;
    if (!at)
        return WEFT_E_NOMEM;
    head->number = ++inbox->peers[op->target].number;
    memcpy(head_data(inbox), op->compare, head->bytes);
    memcpy(head_data(inbox) + head->bytes, op->origin, head->bytes);
    rc = child_recv(at, weft_rma_tag_reply(head->number), op->result, head->bytes, weft_sched_bytes());
    if (!rc)
        rc = send_head(inbox, op->target, head, 2 * head->bytes, &at);
    record_made(at, rc);
    return 0;
}

/* One piece of an accumulate: [skip, skip + bytes) of the packed form. from, to: the packed operand and result; NULL: none. */
static int piece(weft_window_inbox *inbox, weft_rma_head *head, const char *from, char *to, record **at, uint32_t target)
{
    bool is_inline = head->bytes <= WEFT_RMA_INLINE;
    int rc = 0;
    head->has_data = from && !is_inline;
    if (to || head->has_data)
        head->number = ++inbox->peers[target].number;
    if (to)
        rc = child_recv(*at, weft_rma_tag_reply(head->number), to + head->skip, head->bytes, weft_sched_bytes());
    else
        count_sent(inbox->window, target);
    if (from && is_inline)
        memcpy(head_data(inbox), from + head->skip, head->bytes);
    if (!rc)
        rc = send_head(inbox, target, head, from && is_inline ? head->bytes : 0, at);
    if (!rc && head->has_data)
        rc = child_send(*at, weft_rma_tag_data(head->number), from + head->skip, head->bytes, weft_sched_bytes(), NULL);
    return rc;
}

/* Packed forms of what has gaps. The record owns them. */
static int pack_gaps(record *at, const weft_rma_op *op, uint64_t bytes, const char **from, char **to)
{
    if (*from && !op->origin_type->is_dense) {
        *from = at->packed = malloc(bytes);
        if (!at->packed)
            return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of an operation", (unsigned long long)bytes);
        weft_pack(op->origin_type, op->origin, op->origin_count, 0, bytes, at->packed);
    }
    if (*to && !op->result_type->is_dense) {
        *to = at->unpacked = malloc(bytes);
        if (!at->unpacked)
            return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of an operation", (unsigned long long)bytes);
        weft_type_hold(at->type = op->result_type);
        at->result = op->result;
        at->result_count = op->result_count;
        at->result_bytes = bytes;
    }
    return 0;
}

static int accumulate(weft_window_inbox *inbox, const weft_rma_op *op, weft_rma_head *head, weft_req **req)
{
    uint64_t all = head->bytes, size = (uint64_t)weft_type_of((void *)(uintptr_t)head->basic)->size;
    uint64_t length = all <= WEFT_RMA_INLINE ? all : WEFT_RMA_PIECE - WEFT_RMA_PIECE % size;
    const char *from = op->op->handle == WEFT_RMA_NO_OP ? NULL : op->origin;
    char *to = op->kind == WEFT_RMA_GET_ACCUMULATE ? op->result : NULL;
    bool is_short = all <= WEFT_RMA_INLINE && !to && (!from || op->origin_type->is_dense);
    record *at = NULL;
    int rc = 0;
    if (!is_short) {
        if (!(at = record_new(inbox, op->target, 3 * ((all + length - 1) / length), req)))
            return WEFT_E_NOMEM;
        rc = pack_gaps(at, op, all, &from, &to);
    }
    head->op = (uint8_t)op->op->handle;
    for (uint64_t done = 0; done < all && !rc; done += length) {
        head->skip = done;
        head->bytes = all - done < length ? all - done : length;
        rc = piece(inbox, head, from, to, &at, op->target);
    }
    if (req)
        *req = is_short ? &inbox->window->worker->done_req : at->user;
    if (at)
        record_made(at, rc);
    return is_short ? rc : 0;
}

int weft_rma_send(weft_window *window, const weft_rma_op *op, weft_req **req)
{
    weft_window_inbox *inbox = window->inbox;
    weft_rma_head head = {.kind = (uint8_t)op->kind, .offset = op->offset, .notify = op->notify,
                          .bytes = op->target_count * (uint64_t)op->target_type->size};
    int rc;
    if (weft_unlikely(weft_window_target_is_gone(&window->targets[op->target])))
        return weft_fail(WEFT_E_PEER, "target %u cannot be accessed: its process %s", op->target,
                         weft_window_gone_text(window, op->target));
    rc = describe(inbox, op, &head);
    if (rc)
        return rc;
    window->worker->counters[WEFT_COUNT_WINDOW_MESSAGES]++;
    head.asks = weft_rma_device_asks(window, op);
    switch (op->kind) {
    case WEFT_RMA_PUT:
        count_sent(window, op->target);
        return put(inbox, op, &head, req);
    case WEFT_RMA_GET: return get(inbox, op, &head, req);
    case WEFT_RMA_COMPARE_AND_SWAP: return compare_and_swap(inbox, op, &head);
    default: return accumulate(inbox, op, &head, req);
    }
}

int weft_rma_send_notify(weft_window *window, uint32_t target, uint32_t notify)
{
    weft_rma_head head = {.kind = WEFT_RMA_NOTIFY, .notify = notify};
    record *at = NULL;
    int rc;
    count_sent(window, target);
    rc = send_head(window->inbox, target, &head, 0, &at);
    if (at)
        record_made(at, rc);
    return rc;
}

int weft_rma_ask(weft_window *window, uint32_t target)
{
    weft_window_inbox *inbox = window->inbox;
    weft_rma_peer *peer = &inbox->peers[target];
    weft_rma_head head = {.kind = WEFT_RMA_FLUSH, .offset = window->targets[target].sent};
    record *at = NULL;
    int rc;
    if (peer->asked == head.offset)
        return 0;
    peer->asked = head.offset;
    rc = send_head(inbox, target, &head, 0, &at);
    if (at)
        record_made(at, rc);
    return rc;
}

/* -- completion -- */

static void set_error(weft_window_inbox *inbox, uint32_t target, int rc, const char *text)
{
    weft_rma_error_set(&inbox->peers[target].error, rc, text);
    inbox->has_error = true;
}

/* A REPLY without bytes: a FAILED came before it, or the operation was on no bytes. */
static int result_of(const record *self)
{
    if (self->error.rc)
        return weft_fail(self->error.rc, "%s", self->error.text ? self->error.text : weft_fail_text(self->error.rc));
    return explain(self->inbox->window, self->target, self->completion.rc);
}

/* is_over: its messages have ended; else their requests go on without it. */
static void record_free(record *self, bool is_over)
{
    for (uint32_t i = 0; i < self->count; i++) {
        self->children[i].req->completion = NULL;
        if (is_over)
            weft_req_free(self->children[i].req);
        free(self->children[i].buffer);
    }
    if (self->type)
        weft_type_drop(self->type);
    free(self->packed);
    free(self->unpacked);
    free(self->error.text);
    free(self);
}

static void finish(weft_window_inbox *inbox, record *self)
{
    int rc = result_of(self);
    inbox->records_count--;
    if (!rc && self->unpacked)
        weft_unpack(self->type, self->result, self->result_count, 0, self->result_bytes, self->unpacked);
    if (rc && !self->user)
        set_error(inbox, self->target, rc, weft_fail_text(rc));
    if (self->user)
        weft_req_end(self->user, rc);
    record_free(self, true);
}

void weft_rma_outbox_finish(weft_window_inbox *inbox)
{
    while (!weft_list_is_empty(&inbox->records)) {
        record *self = weft_container(inbox->records.next, record, link);
        weft_list_remove(&self->link);
        finish(inbox, self);
    }
}

void weft_rma_outbox_on_note(weft_window_inbox *inbox, uint32_t from, const weft_rma_note *note)
{
    weft_rma_peer *peer = &inbox->peers[from];
    weft_window_target *target = &inbox->window->targets[from];
    if (note->kind == WEFT_RMA_ACK) {
        if (note->performed > target->performed && note->performed <= target->sent) {
            inbox->window->messaged -= note->performed - target->performed;
            target->performed = note->performed;
        }
        if (note->rc)
            set_error(inbox, from, note->rc, note->text);
        return;
    }
    for (weft_list_link *link = peer->records.next; link != &peer->records; link = link->next) {
        record *self = weft_container(link, record, link);
        if (note->number - self->first_number < self->numbers)
            weft_rma_error_set(&self->error, note->rc, note->text);
    }
}

void weft_rma_outbox_close(weft_window_inbox *inbox)
{
    for (uint32_t i = 0; i < inbox->window->size; i++) {
        weft_rma_peer *peer = &inbox->peers[i];
        for (uint32_t slot = 0; peer->known && slot < WEFT_RMA_SLOTS; slot++)
            if (peer->known[slot])
                weft_type_drop(peer->known[slot]);
        free(peer->known);
        free(peer->error.text);
    }
}

static void forget(weft_list_link *records)
{
    weft_list_link *link;
    while ((link = weft_list_take(records)))
        record_free(weft_container(link, record, link), false);
}

void weft_rma_outbox_forget(weft_window_inbox *inbox)
{
    for (uint32_t i = 0; i < inbox->size; i++)
        forget(&inbox->peers[i].records);
    forget(&inbox->records);
}
