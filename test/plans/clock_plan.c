/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock_plan: see clock_plan.h. Called by clock.c. Ranks are recorded one after the other with one team, whose rank and place change, so
 * memory holds the temporary buffers of one rank; nothing is written to them.
 */
#include "clock_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/counts.h"
#include "collectives/choice.h"
#include "collectives/topology.h"
#include "core/callout.h"
#include "core/wait.h"
#include "core/worker.h"

#define HANDLE_SUM 0x21
#define FAR ((char *)0x100000000000) /* never read or written */

void weft_req_free(weft_req *req)
{
    if (req->extra)
        ((weft_req_ext *)req->extra)->free(req);
    free(req);
}

/* Called by schedules that are performed; none is here. */
void weft_wait_progress(weft_wait *wait) { (void)wait, abort(); }
bool weft_wait_yield(weft_worker *worker, weft_wait_yields *yields) { (void)worker, (void)yields, abort(); }
void weft_wait_close(weft_wait *wait) { (void)wait, abort(); }
void weft_worker_callout_begin(weft_worker *worker) { (void)worker, abort(); }
void weft_worker_callout_end(weft_worker *worker) { (void)worker, abort(); }

typedef struct recorder {
    const weft_coll_query *query;
    weft_sched_algorithm *algorithm;
    weft_boot boot;
    weft_world world;
    weft_worker worker;
    weft_chan chan;
    weft_team team;
    weft_topology *topology;
    uint32_t *node_of, *node_ranks, *leaders, *same_index, *order_of;
    int64_t *counts, *displs; /* of calls with a count for each rank */
    weft_layout layout;
    weft_op op;
} recorder;

static void open_counts(recorder *self)
{
    uint32_t ranks = self->query->ranks;

    self->counts = malloc(ranks * sizeof *self->counts);
    self->displs = malloc(ranks * sizeof *self->displs);
    for (uint32_t i = 0; i < ranks; i++) {
        uint64_t from = weft_sched_block_start(self->query->bytes, ranks, i);
        self->displs[i] = (int64_t)from;
        self->counts[i] = (int64_t)(weft_sched_block_start(self->query->bytes, ranks, i + 1) - from);
    }
    self->layout = (weft_layout){.counts = {self->counts, 8}, .displs = {self->displs, 8}};
}

static void recorder_open(recorder *self, const weft_coll_query *query, weft_sched_algorithm *algorithm)
{
    uint32_t ranks = query->ranks, nodes = query->nodes, each = (ranks + nodes - 1) / nodes;

    memset(self, 0, sizeof *self);
    self->query = query;
    self->algorithm = algorithm;
    self->world.boot = &self->boot;
    self->worker.world = &self->world;
    self->chan.worker = &self->worker;
    self->chan.size = ranks;
    if (weft_group_range(0, 0, 1, ranks, &self->chan.group))
        abort();
    self->team = (weft_team){.chan = &self->chan, .size = ranks, .nodes = nodes, .params = *query->params,
                             .latency_bytes = query->latency_bytes, .local = {0, ranks}, .remote = {0, ranks}};
    self->op = *weft_op_of((void *)HANDLE_SUM);
    self->op.is_commutative = !(query->has & WEFT_NEED_ORDER);
    open_counts(self);
    if (!(query->has & WEFT_NEED_NODES))
        return;
    self->node_of = malloc(ranks * sizeof *self->node_of);
    self->leaders = malloc(nodes * sizeof *self->leaders);
    self->same_index = malloc(ranks * sizeof *self->same_index);
    self->node_ranks = malloc(each * sizeof *self->node_ranks);
    self->order_of = malloc(nodes * sizeof *self->order_of);
    for (uint32_t i = 0; i < ranks; i++) {
        self->node_of[i] = i / each;
        self->same_index[i % each * nodes + i / each] = i;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        self->leaders[i] = i * each;
        self->order_of[i] = i;
    }
    self->topology = calloc(1, sizeof *self->topology);
    *self->topology = (weft_topology){.count = nodes, .node_rank_count = each, .leaders_per_node = each, .leaders = self->leaders,
                                      .node_ranks = self->node_ranks, .node_of = self->node_of, .order_of = self->order_of,
                                      .group = self->chan.group};
    self->team.topology = self->topology;
}

static void recorder_close(recorder *self)
{
    weft_coll_choices_free(&self->team);
    weft_sched_free_spares(&self->worker);
    weft_group_drop(self->chan.group);
    free(self->counts), free(self->displs), free(self->node_of), free(self->node_ranks), free(self->leaders), free(self->same_index),
        free(self->order_of);
    free(self->topology);
}

static void move_to(recorder *self, uint32_t rank)
{
    weft_topology *topology = self->topology;

    self->chan.rank = self->team.rank = rank;
    if (!topology)
        return;
    topology->node = rank / topology->node_rank_count;
    topology->index = rank % topology->node_rank_count;
    topology->same_index = self->same_index + topology->index * topology->count;
    for (uint32_t i = 0; i < topology->node_rank_count; i++)
        self->node_ranks[i] = topology->node * topology->node_rank_count + i;
}

