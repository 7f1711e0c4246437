/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model: see model.h. Called by test_plans.c, and by the collectives under test in place of p2p, req and wait.
 */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/callout.h"
#include "core/progress_thread.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"
#include "p2p/p2p.h"
#include "p2p/req_data.h"
#include "test/transports/sim/fibre.h"
#include "type/pack.h"

#define STACK_BYTES (192u << 10)
#define RANKS_MAX 64

typedef struct message {
    struct message *next;
    int32_t from, to, tag;
    uint64_t bytes;
    weft_req *late; /* send that completes when this arrives; NULL: it completed at once, and data is a copy */
    const void *buf;
    uint64_t count;
    const weft_type *type;
    char data[];
} message;

typedef struct rank_state {
    weft_fibre *fibre;
    weft_worker worker;
    weft_chan chan;
    weft_team team;
    message *in_flight[RANKS_MAX]; /* by sender, oldest first */
    message *unexpected;        /* oldest first */
    weft_list_link posted;
    bool is_over;
} rank_state;

static struct {
    rank_state *ranks;
    weft_world world; /* only its group, its boot's node_of and whether waits yield are used */
    weft_boot boot;
    uint32_t node_of[RANKS_MAX];
    uint32_t count, now;
    uint64_t random;
    model_rank *body;
    void *argument;
    int complaints;
    uint32_t eager; /* bytes, of all teams */
    uint64_t events;
} model;

model_counts model_total;

