/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bridge_wait: see bridge_wait.h. A process whose wait has become long asks the one it waits for (ASK). That one answers HELD if it waits
 * too, in a call that cannot send what is waited for. Then the edge between the two waits is firm: it lasts until the second wait ends.
 * A PROBE follows firm edges. Where it returns to the wait that sent it, all waits on its path depend on each other: END ends those of the
 * leaders. Frames between two processes keep their order, so a message that was sent before HELD has matched by then.
 */
#include "mpi/bridge_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/peer.h"
#include "core/worker.h"
#include "p2p/p2p.h"

#define PATH_MAX_WAITS 14 /* longer circles are not found */
#define UNSEEN 8          /* failed calls remembered */

/* A wait, in the form that messages carry. */
typedef struct place {
    uint32_t rank;    /* in the job */
    uint32_t serial;  /* of the wait */
    uint32_t next;    /* rank in the job of the process that it waits for */
    uint32_t chan;    /* leader: that process's id of the channel; member: of the local group's channel */
    int32_t tag;      /* leader: of the message. member: number of the call on the local group */
    uint32_t is_leader;
} place;

enum note_kind { ASK = 1, HELD, REFUSED, PROBE, END, DONE };

typedef struct note {
    uint32_t kind;    /* enum note_kind */
    uint32_t to;      /* serial of the receiver's wait; not of ASK */
    uint32_t count;   /* places in path */
    place path[PATH_MAX_WAITS]; /* ASK, HELD: the sender's wait. PROBE, END: the waits, each for the next. REFUSED, DONE: none */
} note;
_Static_assert(sizeof(note) <= WEFT_NOTIFY_BYTES, "a note is one notification");

typedef struct unseen {
    bool is_set;
    uint32_t chan;    /* own id of the channel */
    int tag;
    uint32_t told_count, told[PATH_MAX_WAITS]; /* processes that know of the failure */
} unseen;

typedef struct weft_bridge_waits {
    const weft_bridge *call;   /* of this process's call; NULL: in none */
    const weft_bridge *bridge; /* of the leader's wait for the other leader; valid if receive is set */
    const weft_req *receive;   /* of the other leader's message; NULL: not in that wait */
    bool is_refusal;
    uint32_t serial;           /* of this wait */
    bool is_firm;              /* next_serial is the wait on which this one depends */
    uint32_t next_serial;
    bool is_ending;            /* lost as soon as DONE comes */
    int rc;                    /* the wait is lost: error, with text */
    char text[400];
    unseen failed[UNSEEN];
    uint32_t failed_next;
} waits;

static waits *waits_of(const weft_chan *chan) { return ((weft_mpi_world *)chan->worker->world->mpi)->bridge_waits; }

static uint32_t self_rank(const weft_chan *chan) { return chan->worker->world->boot->rank; }

/* -- this process's wait -- */

static void begin_wait(waits *self)
{
    self->serial++;
    self->is_firm = false;
    self->receive = NULL;
    self->is_ending = false;
    self->rc = 0;
}

void weft_bridge_call_begin(const weft_bridge *bridge)
{
    waits *self = waits_of(bridge->local->chan);
    bridge->local->bridges++;
    if (weft_worker_is_multiple(bridge->local->worker))
        return;
    self->call = bridge;
    begin_wait(self);
    for (uint32_t i = 0; i < UNSEEN; i++)
        if (bridge->chan && self->failed[i].chan == bridge->chan->id && self->failed[i].tag == bridge->tag)
            self->failed[i].is_set = false;
}

void weft_bridge_call_end(const weft_bridge *bridge)
{
    waits *self = waits_of(bridge->local->chan);
    self->call = NULL;
    begin_wait(self);
}

void weft_bridge_wait_begin(const weft_bridge *bridge, weft_req *receive, bool is_refusal)
{
    waits *self = waits_of(bridge->chan);
    if (weft_worker_is_multiple(bridge->chan->worker))
        return;
    begin_wait(self);
    self->bridge = bridge;
    self->receive = receive;
    self->is_refusal = is_refusal;
}