static weft_req *record(recorder *self, uint32_t rank)
{
    const weft_type *byte = weft_sched_bytes();
    uint64_t n = self->query->bytes;
    weft_coll args = {.sendbuf = FAR, .recvbuf = FAR + ((uint64_t)1 << 44), .sendcount = n, .recvcount = n, .sendtype = byte,
                      .recvtype = byte, .op = &self->op};
    weft_req *req;

    move_to(self, rank);
    if (self->query->kind == WEFT_COLL_ALLGATHERV) {
        args.sendcount = (uint64_t)self->counts[rank];
        args.recv_layout = &self->layout;
        args.is_v = true;
    } else if (self->query->kind == WEFT_COLL_REDUCE_SCATTER) {
        args.recv_layout = &self->layout;
        args.is_v = true;
    }
    return weft_sched_record(&self->team, self->algorithm, &args, 0, &req) ? NULL : req;
}

/* ---- the plan ---- */

static uint32_t slot_of(const clock_plan *plan, uint32_t from, uint32_t to)
{
    uint32_t at = (uint32_t)(((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15u >> 32) & (plan->table_size - 1);

    while (plan->table[at] && (plan->pairs[plan->table[at] - 1].from != from || plan->pairs[plan->table[at] - 1].to != to))
        at = (at + 1) & (plan->table_size - 1);
    return at;
}

static void grow(clock_plan *plan)
{
    plan->table_size = plan->table_size ? 2 * plan->table_size : 1024;
    free(plan->table);
    plan->table = calloc(plan->table_size, sizeof *plan->table);
    plan->pairs = realloc(plan->pairs, plan->table_size / 2 * sizeof *plan->pairs);
    for (uint32_t i = 0; i < plan->pair_count; i++)
        plan->table[slot_of(plan, plan->pairs[i].from, plan->pairs[i].to)] = i + 1;
}

static uint32_t pair_of(clock_plan *plan, uint32_t from, uint32_t to)
{
    uint32_t *found;

    if (2 * plan->pair_count >= plan->table_size)
        grow(plan);
    found = &plan->table[slot_of(plan, from, to)];
    if (!*found) {
        plan->pairs[plan->pair_count++] = (clock_pair){.from = from, .to = to};
        *found = plan->pair_count;
    }
    return *found - 1;
}

static clock_step *append(clock_plan *plan)
{
    if (plan->count == plan->capacity) {
        plan->capacity = plan->capacity ? 2 * plan->capacity : 4096;
        plan->steps = realloc(plan->steps, plan->capacity * sizeof *plan->steps);
    }
    return &plan->steps[plan->count++];
}

/* Adds a rank's steps. */
static void add(clock_plan *plan, uint32_t rank, const weft_sched *sched)
{
    uint32_t *sent = malloc((sched->step_count + 1) * sizeof *sent), count = 0; /* steps of the schedule's messages, by number */

    for (uint32_t i = 0; i < sched->step_count; i++) {
        const weft_step *step = &sched->steps[i];
        clock_step one = {.op = (uint8_t)step->op};
        if (step->op == WEFT_STEP_AWAIT && step->message == WEFT_SCHED_NO_MESSAGE)
            continue;
        if (step->op == WEFT_STEP_AWAIT)
            one.target = sent[step->message];
        else if (step->op != WEFT_STEP_FENCE)
            one.bytes = step->to_count * (uint64_t)step->to_type->size;
        if (step->op == WEFT_STEP_SEND || step->op == WEFT_STEP_RECV) {
            bool is_send = step->op == WEFT_STEP_SEND;
            clock_pair *pair;
            one.pair = is_send ? pair_of(plan, rank, (uint32_t)step->peer) : pair_of(plan, (uint32_t)step->peer, rank);
            pair = &plan->pairs[one.pair];
            one.nth = is_send ? pair->sends++ : pair->receives++;
            sent[count++] = plan->count;
        }
        *append(plan) = one;
    }
    free(sent);
}

static void number_messages(clock_plan *plan)
{
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        clock_pair *pair = &plan->pairs[i];
        pair->first = plan->messages;
        plan->messages += pair->sends > pair->receives ? pair->sends : pair->receives;
    }
}

int clock_plan_open(const weft_coll_query *query, weft_sched_algorithm *algorithm, uint32_t ranks, clock_plan *plan)
{
    recorder self;
    int rc = 0;

    memset(plan, 0, sizeof *plan);
    recorder_open(&self, query, algorithm);
    plan->starts = calloc(ranks + 1, sizeof *plan->starts);
    for (uint32_t rank = 0; rank < ranks && !rc; rank++) {
        weft_req *req = record(&self, rank);
        const weft_sched *sched = req ? req->extra : NULL;
        plan->starts[rank] = plan->count;
        if (sched)
            add(plan, rank, sched);
        rc = !req;
        if (req)
            weft_req_free(req);
    }
    plan->starts[ranks] = plan->count;
    number_messages(plan);
    recorder_close(&self);
    if (rc)
        clock_plan_close(plan);
    return rc;
}

void clock_plan_close(clock_plan *plan) { free(plan->steps), free(plan->starts), free(plan->pairs), free(plan->table); }

uint32_t clock_plan_steps(const weft_coll_query *query, weft_sched_algorithm *algorithm)
{
    recorder self;
    weft_req *req;
    uint32_t steps = 0;

    recorder_open(&self, query, algorithm);
    req = record(&self, query->ranks > 1);
    if (req) {
        steps = ((weft_sched *)req->extra)->step_count;
        weft_req_free(req);
    }
    recorder_close(&self);
    return steps;
}
