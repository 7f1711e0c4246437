/* SPDX-License-Identifier: BSD-3-Clause
 *
 * links: see links.h. Nothing here waits: an agent, a daemon and a connection may each end at any moment, in any order, and the job hears
 * of it once.
 */
#include "tools/mpirun/links.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/far.h"
#include "tools/mpirun/agent.h"
#include "tools/mpirun/describe.h"
#include "tools/mpirun/door.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/job.h"
#include "tools/mpirun/listen.h"
#include "tools/mpirun/trade.h"
#include "tools/mpirun/wire.h"

#define AGENT_STAY_NS 3000000000u /* after its daemon's last word */

typedef struct station {
    uint32_t node;
    agent agent;
    wire wire;        /* fd -1: not yet, or no more */
    uint32_t live;    /* ranks there that are taken for alive */
    uint64_t owed;    /* bytes of output that it has no credit for yet */
    bool is_met;      /* there was a wire */
    bool is_ready, is_over, is_draining;
    bool is_told_closed[2]; /* standard output, standard error: that nobody reads it */
    uint64_t over_ns; /* when its agent is no longer waited for; 0: not yet */
} station;

struct links {
    job *job;
    door door;
    station *items;
    uint32_t count;
    uint64_t deadline_ns; /* by which all are ready; 0: they are */
    unsigned char secret[WIRE_SECRET_BYTES];
    trade trade;
};

static const char *name_of(const links *self, const station *one)
{
    return self->job->map.nodes[one->node].name;
}

static station *link_of(links *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->items[i].node == node)
            return &self->items[i];
    return NULL;
}

static bool is_open(const station *one)
{
    return one->wire.fd >= 0;
}

static void link_part(station *one)
{
    wire_close(&one->wire);
    one->is_ready = false;
    one->over_ns = weft_clock_ns() + AGENT_STAY_NS;
}

/* A daemon that is gone without its last word takes its ranks with it, or its host did. */
static void link_lose(links *self, station *one, const char *why)
{
    job *job = self->job;
    uint32_t ranks = job->map.nodes[one->node].count;

    if (one->is_over)
        return;
    one->is_over = true;
    link_part(one);
    agent_kill(&one->agent, SIGKILL);
    complain(1, "host %s is lost: %s; %u %s of this job ran there%s", name_of(self, one), why, ranks, ranks == 1 ? "rank" : "ranks",
             job->phase == JOB_RUNS && job->live > one->live ? "; the others are ended" : "");
    job->live -= one->live;
    one->live = 0;
    job_end(job, 1);
}

/* One that never came to be: its agent's words say why. */
static void link_fail(links *self, station *one, const char *why)
{
    if (one->is_over)
        return;
    one->is_over = true;
    link_part(one);
    agent_kill(&one->agent, SIGKILL);
    if (self->job->phase == JOB_LAUNCHES && !self->job->code) {
        const char *said = agent_words(&one->agent);
        complain(1, "cannot start ranks on host %s: %s%s%s", name_of(self, one), why, *said ? ": " : "", said);
    }
    job_end(self->job, 1);
}

/* trade's ways: to a link, or to our own node */
static void trade_want_up(void *owner, uint32_t node, uint32_t rank)
{
    links *self = owner;
    station *one = link_of(self, node);
    pack body = {0};

    if (!one) {
        cards_owe(&self->job->node.cards, rank);
        return;
    }
    if (!is_open(one)) {
        trade_card(&self->trade, rank, WEFT_FAR_GONE, NULL, 0);
        return;
    }
    pack_u32(&body, rank);
    pack_send(&body, &one->wire, WIRE_WANT);
}

static void trade_card_up(void *owner, uint32_t node, uint32_t rank, uint32_t state, const void *told, size_t bytes)
{
    links *self = owner;
    station *one = link_of(self, node);
    pack body = {0};

    if (!one) {
        cards_fill(&self->job->node.cards, rank, state, told, bytes);
        return;
    }
    pack_u32(&body, rank);
    pack_u32(&body, state);
    pack_bytes(&body, told, bytes);
    pack_send(&body, &one->wire, WIRE_CARD);
}

static void trade_fenced_up(void *owner, uint32_t node, uint64_t number)
{
    links *self = owner;
    station *one = link_of(self, node);
    pack body = {0};

    if (!one) {
        cards_fenced(&self->job->node.cards, number);
        return;
    }
    pack_u64(&body, number);
    pack_send(&body, &one->wire, WIRE_FENCE);
}

