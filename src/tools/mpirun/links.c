/* SPDX-License-Identifier: BSD-3-Clause
 *
 * links: see links.h. What connects is limbs'; here stands what each node's daemon says and hears.
 */
#include "tools/mpirun/links.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launch/modex_cache.h"
#include "tools/mpirun/crew.h"
#include "tools/mpirun/describe.h"
#include "tools/mpirun/hub.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/job.h"
#include "tools/mpirun/limbs.h"
#include "tools/mpirun/trade.h"
#include "tools/mpirun/tree.h"
#include "tools/mpirun/wire.h"

typedef struct station {
    uint32_t node;
    uint32_t below;   /* so many of the next stations stand below it (tree.h) */
    limb *limb;       /* its own, or the one that leads there */
    wire wire;        /* the way there */
    haul haul;        /* notes between PMIx servers */
    uint32_t live;    /* ranks there that are taken for alive */
    uint64_t owed;    /* bytes of output that it has no credit for yet */
    bool is_ready, is_draining, is_over;
    bool is_told;     /* somebody wanted its end, and that was said */
    bool is_told_closed[2]; /* standard output, standard error: that nobody reads it */
} station;

struct links {
    job *job;
    limbs limbs;
    tree tree;
    station *items; /* in the order of the tree's row */
    uint32_t count;
    uint64_t deadline_ns; /* by which all are ready; 0: they are */
    trade trade;
    crew crew;      /* where one srun starts all; else each has an agent of its own */
    bool has_lost;  /* a daemon went without its last word */
};

static const char *name_of(const links *self, const station *one)
{
    return self->job->map.nodes[one->node].name;
}

static station *link_of(links *self, uint32_t node)
{
    return node == self->tree.head ? NULL : &self->items[tree_place(&self->tree, node)];
}

static bool is_open(const station *one)
{
    return !one->is_over && one->limb->wire.fd >= 0;
}

/* Nothing comes from it any more, nor from those below: ranks there of which nothing was heard are gone. */
static void station_over(links *self, station *one)
{
    for (station *at = one; at <= one + one->below; at++) {
        self->job->live -= at->live;
        at->live = 0;
        at->is_ready = false;
        at->is_over = true;
        haul_close(&at->haul);
    }
}

/* A daemon that is gone without its last word takes its ranks with it, or its host did; and the way to those that it has started. */
static void station_lost(links *self, station *one, const char *why)
{
    job *job = self->job;
    uint32_t ranks = 0, behind = 0;
    char with[80] = "";

    for (station *at = one; at <= one + one->below; at++) {
        ranks += at->is_over ? 0 : job->map.nodes[at->node].count;
        behind += at != one && !at->is_over;
    }
    if (one->limb->node == one->node)
        limb_drop(one->limb);
    station_over(self, one);
    if (behind)
        snprintf(with, sizeof(with), " and on the %u host%s that it connected", behind, behind == 1 ? "" : "s");
    if (self->crew.is_used && job->phase == JOB_LAUNCHES)
        return; /* srun will say why: one daemon's end is often another's fault */
    if (job->phase == JOB_RUNS || (!self->has_lost && !one->is_told))
        complain(1, "host %s is lost: %s; %u %s of this job ran there%s%s", name_of(self, one), why, ranks,
                 ranks == 1 ? "rank" : "ranks", with, job->phase == JOB_RUNS && job->live ? "; the others are ended" : "");
    self->has_lost = true;
    job_end(job, 1);
}

/* One that never came to be. */
static void station_failed(links *self, station *one, const char *why, const char *said)
{
    if (one->limb->node == one->node)
        limb_drop(one->limb);
    if (self->job->phase == JOB_LAUNCHES && !self->job->code)
        complain(1, "cannot start ranks on host %s: %s%s%s", name_of(self, one), why, *said ? ": " : "", said);
    station_over(self, one);
    job_end(self->job, 1);
}

/* limbs' ways */
static void link_lost(void *owner, limb *limb, const char *why)
{
    station_lost(owner, link_of(owner, limb->node), why);
}

static void link_failed(void *owner, limb *limb, const char *why)
{
    station_failed(owner, link_of(owner, limb->node), why, agent_words(&limb->agent)); /* its agent's words say why */
}