void weft_bridge_wait_end(const weft_bridge *bridge) { begin_wait(waits_of(bridge->chan)); }

static uint32_t remote_rank(const weft_bridge *bridge) { return (uint32_t)weft_chan_job_rank(bridge->chan, (int)bridge->remote_leader); }

/* Describes this process's wait. False: it waits for no process that could be asked. */
static bool describe(const waits *self, place *at)
{
    const weft_bridge *call = self->call;
    if (self->receive) {
        *at = (place){.rank = self_rank(self->bridge->chan), .serial = self->serial, .next = remote_rank(self->bridge),
                      .chan = weft_chan_id_at(self->bridge->chan, (int)self->bridge->remote_leader), .tag = self->bridge->tag,
                      .is_leader = 1};
        return self->receive->is_posted && !self->rc;
    }
    if (!call || (uint32_t)call->local->rank == call->leader)
        return false;
    *at = (place){.rank = self_rank(call->local->chan), .serial = self->serial,
                  .next = (uint32_t)weft_chan_job_rank(call->local->chan, (int)call->leader),
                  .chan = weft_chan_id_at(call->local->chan, (int)call->leader), .tag = (int32_t)call->local->bridges};
    return true;
}

static void tell(weft_chan *service, uint32_t to, note *msg)
{
    weft_chan_notify(service, to, msg, (uint32_t)(offsetof(note, path) + msg->count * sizeof *msg->path)); /* an error is the peer's */
}

static void on_long_wait(weft_chan *service)
{
    note msg = {.kind = ASK, .count = 1};
    const waits *self = waits_of(service);
    if (self->receive && self->receive->is_posted)
        weft_chan_ask(self->bridge->chan, self->bridge->remote_leader);
    if (describe(waits_of(service), &msg.path[0]) && msg.path[0].next != msg.path[0].rank)
        tell(service, msg.path[0].next, &msg);
}

bool weft_bridge_wait_is_lost(const weft_bridge *bridge, const weft_req *receive)
{
    if (waits_of(bridge->chan)->rc)
        return true;
    return receive->is_posted && weft_chan_has_left(bridge->chan, bridge->remote_leader);
}

int weft_bridge_wait_error(const weft_bridge *bridge)
{
    const waits *self = waits_of(bridge->chan);
    if (self->rc)
        return weft_fail(self->rc, "%s", self->text);
    if (bridge->chan->is_lasting)
        return weft_fail(WEFT_E_PEER, "rank %u, which argument remote_leader names, has left: its process has ended, or has left MPI for "
                         "good", remote_rank(bridge));
    return weft_fail(WEFT_E_OTHER, "rank %u, which argument remote_leader names, has called MPI_Finalize: it makes no intercommunicator",
                     remote_rank(bridge));
}

/* -- failures that the other leader does not see -- */

static void fail_unseen(waits *self, uint32_t chan, int tag, const note *path)
{
    unseen *at = &self->failed[self->failed_next++ % UNSEEN];
    *at = (unseen){.is_set = true, .chan = chan, .tag = tag};
    for (uint32_t i = 0; path && i < path->count; i++)
        at->told[at->told_count++] = path->path[i].rank;
}

void weft_bridge_fail_unseen(const weft_chan *chan, int tag)
{
    if (!weft_worker_is_multiple(chan->worker))
        fail_unseen(waits_of(chan), chan->id, tag, NULL);
}

/* Does this process know that a call failed for which `from` waits? Forgets it: the answer is given once. */
static bool take_failed(waits *self, const place *from)
{
    for (uint32_t i = 0; i < UNSEEN; i++) {
        unseen *at = &self->failed[i];
        bool knows = false;
        for (uint32_t k = 0; k < at->told_count; k++)
            knows |= at->told[k] == from->rank;
        if (!at->is_set || knows || at->chan != from->chan || at->tag != from->tag)
            continue;
        at->is_set = false;
        return true;
    }
    return false;
}