/* door's ways */
static bool node_is_awaited(void *owner, uint32_t node)
{
    const station *one = link_of(owner, node);

    return one && !one->is_met && !one->is_over;
}

static void node_is_other(void *owner, uint32_t node, const char *why)
{
    link_fail(owner, link_of(owner, node), why);
}

static void node_met(void *owner, uint32_t node, int fd, const wire_hello *hello, const wire_answer *answer)
{
    links *self = owner;
    station *one = link_of(self, node);
    pack body = {0};

    wire_open(&one->wire, fd, true, self->secret, hello, answer);
    one->is_met = true;
    describe(self->job->opts, &self->job->map, self->job->name, node, &body);
    pack_send(&body, &one->wire, WIRE_START);
}

static int agents_start(links *self)
{
    const char *words = self->job->opts->agent;
    char line[4096], command[4200];
    int rc = 0;

    if (daemon_command(command, sizeof(command)))
        return complain(1, "cannot find out where this program stands: %s", strerror(errno));
    for (uint32_t i = 0; i < self->count && !rc; i++) {
        station *one = &self->items[i];
        rc = daemon_line(self->door.listener, self->secret, one->node, line, sizeof(line));
        if (rc)
            rc = complain(1, "this machine has no network address: %s", strerror(errno));
        else if (agent_start(&one->agent, words && *words ? words : AGENT_DEFAULT, name_of(self, one), command, line, &self->job->guard))
            rc = complain(1, "cannot start the agent for host %s: %s", name_of(self, one), strerror(errno));
    }
    explicit_bzero(line, sizeof(line));
    return rc;
}

int links_open(job *job, links **result)
{
    links *self = *result = calloc(1, sizeof(*self));
    trade_up up = {.want = trade_want_up, .card = trade_card_up, .fenced = trade_fenced_up, .owner = self};
    door_up in = {.awaits = node_is_awaited, .other = node_is_other, .met = node_met, .owner = self};
    const char *limit = getenv("WEFT_START_TIMEOUT_S");
    long limit_s = limit ? atol(limit) : 0;

    if (!self)
        return complain(1, "out of memory");
    self->job = job;
    self->items = calloc(job->map.node_count, sizeof(*self->items));
    if (door_open(&self->door, self->secret, &in) || !self->items || trade_open(&self->trade, &job->map, &up) || secret_make(self->secret))
        return complain(1, "cannot listen for daemons of other hosts: %s", strerror(errno));
    for (uint32_t i = 0; i < job->map.node_count; i++)
        if (!job->map.nodes[i].is_here)
            self->items[self->count++] = (station){.node = i, .wire.fd = -1, .agent.out = -1};
    self->deadline_ns = weft_clock_ns() + (uint64_t)(limit_s > 0 && limit_s < 86400 ? limit_s : 60) * 1000000000u;
    return agents_start(self);
}

/* Frames. */
static void ended_take(links *self, station *one, unpack *from)
{
    rank_end end = {.rank = unpack_u32(from)};

    end.raw_status = (int32_t)unpack_u32(from);
    end.state = unpack_u32(from);
    end.pid = (int64_t)unpack_u64(from);
    end.is_refused = unpack_u32(from);
    if (from->has_failed || end.rank >= self->job->map.ranks || self->job->map.node_of[end.rank] != one->node || !one->live)
        return;
    one->live--;
    job_rank_ended(self->job, &end);
}

static void refused_take(links *self, station *one, unpack *from)
{
    uint32_t rank = unpack_u32(from), what = unpack_u32(from), error = unpack_u32(from);

    if (!from->has_failed && rank < self->job->map.ranks && self->job->map.node_of[rank] == one->node)
        job_rank_refused(self->job, rank, (char)what, (int)error);
}

static void say_take(const links *self, const station *one, const char *text)
{
    char host[300];

    snprintf(host, sizeof(host), "host %s", name_of(self, one));
    if (text && strstr(text, host))
        complain(0, "%s", text);
    else if (text)
        complain(0, "%s: %s", host, text);
}

static void aborted_take(links *self, unpack *from)
{
    uint32_t rank = unpack_u32(from), code = unpack_u32(from);
    const char *text = unpack_text(from);

    if (!from->has_failed && rank < self->job->map.ranks)
        job_aborted(self->job, rank, (int)code, text);
}

static void started_take(links *self, station *one, unpack *from)
{
    uint32_t live = unpack_u32(from), ranks = self->job->map.nodes[one->node].count;

    if (from->has_failed || live >= ranks)
        return;
    self->job->live -= ranks - live;
    one->live -= ranks - live;
}