static void link_met(void *owner, limb *limb)
{
    links *self = owner;
    pack body = {0};

    describe(self->job->opts, &self->job->map, self->job->name, self->job->host, &body);
    pack_send(&body, &limb->wire, WIRE_START);
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
        trade_card(&self->trade, rank, WEFT_MODEX_FAILED, NULL, 0);
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

/* Frames. */
static void ended_take(links *self, station *one, unpack *from)
{
    rank_end end = {.rank = unpack_u32(from)};

    end.raw_status = (int32_t)unpack_u32(from);
    end.state = unpack_u32(from);
    end.pid = (int64_t)unpack_u64(from);
    end.is_refused = unpack_u32(from);
    end.spoke_pmix = unpack_u32(from);
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

    if (!one->is_ready && self->job->code) /* why it cannot be used: another host has said why already */
        return;
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
        job_aborted(self->job, rank, (int)code, unpack_u32(from) ? "MPI_Abort" : "PMIx_Abort", text);
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
    else if (from->left <= WEFT_MODEX_CAPACITY)
        trade_card(&self->trade, rank, state, from->at, from->left);
}

static void below_gone_take(links *self, station *one, uint32_t kind, unpack *from)
{
    const char *why = unpack_text(from);

    if (why && kind == WIRE_LOST)
        station_lost(self, one, why);
    else if (why)
        station_failed(self, one, why, "");
}

/* Of a note between PMIx servers, or word that one has come. */
static void piece_take(links *self, station *one, const wire_frame *frame)
{
    unpack from = {.at = frame->body, .left = frame->bytes};
    note whole;

    if (frame->kind == WIRE_PIECES) {
        haul_taken(&one->haul, unpack_u32(&from));
        haul_move(&one->haul, &one->wire);
    } else if (haul_take(&one->haul, &one->wire, frame, &whole) == 1) {
        hub_take(self->job->hub, one->node, &whole);
    }
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
        io_taken(self->job->io, one->node, unpack_u32(&from));
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
        if (one->limb->node == one->node)
            limb_part(one->limb);
        station_over(self, one); /* with no rank, unless it went without a word on some */
        break;
    case WIRE_TOLD:
        one->is_told = true;
        job_told(self->job, name_of(self, one), (int)unpack_u32(&from));
        break;
    case WIRE_LOST:
    case WIRE_UNMET:
        below_gone_take(self, one, frame->kind, &from);
        break;
    case WIRE_WANT:
    case WIRE_CARD:
    case WIRE_FENCE:
        traded_take(self, one, frame->kind, &from);
        break;
    case WIRE_PIECE:
    case WIRE_PIECES:
        piece_take(self, one, frame);
        break;
    default:
        one->limb->wire.trouble = "it says what this head does not understand";
    }
}

static void link_frame(void *owner, limb *limb, const wire_frame *frame)
{
    links *self = owner;
    uint32_t way = tree_way(&self->tree, frame->node);

    if (way >= self->limbs.count || &self->limbs.items[way] != limb) {
        limb->wire.trouble = "it speaks for a host that is not behind it";
        return;
    }
    station *one = link_of(self, frame->node);
    if (!one->is_over) /* or it was given up */
        frame_take(self, one, frame);
}

/* Who is started by us, and who by whom then. */
static void stations_make(links *self)
{
    const map *map = &self->job->map;
    uint32_t head = 0;

    while (head < map->node_count && !map->nodes[head].is_here)
        head++;
    self->tree = tree_of_head(map, head, self->job->opts->fanout);
    for (uint32_t i = 0; i < tree_children(&self->tree); i++) {
        uint32_t node = tree_child(&self->tree, i);
        limbs_add(&self->limbs, node, map->nodes[node].name);
    }
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (i == head)
            continue;
        limb *limb = &self->limbs.items[tree_way(&self->tree, i)];
        self->items[self->count++] = (station){.node = i, .below = tree_of_node(&self->tree, i).count, .limb = limb,
                                               .wire = {.via = &limb->wire, .node = i, .fd = -1}};
    }
}

int links_open(job *job, links **result)
{
    links *self = *result = calloc(1, sizeof(*self));
    trade_up up = {.want = trade_want_up, .card = trade_card_up, .fenced = trade_fenced_up, .owner = self};
    limbs_up in = {.met = link_met, .frame = link_frame, .lost = link_lost, .failed = link_failed, .tells = true, .owner = self};
    const char *limit = getenv("WEFT_START_TIMEOUT_S");
    long limit_s = limit ? atol(limit) : 0;
    unsigned char secret[WIRE_SECRET_BYTES];

    if (!self)
        return complain(1, "out of memory");
    self->job = job;
    self->crew.agent.out = -1;
    job->opts->fanout = fanout_wanted();
    if (job->opts->is_by_srun) /* which has a tree of its own */
        job->opts->fanout = job->map.node_count;
    self->items = calloc(job->map.node_count, sizeof(*self->items));
    bool is_failed = secret_make(secret) || limbs_open(&self->limbs, secret, job->map.node_count, &job->guard, &in);
    explicit_bzero(secret, sizeof(secret));
    if (is_failed || !self->items || trade_open(&self->trade, &job->map, &up))
        return complain(1, "cannot listen for daemons of other hosts: %s", strerror(errno));
    stations_make(self);
    self->deadline_ns = weft_clock_ns() + (uint64_t)(limit_s > 0 && limit_s < 86400 ? limit_s : 60) * 1000000000u;
    return job->opts->is_by_srun ? crew_start(&self->crew, job, self->limbs.door.listener, self->limbs.secret)
                                 : limbs_start(&self->limbs, job->opts->agent);
}