/* Drops the message of a leader that waits no more. */
static void drop_message(weft_chan *service, const place *from)
{
    weft_chan *chan = weft_chan_of(service->worker, from->chan);
    int rank = chan ? weft_group_rank_of(chan->group, weft_group_process(service->group, from->rank)) : -1;
    if (rank >= 0 && from->is_leader)
        weft_chan_drop_message(chan, rank, from->tag);
}

/* -- what others ask -- */

/* The call of `from` and this process's are one: its message is sent, or comes when this wait ends. */
static bool is_same_call(const waits *self, const place *from)
{
    const weft_bridge *bridge = self->bridge;
    return from->is_leader && self->receive && bridge->chan->id == from->chan && bridge->tag == from->tag &&
           remote_rank(bridge) == from->rank;
}

/* Does `from`, a member of this process's local group, wait in the same call as this process, its leader? */
static bool is_led(const waits *self, const place *from)
{
    const weft_bridge *bridge = self->bridge;
    return self->receive && !self->is_refusal && bridge->local->chan->id == from->chan && (int32_t)bridge->local->bridges == from->tag;
}

static void probe(weft_chan *service, waits *self, note *msg)
{
    if (msg->count == PATH_MAX_WAITS || !self->is_firm || !describe(self, &msg->path[msg->count]))
        return;
    msg->kind = PROBE;
    msg->to = self->next_serial;
    tell(service, msg->path[msg->count++].next, msg);
}

/* `held` waits, for as long as its serial lasts, and this process for it. */
static void set_firm(weft_chan *service, const place *held)
{
    waits *self = waits_of(service);
    note msg = {.count = 0};
    self->is_firm = true;
    self->next_serial = held->serial;
    probe(service, self, &msg);
}

static void on_held(weft_chan *service, const note *held)
{
    place here;
    if (held->to == waits_of(service)->serial && describe(waits_of(service), &here) && here.next == held->path[0].rank)
        set_firm(service, &held->path[0]);
}

/* An edge of this process's may be firm by now too: two that wait for each other need no other question, else the next one is asked. */
static void on_ask(weft_chan *service, const place *from)
{
    waits *self = waits_of(service);
    note msg = {.kind = HELD, .to = from->serial, .count = 1};
    bool is_held = describe(self, &msg.path[0]) && (from->is_leader ? !is_same_call(self, from) : is_led(self, from));
    if (from->is_leader && take_failed(self, from)) {
        drop_message(service, from);
        msg = (note){.kind = REFUSED, .to = from->serial};
        is_held = false;
    } else if (!is_held) {
        return;
    }
    tell(service, from->rank, &msg);
    if (is_held && msg.path[0].next == from->rank && from->is_leader && msg.path[0].is_leader)
        set_firm(service, from);
    else if (is_held && !self->is_firm)
        on_long_wait(service);
}

/* -- the verdict -- */

static const char *advice(const note *path)
{
    for (uint32_t i = 0; i < path->count; i++)
        if (!path->path[i].is_leader)
            return "remote_leader must be the leader of the other group";
    return path->count == 2 ? "both leaders must pass the same tag and peer_comm (the same stringtag), and name each other"
                            : "each two leaders must name each other";
}

/* Writes up to four waits of the path. */
static void explain(const weft_chan *service, const note *path, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "the calls that make intercommunicators wait for each other:");
    for (uint32_t i = 0; i < path->count && i < 4; i++) {
        const place *at = &path->path[i];
        used += (size_t)snprintf(text + used, capacity - used, "%s rank %u%s for %srank %u", i ? "," : "", at->rank,
                                 at->is_leader ? ", a leader," : "", at->is_leader ? "" : "its leader, ", at->next);
        if (at->is_leader && at->chan != service->id_out) /* there the tag is a hash */
            used += (size_t)snprintf(text + used, capacity - used, " with tag %d", weft_exchange_program_tag(at->tag));
    }
    snprintf(text + used, capacity - used, "%s: %s", path->count > 4 ? ", ..." : "", advice(path));
}