static void traded_take(links *self, station *one, uint32_t kind, unpack *from)
{
    if (kind == WIRE_FENCE) {
        uint64_t number = unpack_u64(from);
        if (!from->has_failed)
            trade_fence(&self->trade, one->node, number);
        return;
    }
    uint32_t rank = unpack_u32(from), state = kind == WIRE_CARD ? unpack_u32(from) : 0;
    if (from->has_failed)
        return;
    if (kind == WIRE_WANT)
        trade_want(&self->trade, one->node, rank);
    else if (from->left <= WEFT_TOLD_ROOM)
        trade_card(&self->trade, rank, state, from->at, from->left);
}

static void frame_take(links *self, station *one, const wire_frame *frame)
{
    unpack from = {.at = frame->body, .left = frame->bytes};
    uint32_t which;

    switch (frame->kind) {
    case WIRE_READY:
        one->is_ready = true;
        break;
    case WIRE_REFUSED_ALL:
        job_end(self->job, (int)unpack_u32(&from) & 0xff);
        break;
    case WIRE_STARTED:
        started_take(self, one, &from);
        break;
    case WIRE_SAY:
        say_take(self, one, unpack_text(&from));
        break;
    case WIRE_OUT:
        which = unpack_u32(&from);
        if (which == 1 || which == 2)
            io_add(self->job->io, (int)which, from.at, from.left);
        one->owed += from.left;
        break;
    case WIRE_TAKEN:
        io_taken(self->job->io, unpack_u32(&from));
        break;
    case WIRE_ENDED:
        ended_take(self, one, &from);
        break;
    case WIRE_NOEXEC:
        refused_take(self, one, &from);
        break;
    case WIRE_ABORTED:
        aborted_take(self, &from);
        break;
    case WIRE_OVER:
        one->is_over = true;
        break;
    case WIRE_WANT:
    case WIRE_CARD:
    case WIRE_FENCE:
        traded_take(self, one, frame->kind, &from);
        break;
    default:
        one->wire.trouble = "it says what this head does not understand";
    }
}

static void link_turn(links *self, station *one)
{
    wire_frame frame;

    wire_flush(&one->wire);
    wire_read(&one->wire);
    while (is_open(one) && !one->is_over && wire_next(&one->wire, &frame))
        frame_take(self, one, &frame);
    if (one->is_over) {
        if (is_open(one))
            link_part(one);
        self->job->live -= one->live; /* none, unless it went without a word on some */
        one->live = 0;
    } else if (one->wire.trouble) {
        link_lose(self, one, one->wire.trouble);
    }
}

uint32_t links_most(const links *self)
{
    return DOOR_MOST + 2 * self->count;
}

/* In this order: the door's, then wire and agent of each link; absent ones are -1, which poll leaves out. */
uint32_t links_wishes(links *self, struct pollfd *set)
{
    uint32_t at = DOOR_MOST;

    door_wishes(&self->door, set);
    for (uint32_t i = 0; i < self->count; i++) {
        short out = self->items[i].wire.out.used ? POLLOUT : 0;
        set[at++] = (struct pollfd){.fd = self->items[i].wire.fd, .events = (short)(POLLIN | out)};
        set[at++] = (struct pollfd){.fd = self->items[i].agent.out, .events = POLLIN};
    }
    return at;
}

/* Has output been passed on, or does nobody want it any more? */
static void output_answer(links *self, station *one)
{
    for (int which = 1; which <= 2; which++) {
        pack body = {0};
        if (io_is_read(self->job->io, which) || one->is_told_closed[which - 1])
            continue;
        one->is_told_closed[which - 1] = true;
        pack_u32(&body, (uint32_t)which);
        pack_send(&body, &one->wire, WIRE_CLOSED);
    }
    if (one->owed && io_has_room(self->job->io)) {
        pack body = {0};
        pack_u32(&body, (uint32_t)one->owed);
        pack_send(&body, &one->wire, WIRE_CREDIT);
        one->owed = 0;
    }
}

void links_turn(links *self, const struct pollfd *set, uint32_t count)
{
    uint32_t at = DOOR_MOST;

    for (uint32_t i = 0; i < self->count && at < count; i++, at += 2) {
        if (set[at].revents && is_open(&self->items[i]))
            link_turn(self, &self->items[i]);
        if (set[at + 1].revents)
            agent_read(&self->items[i].agent);
    }
    if (count)
        door_turn(&self->door, set);
    for (uint32_t i = 0; i < self->count; i++)
        if (is_open(&self->items[i]) && self->items[i].is_ready)
            output_answer(self, &self->items[i]);
}