uint32_t links_max(const links *self)
{
    return 1 + limbs_max(&self->limbs);
}

uint32_t links_wishes(links *self, struct pollfd *set)
{
    set[0] = (struct pollfd){.fd = self->crew.agent.out, .events = POLLIN};
    return 1 + limbs_wishes(&self->limbs, set + 1);
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
    if (count && set[0].revents)
        crew_read(&self->crew);
    limbs_turn(&self->limbs, set + 1, count ? count - 1 : 0);
    for (uint32_t i = 0; i < self->count; i++)
        if (is_open(&self->items[i]) && self->items[i].is_ready)
            output_answer(self, &self->items[i]);
}

bool links_reaped(links *self, pid_t pid, int status)
{
    return crew_reaped(&self->crew, pid, status, links_are_ready(self), self->has_lost) || limbs_reaped(&self->limbs, pid, status);
}

static void station_late(links *self, station *one)
{
    pack body = {0};
    bool is_ours = one->limb->node == one->node;

    if (!is_ours) {
        pack_u32(&body, one->node);
        pack_send(&body, &link_of(self, tree_parent(&self->tree, one->node))->wire, WIRE_PART);
    }
    station_failed(self, one, "no word has come from there in time (WEFT_START_TIMEOUT_S)", is_ours ? agent_words(&one->limb->agent) : "");
}

static bool stations_are_over(const links *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_over)
            return false;
    return true;
}

uint64_t links_deadlines(links *self)
{
    uint64_t now = weft_clock_ns(), next = self->job->phase == JOB_LAUNCHES ? self->deadline_ns : 0;

    if (next && now >= next && self->crew.is_used)
        crew_fail(&self->crew, "not all daemons have come in time (WEFT_START_TIMEOUT_S). ");
    for (uint32_t i = 0; next && now >= next && i < self->count; i++)
        if (!self->items[i].is_ready && !self->items[i].is_over)
            station_late(self, &self->items[i]);
    next = weft_clock_earlier(next, limbs_deadlines(&self->limbs));
    return stations_are_over(self) ? weft_clock_earlier(next, crew_finish(&self->crew)) : next;
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
    uint32_t word = htole32((uint32_t)sig);

    tell_all(self, WIRE_SIGNAL, &word, sizeof(word));
}

void links_tell(links *self, uint32_t kind)
{
    tell_all(self, kind, NULL, 0);
}

void links_drain(links *self, bool was_ended, bool has_failed)
{
    for (uint32_t i = 0; i < self->count; i++) {
        station *one = &self->items[i];
        pack body = {0};
        if (one->limb->node == one->node && !one->limb->is_met && !one->is_over) {
            limb_spare(one->limb);
            station_over(self, one);
        }
        if (one->is_draining || !is_open(one))
            continue;
        one->is_draining = true;
        pack_u32(&body, was_ended);
        pack_u32(&body, has_failed);
        pack_send(&body, &one->wire, WIRE_DRAIN);
    }
}

/* Backwards, so that the one to be named is none that only waits for another behind it. */
void links_give_up(links *self)
{
    for (uint32_t i = self->count; i-- > 0;)
        if (!self->items[i].is_over)
            station_lost(self, &self->items[i], "its daemon does not answer");
}

bool links_are_over(const links *self)
{
    return stations_are_over(self) && limbs_are_over(&self->limbs) && !self->crew.agent.pid;
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

void links_note(links *self, uint32_t node, const note *what)
{
    station *one = link_of(self, node);

    if (!one || !is_open(one)) /* the job is being ended */
        parcel_drop(what->body);
    else if (haul_add(&one->haul, what))
        one->limb->wire.trouble = "out of memory";
    else
        haul_move(&one->haul, &one->wire);
}

void links_close(links *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->count; i++)
        haul_close(&self->items[i].haul);
    crew_close(&self->crew);
    limbs_close(&self->limbs);
    trade_close(&self->trade);
    free(self->items);
    free(self);
}