/* Tells the process that waits for this one that its wait is on a circle, and that its message here is dropped. Is that a leader? */
static bool pass_end(weft_chan *service, note *path)
{
    const place *before = NULL;
    for (uint32_t i = 0; i < path->count && !before; i++)
        if (path->path[i].next == self_rank(service))
            before = &path->path[i];
    if (!before)
        return true;
    drop_message(service, before);
    path->kind = END;
    path->to = before->serial;
    tell(service, before->rank, path);
    return before->is_leader;
}

static void on_probe(weft_chan *service, note *msg)
{
    waits *self = waits_of(service);
    if (msg->to != self->serial)
        on_ask(service, &msg->path[msg->count - 1]); /* this wait began later */
    else if (msg->path[0].rank == self_rank(service))
        pass_end(service, msg);
    else
        probe(service, self, msg);
}

/* From the process that this one waits for: END goes round the circle, against the waits. So a leader leaves its wait only after its
 * message is dropped, and after the member of its group that waits for it has answered, which leaves the call with its leader. */
static void on_end(weft_chan *service, uint32_t from, note *path)
{
    waits *self = waits_of(service);
    note done = {.kind = DONE};
    if (self->rc || self->is_ending)
        return;
    if (!self->receive) {
        for (uint32_t i = 0; i < path->count; i++)
            if (path->path[i].rank == from)
                done.to = path->path[i].serial;
        pass_end(service, path);
        tell(service, from, &done);
        return;
    }
    explain(service, path, self->text, sizeof self->text);
    fail_unseen(self, self->bridge->chan->id, self->bridge->tag, path);
    if (pass_end(service, path))
        self->rc = WEFT_E_NOT_SAME;
    else
        self->is_ending = true;
}

static void on_refused(waits *self, uint32_t from)
{
    if (!self->receive || self->rc)
        return;
    snprintf(self->text, sizeof self->text, "the leader of the other group, rank %u, failed before: its own error names the cause", from);
    self->rc = WEFT_E_OTHER;
}

static void on_notify(weft_chan *service, uint32_t from, const void *body, uint32_t bytes)
{
    waits *self = waits_of(service);
    note msg = {.kind = 0};
    if (bytes < offsetof(note, path) || bytes > sizeof msg)
        return;
    memcpy(&msg, body, bytes);
    if (bytes != offsetof(note, path) + msg.count * sizeof *msg.path || (!msg.count && msg.kind != REFUSED && msg.kind != DONE))
        return; /* cut off, for lack of memory */
    if (msg.kind == ASK && msg.path[0].rank == from)
        on_ask(service, &msg.path[0]);
    else if (msg.kind == HELD)
        on_held(service, &msg);
    else if (msg.kind == PROBE)
        on_probe(service, &msg);
    else if (msg.kind == END && msg.to == self->serial)
        on_end(service, from, &msg);
    else if (msg.kind == DONE && msg.to == self->serial && self->is_ending)
        self->rc = WEFT_E_NOT_SAME;
    else if (msg.kind == REFUSED && msg.to == self->serial)
        on_refused(self, from);
}

int weft_bridge_wait_open(weft_mpi_world *mpi)
{
    mpi->bridge_waits = calloc(1, sizeof *mpi->bridge_waits);
    if (!mpi->bridge_waits)
        return weft_fail(WEFT_E_NOMEM, "no memory for the state of calls that make intercommunicators");
    mpi->service->on_notify = on_notify;
    mpi->service->on_long_wait = on_long_wait;
    return 0;
}

void weft_bridge_wait_close(weft_mpi_world *mpi)
{
    free(mpi->bridge_waits);
    mpi->bridge_waits = NULL;
}