uint64_t model_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void model_complain(const char *format, ...)
{
    va_list args;

    if (model.complaints++ || getenv("MODEL_QUIET"))
        return;
    va_start(args, format);
    fprintf(stderr, "rank %u of %u: ", model.now, model.count);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static uint64_t dice(uint64_t sides) { return model_random(&model.random) % sides; }

void model_yield(void) { weft_fibre_pause(model.ranks[model.now].fibre); }

/* ---- functions that collectives call ---- */

static weft_req done_req = {.is_done = true, .is_static = true};

void weft_req_free(weft_req *req)
{
    if (req->is_static)
        return;
    if (!req->is_done && req->kind != WEFT_REQ_SCHED)
        model_complain("a request is freed before it completes");
    if (req->extra)
        ((weft_req_ext *)req->extra)->free(req);
    free(req);
}

void weft_req_notify(weft_req *req)
{
    if (req->rc && !req->completion->rc)
        req->completion->rc = req->rc;
    if (--req->completion->left == 0)
        req->completion->open(req->completion);
}

void weft_wait_progress(weft_wait *wait)
{
    (void)wait;
    model_yield();
}

bool weft_wait_yield(weft_worker *worker, weft_wait_yields *yields)
{
    (void)worker;
    if (!yields->left)
        return false;
    yields->left--;
    yields->has_yielded = true;
    model_yield();
    return true;
}

void weft_wait_close(weft_wait *wait) { (void)wait; }

bool weft_progress_thread_is_barred(const weft_worker *worker)
{
    (void)worker;
    return false;
}

static message **tail(message **list)
{
    while (*list)
        list = &(*list)->next;
    return list;
}

int weft_isend(weft_chan *chan, int to, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode,
               weft_req **req)
{
    uint64_t bytes = count * (uint64_t)type->size;
    bool is_late = mode == WEFT_SEND_SYNC || dice(2);
    message *m = calloc(1, sizeof *m + (is_late ? 0 : bytes));

    *m = (message){.from = (int32_t)chan->rank, .to = to, .tag = tag, .bytes = bytes, .buf = buf, .count = count, .type = type};
    model_total.messages++;
    model_total.late_sends += is_late;
    if (to < 0 || (uint32_t)to >= model.count || (uint32_t)to == chan->rank)
        model_complain("a message to rank %d", to);
    if (is_late)
        (*req = m->late = weft_req_new(chan->worker, WEFT_REQ_SEND))->type = type;
    else {
        weft_pack(type, buf, count, 0, bytes, m->data);
        *req = &done_req;
    }
    *tail(&model.ranks[to].in_flight[chan->rank]) = m;
    model.events++;
    return WEFT_OK;
}

static void deliver(weft_req *req, message *m)
{
    uint64_t capacity = req->bytes, count = weft_req_count(req);

    if (capacity != m->bytes)
        model_complain("a message of %llu bytes from %d matches a receive of %llu", (unsigned long long)m->bytes, m->from,
                       (unsigned long long)capacity);
    else if (m->late) {
        char *data = malloc(m->bytes + 1);
        weft_pack(m->type, m->buf, m->count, 0, m->bytes, data);
        weft_unpack(req->type, req->buf, count, 0, m->bytes, data);
        free(data);
    } else
        weft_unpack(req->type, req->buf, count, 0, m->bytes, m->data);
    req->recv_info.bytes = capacity;
    if (m->late)
        weft_req_end(m->late, WEFT_OK);
    weft_req_end(req, WEFT_OK);
    free(m);
}

int weft_irecv_into(weft_chan *chan, int from, int tag, void *buf, uint64_t count, const weft_type *type, weft_req *req)
{
    rank_state *self = &model.ranks[chan->rank];

    req->rc = 0;
    req->is_done = false;
    req->rank = from;
    req->tag = tag;
    req->buf = buf;
    req->bytes = count * (uint64_t)type->size;
    req->type = type;
    model.events++;
    for (message **at = &self->unexpected; *at; at = &(*at)->next) {
        message *m = *at;
        if (m->from == from && m->tag == tag) {
            *at = m->next;
            deliver(req, m);
            return WEFT_OK;
        }
    }
    weft_list_append(&self->posted, &req->link);
    return WEFT_OK;
}

int weft_irecv(weft_chan *chan, int from, int tag, void *buf, uint64_t count, const weft_type *type, weft_req **out)
{
    return weft_irecv_into(chan, from, tag, buf, count, type, *out = weft_req_new(chan->worker, WEFT_REQ_RECV));
}

/* There is no lock in the model. */
void weft_worker_callout_begin(weft_worker *worker) { (void)worker; }
void weft_worker_callout_end(weft_worker *worker) { (void)worker; }

int weft_worker_poll(weft_worker *worker)
{
    (void)worker;
    model_yield();
    return 0;
}

/* No schedule fails here. */
int weft_chan_notify(weft_chan *chan, uint32_t to, const void *body, uint32_t bytes)
{
    (void)chan, (void)to, (void)body, (void)bytes;
    abort();
}

void weft_chan_drop_refused(weft_chan *chan) { (void)chan, abort(); }

/* For the agreement on a node area: no team of the model has one. */
int weft_chan_resolve_peer(weft_chan *chan, uint32_t rank, weft_peer **peer)
{
    (void)chan, (void)rank, (void)peer;
    abort();
}

int weft_cancel(weft_req *req)
{
    weft_list_remove(&req->link);
    weft_req_end(req, WEFT_OK);
    return WEFT_OK;
}

/* ---- the run ---- */

static void arrive(rank_state *at, message *m)
{
    model.events++;
    for (weft_list_link *link = at->posted.next; link != &at->posted; link = link->next) {
        weft_req *req = weft_container(link, weft_req, link);
        if (req->rank == m->from && req->tag == m->tag) {
            weft_list_remove(link);
            deliver(req, m);
            return;
        }
    }
    m->next = NULL;
    *tail(&at->unexpected) = m;
    model_total.unexpected++;
}

static bool network_moves(void)
{
    uint32_t to = (uint32_t)dice(model.count), from = (uint32_t)dice(model.count);

    for (uint32_t i = 0; i < model.count; i++) {
        rank_state *at = &model.ranks[(to + i) % model.count];
        for (uint32_t j = 0; j < model.count; j++) {
            message **first = &at->in_flight[(from + j) % model.count], *m = *first;
            if (m) {
                *first = m->next;
                arrive(at, m);
                return true;
            }
        }
    }
    return false;
}

static void rank_run(void *argument)
{
    rank_state *self = argument;

    model.body(&self->team, model.argument);
    model.events++;
}

static void rank_open(rank_state *self, uint32_t i)
{
    self->worker.world = &model.world;
    self->worker.done_sched = done_req;
    weft_list_init(&self->worker.scheds);
    weft_list_init(&self->posted);
    self->chan.worker = &self->worker;
    self->chan.group = model.world.group;
    self->chan.size = model.count;
    self->chan.rank = i;
    weft_team_open(&self->chan, false, &self->team);
    self->team.latency_bytes = 16; /* small sizes reach every branch */
    self->team.params.node = (weft_coll_link){.latency_ns = 16, .overhead_ns = 4, .mbyte_per_s = 1000};
    self->team.params.net = (weft_coll_link){.latency_ns = 32, .overhead_ns = 8, .mbyte_per_s = 1000};
    self->team.params.is_copied_once = model.count == 2;
    self->team.eager_bytes = model.eager;
    self->team.eager_total_max = 6 * model.eager;
    self->fibre = weft_fibre_new(rank_run, self, STACK_BYTES);
}

static void rank_close(rank_state *self)
{
    if (self->unexpected || !weft_list_is_empty(&self->posted))
        model_complain("messages or receives are left over");
    for (uint32_t i = 0; i < model.count; i++)
        if (self->in_flight[i])
            model_complain("messages are left over");
    weft_team_close(&self->team);
    weft_sched_free_spares(&self->worker);
    weft_fibre_free(self->fibre);
}

/* No event in many turns in a row: deadlock. */
static bool run_all(void)
{
    uint32_t left = model.count, quiet = 0;
    uint64_t before;

    while (left) {
        bool has_moved = dice(3) == 0 && network_moves();
        rank_state *self = &model.ranks[model.now = (uint32_t)dice(model.count)];
        before = model.events;
        if (!self->is_over) {
            model_total.turns++;
            self->is_over = !weft_fibre_resume(self->fibre);
            left -= self->is_over;
        }
        quiet = has_moved || model.events != before ? 0 : quiet + 1;
        if (quiet > 40 * model.count + 400) {
            if (network_moves())
                quiet = 0;
            else
                return false;
        }
    }
    return true;
}

/* Ranks are placed on nodes in blocks, cyclically, or at random; also all on one node, and each on its own. */
static void place_ranks(uint32_t ranks, uint64_t seed)
{
    uint64_t random = seed ^ 0x6e6f646573, flags = model_random(&random) % 3;
    uint32_t nodes = 1 + (uint32_t)(model_random(&random) % ranks), each = (ranks + nodes - 1) / nodes;

    for (uint32_t i = 0; i < ranks; i++)
        model.node_of[i] = flags == 0 ? i / each : flags == 1 ? i % nodes : (uint32_t)(model_random(&random) % nodes);
    model.boot.node_of = model.node_of;
    model.world.boot = &model.boot;
}

int model_run(uint32_t ranks, uint64_t seed, model_rank *body, void *argument)
{
    memset(&model, 0, sizeof model);
    model.ranks = calloc(ranks, sizeof *model.ranks);
    model.count = ranks;
    model.random = seed;
    model.world.wait_policy.yields = seed & 1;
    model.body = body;
    model.argument = argument;
    model.eager = seed % 4 < 2 ? 0 : seed % 4 < 3 ? 20 : 50;
    place_ranks(ranks, seed);
    if (weft_group_range(0, 0, 1, ranks, &model.world.group))
        abort();
    for (uint32_t i = 0; i < ranks; i++)
        rank_open(&model.ranks[i], i);
    if (!run_all())
        model_complain("deadlock");
    while (!model.complaints && network_moves())
        ;
    for (uint32_t i = 0; i < ranks; i++)
        if (!model.complaints)
            rank_close(&model.ranks[i]);
        else
            weft_fibre_free(model.ranks[i].fibre); /* not freed after a failed run */
    free(model.ranks);
    weft_group_drop(model.world.group);
    return model.complaints != 0;
}