bool links_reaped(links *self, pid_t pid, int status)
{
    for (uint32_t i = 0; i < self->count; i++) {
        station *one = &self->items[i];
        char why[160];
        if (one->agent.pid != pid)
            continue;
        agent_ended(&one->agent, &self->job->guard);
        if (WIFSIGNALED(status))
            snprintf(why, sizeof(why), "its agent was killed by signal %d before it was there", WTERMSIG(status));
        else
            snprintf(why, sizeof(why), "its agent ended with exit code %d", WEXITSTATUS(status));
        if (!one->is_met && !one->is_over && status) /* one that ends well may have left the daemon behind it */
            link_fail(self, one, why);
        return true;
    }
    return false;
}

uint64_t links_deadlines(links *self)
{
    uint64_t now = weft_clock_ns(), next = self->job->phase == JOB_LAUNCHES ? self->deadline_ns : 0;

    for (uint32_t i = 0; next && now >= next && i < self->count; i++)
        if (!self->items[i].is_ready)
            link_fail(self, &self->items[i], "no word has come from there in time (WEFT_START_TIMEOUT_S)");
    uint64_t strangers = door_deadlines(&self->door);
    if (strangers && (!next || strangers < next))
        next = strangers;
    for (uint32_t i = 0; i < self->count; i++) {
        station *one = &self->items[i];
        if (!one->over_ns || !one->agent.pid)
            continue;
        if (now >= one->over_ns)
            agent_kill(&one->agent, SIGKILL);
        if (!next || one->over_ns < next)
            next = now >= one->over_ns ? now + 100000000u : one->over_ns;
    }
    return next;
}

bool links_are_ready(const links *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_ready)
            return false;
    return true;
}

static void tell_all(links *self, uint32_t kind, const void *body, size_t bytes)
{
    for (uint32_t i = 0; i < self->count; i++)
        wire_send(&self->items[i].wire, kind, body, bytes);
}

void links_go(links *self)
{
    self->deadline_ns = 0;
    for (uint32_t i = 0; i < self->count; i++)
        self->job->live += self->items[i].live = self->job->map.nodes[self->items[i].node].count;
    tell_all(self, WIRE_GO, NULL, 0);
}

void links_signal(links *self, int sig)
{
    for (uint32_t i = 0; i < self->count; i++) {
        pack body = {0};
        pack_u32(&body, (uint32_t)sig);
        pack_send(&body, &self->items[i].wire, WIRE_SIGNAL);
    }
}

void links_end(links *self)
{
    tell_all(self, WIRE_END, NULL, 0);
}

void links_kill(links *self)
{
    tell_all(self, WIRE_KILL, NULL, 0);
}

void links_waits(links *self)
{
    tell_all(self, WIRE_WAITS, NULL, 0);
}

void links_drain(links *self, bool was_ended, bool has_failed)
{
    for (uint32_t i = 0; i < self->count; i++) {
        station *one = &self->items[i];
        pack body = {0};
        if (!one->is_met) { /* it need not come any more */
            one->is_over = true;
            one->over_ns = weft_clock_ns() + AGENT_STAY_NS;
            agent_kill(&one->agent, SIGTERM);
        }
        if (one->is_draining || !is_open(one))
            continue;
        one->is_draining = true;
        pack_u32(&body, was_ended);
        pack_u32(&body, has_failed);
        pack_send(&body, &one->wire, WIRE_DRAIN);
    }
}

bool links_are_over(const links *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_over || self->items[i].agent.pid)
            return false;
    return true;
}

void links_in(links *self, uint32_t node, const char *bytes, size_t count)
{
    station *one = link_of(self, node);

    if (one)
        wire_send(&one->wire, WIRE_IN, bytes, count);
}

void links_want(links *self, uint32_t rank)
{
    trade_want(&self->trade, self->job->node.index, rank);
}

void links_card(links *self, uint32_t rank, uint32_t state, const void *told, uint32_t bytes)
{
    trade_card(&self->trade, rank, state, told, bytes);
}

void links_fence(links *self, uint64_t number)
{
    trade_fence(&self->trade, self->job->node.index, number);
}

void links_close(links *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->count; i++) {
        wire_close(&self->items[i].wire);
        agent_kill(&self->items[i].agent, SIGKILL);
        agent_close(&self->items[i].agent);
    }
    door_close(&self->door);
    trade_close(&self->trade);
    explicit_bzero(self->secret, sizeof(self->secret));
    free(self->items);
    free(self);
}
