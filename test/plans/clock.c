/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clock: see clock.h. Called by test_clock.c.
 * Invariant: ranks run in the order of their clocks, one step at a time, so that ports serve messages nearly in the order of time.
 */
#include "clock.h"

#include <stdlib.h>
#include <string.h>

#include "clock_plan.h"

uint64_t clock_steps;

#define NOT_SENT (-1)
#define NO_MESSAGE UINT32_MAX

typedef struct rank_clock {
    double now, sent; /* sent: until its ports have sent all */
    uint32_t at;      /* next step, in plan->steps */
    uint32_t window;  /* first step since the last fence */
    uint32_t waits;   /* for this message; NO_MESSAGE: it does not wait */
} rank_clock;

typedef struct run {
    const clock_plan *plan;
    const weft_coll_params *params;
    uint32_t node_ranks;
    rank_clock *ranks;
    double *out, *in; /* by node: until its port is free */
    double *arrivals; /* by message; NOT_SENT: not sent yet */
    double *ends;     /* by step: of a send: until its port has sent it */
    bool *is_over;    /* by step: of a receive: it has been awaited */
    uint32_t *heap, heap_count;
} run;

/* ---- ranks by their clocks ---- */

static bool is_before(const run *r, uint32_t a, uint32_t b)
{
    return r->ranks[a].now < r->ranks[b].now || (r->ranks[a].now <= r->ranks[b].now && a < b);
}

static void push(run *r, uint32_t rank)
{
    uint32_t i = r->heap_count++;

    for (; i && is_before(r, rank, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = rank;
}

static uint32_t pop(run *r)
{
    uint32_t top = r->heap[0], moved = r->heap[--r->heap_count], i = 0;

    for (uint32_t child; (child = 2 * i + 1) < r->heap_count; i = child) {
        if (child + 1 < r->heap_count && is_before(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (is_before(r, moved, r->heap[child]))
            break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = moved;
    return top;
}

/* ---- steps ---- */

static double gap(uint32_t mbyte_per_s) { return 1000.0 / mbyte_per_s; }
static double later(double a, double b) { return a > b ? a : b; }

static uint32_t message_of(const run *r, const clock_step *step) { return r->plan->pairs[step->pair].first + step->nth; }

static void send(run *r, rank_clock *rank, const clock_step *step)
{
    const clock_pair *pair = &r->plan->pairs[step->pair];
    uint32_t from = pair->from / r->node_ranks, to = pair->to / r->node_ranks, message = message_of(r, step);
    const weft_coll_link *link = from == to ? &r->params->node : &r->params->net;
    double wire = link->latency_ns - 2.0 * link->overhead_ns, arrival;

    if (step->nth >= pair->receives)
        abort(); /* the algorithm is wrong: test_plans says how */
    rank->now += link->overhead_ns;
    arrival = rank->now + wire;
    if (from != to) {
        double each = (double)step->bytes * gap(link->mbyte_per_s), begin = later(rank->now, r->out[from]);
        r->ends[step - r->plan->steps] = r->out[from] = begin + each;
        rank->sent = later(rank->sent, begin + each);
        arrival = r->in[to] = later(begin + wire, r->in[to]) + each;
    }
    r->arrivals[message] = arrival;
    if (r->ranks[pair->to].waits == message) {
        r->ranks[pair->to].waits = NO_MESSAGE;
        push(r, pair->to);
    }
}

/* Whether a received message has been sent; else the rank waits for it. */
static bool can_receive(const run *r, rank_clock *rank, const clock_step *step)
{
    uint32_t message = message_of(r, step);

    if (r->arrivals[message] < 0)
        rank->waits = message;
    return r->arrivals[message] >= 0;
}

/* Time that a receive keeps the CPU. */
static double busy(const run *r, const clock_step *step)
{
    const clock_pair *pair = &r->plan->pairs[step->pair];

    if (pair->from / r->node_ranks != pair->to / r->node_ranks)
        return r->params->net.overhead_ns;
    return r->params->node.overhead_ns + (double)step->bytes * gap(r->params->node.mbyte_per_s);
}

static bool await(run *r, rank_clock *rank, const clock_step *step)
{
    uint32_t index = r->plan->steps[rank->at].target;

    if (step->op == WEFT_STEP_SEND) {
        rank->now = later(rank->now, r->ends[index]);
        return true;
    }
    if (r->is_over[index])
        return true;
    if (!can_receive(r, rank, step))
        return false;
    rank->now = later(rank->now, r->arrivals[message_of(r, step)]) + busy(r, step);
    r->is_over[index] = true;
    return true;
}

typedef struct arrival {
    double at, busy;
} arrival;

static int by_time(const void *a, const void *b)
{
    double x = ((const arrival *)a)->at, y = ((const arrival *)b)->at;
    return (x > y) - (x < y);
}

static bool is_open(const run *r, uint32_t index) { return r->plan->steps[index].op == WEFT_STEP_RECV && !r->is_over[index]; }

/* A fence: takes the messages in the order of their arrival. False: the rank waits for one that has not been sent. */
static bool pass(run *r, rank_clock *rank)
{
    arrival few[64], *all = few;
    uint32_t count = 0;

    for (uint32_t i = rank->window; i < rank->at; i++)
        if (is_open(r, i) && !can_receive(r, rank, &r->plan->steps[i]))
            return false;
    if (rank->at - rank->window > 64)
        all = malloc((rank->at - rank->window) * sizeof *all);
    for (uint32_t i = rank->window; i < rank->at; i++)
        if (is_open(r, i))
            all[count++] = (arrival){r->arrivals[message_of(r, &r->plan->steps[i])], busy(r, &r->plan->steps[i])};
    qsort(all, count, sizeof *all, by_time);
    for (uint32_t i = 0; i < count; i++)
        rank->now = later(rank->now, all[i].at) + all[i].busy;
    rank->now = later(rank->now, rank->sent);
    rank->window = rank->at + 1;
    if (all != few)
        free(all);
    return true;
}

/* Runs a rank until it waits, ends, or another one is earlier. */
static void run_rank(run *r, uint32_t index)
{
    rank_clock *rank = &r->ranks[index];

    while (rank->at < r->plan->starts[index + 1]) {
        const clock_step *step = &r->plan->steps[rank->at];
        clock_steps++;
        if (step->op == WEFT_STEP_FENCE ? !pass(r, rank) : step->op == WEFT_STEP_AWAIT && !await(r, rank, &r->plan->steps[step->target]))
            return;
        if (step->op == WEFT_STEP_SEND) {
            send(r, rank, step);
        } else if (step->op == WEFT_STEP_COPY) {
            rank->now += (double)step->bytes * gap(r->params->copy_mbyte_per_s);
        } else if (step->op == WEFT_STEP_REDUCE) {
            rank->now += (double)step->bytes * gap(r->params->reduce_mbyte_per_s);
        }
        rank->at++;
        if (r->heap_count && is_before(r, r->heap[0], index)) {
            push(r, index);
            return;
        }
    }
}

static double play(const weft_coll_query *query, const clock_plan *plan)
{
    run r = {.plan = plan, .params = query->params, .node_ranks = (query->ranks + query->nodes - 1) / query->nodes};
    double end = 0;

    r.ranks = calloc(query->ranks, sizeof *r.ranks);
    r.out = calloc(query->nodes + 1, sizeof *r.out);
    r.in = calloc(query->nodes + 1, sizeof *r.in);
    r.arrivals = malloc((plan->messages + 1) * sizeof *r.arrivals);
    for (uint32_t i = 0; i < plan->messages; i++)
        r.arrivals[i] = NOT_SENT;
    r.ends = calloc(plan->count + 1, sizeof *r.ends);
    r.is_over = calloc(plan->count + 1, sizeof *r.is_over);
    r.heap = malloc(query->ranks * sizeof *r.heap);
    for (uint32_t i = 0; i < query->ranks; i++) {
        r.ranks[i].at = r.ranks[i].window = plan->starts[i];
        r.ranks[i].waits = NO_MESSAGE;
        push(&r, i);
    }
    while (r.heap_count)
        run_rank(&r, pop(&r));
    for (uint32_t i = 0; i < query->ranks; i++) {
        if (r.ranks[i].at != plan->starts[i + 1])
            abort(); /* deadlock */
        end = later(end, r.ranks[i].now);
    }
    free(r.ranks), free(r.out), free(r.in), free(r.arrivals), free(r.ends), free(r.is_over), free(r.heap);
    return end;
}

/* ---- algorithms in which all ranks, each on its own node, take the same steps at the same time ---- */

static bool is_symmetric(const weft_coll_query *query, const weft_coll_rule *rule)
{
    static const char *const any[] = {"Bruck", "ring", "pairwise", "dissemination", "neighbour"};
    static const char *const power_of_2[] = {"doubling", "halving", "Rabenseifner", "multiplying 2", "multiplying 4"};

    if (query->nodes != query->ranks || query->kind == WEFT_COLL_SCAN || query->kind == WEFT_COLL_EXSCAN ||
        query->kind == WEFT_COLL_REDUCE || query->kind == WEFT_COLL_BCAST)
        return false;
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strstr(rule->name, any[i]))
            return true;
    for (size_t i = 0; i < sizeof power_of_2 / sizeof *power_of_2; i++)
        if (!strcmp(rule->name, power_of_2[i]))
            return !(query->ranks & (query->ranks - 1));
    return false;
}

/* One rank's steps (the two that are tried differ in a copy of recursive doubling): the messages that it receives arrive as those that it
 * sends, one by one. */
static double play_one(const weft_coll_query *query, const clock_plan *plan, uint32_t rank)
{
    const weft_coll_link *net = &query->params->net;
    double now = 0, out = 0, wire = net->latency_ns - 2.0 * net->overhead_ns;
    double *sent = calloc(plan->count + 1, sizeof *sent);
    uint32_t sends = 0, receives = 0, begun = 0; /* receives: ended */

    for (uint32_t i = plan->starts[rank]; i < plan->starts[rank + 1]; i++, clock_steps++) {
        const clock_step *step = &plan->steps[i];
        bool is_fence = step->op == WEFT_STEP_FENCE;
        if (step->op == WEFT_STEP_SEND) {
            now += net->overhead_ns;
            out = sent[sends++] = later(now, out) + (double)step->bytes * gap(net->mbyte_per_s);
        } else if (step->op == WEFT_STEP_RECV) {
            begun++;
        } else if (is_fence || (step->op == WEFT_STEP_AWAIT && plan->steps[step->target].op == WEFT_STEP_RECV)) {
            for (uint32_t end = is_fence ? begun : receives + 1; receives < end; receives++)
                now = later(now, sent[receives] + wire) + net->overhead_ns;
            now = is_fence ? later(now, out) : now;
        } else if (step->op != WEFT_STEP_AWAIT) {
            now += (double)step->bytes *
                   gap(step->op == WEFT_STEP_COPY ? query->params->copy_mbyte_per_s : query->params->reduce_mbyte_per_s);
        }
    }
    free(sent);
    return now;
}

/* ---- one call ---- */

#define STEPS_MAX 250000u

double clock_time_all(const weft_coll_query *query, const weft_coll_rule *rule, bool is_one)
{
    clock_plan plan;
    double time;

    if (clock_plan_open(query, rule->algorithm, is_one ? 2 : query->ranks, &plan))
        return -1;
    time = is_one ? later(play_one(query, &plan, 0), play_one(query, &plan, 1)) : play(query, &plan);
    clock_plan_close(&plan);
    return time;
}

static bool is_of_blocks(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_GATHER || kind == WEFT_COLL_SCATTER || kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL;
}

/* Whether its time grows with the logarithm of the ranks, for a vector of so many bytes. */
static bool is_of_rounds(const weft_coll_query *query, const weft_coll_rule *rule)
{
    static const char *const names[] = {"nomial", "binary", "binomial", "doubling", "halving", "Rabenseifner", "multiplying", "hier"};

    for (size_t i = 0; !is_of_blocks(query->kind) && query->kind != WEFT_COLL_ALLGATHERV && i < sizeof names / sizeof *names; i++)
        if (strstr(rule->name, names[i]))
            return true;
    return false;
}

/* The same call for 1 of 2^shift ranks, on as many nodes less: of a vector in rounds or a pipeline, with all bytes; else with equal
 * blocks. */
static weft_coll_query fewer(const weft_coll_query *query, const weft_coll_rule *rule, uint32_t shift)
{
    weft_coll_query part = *query;

    part.ranks >>= shift;
    part.nodes = query->nodes >> shift ? query->nodes >> shift : 1;
    if (!is_of_blocks(query->kind) && !strstr(rule->name, "chain") && !is_of_rounds(query, rule))
        part.bytes >>= shift;
    return part;
}

double clock_time(const weft_coll_query *query, const weft_coll_rule *rule)
{
    weft_coll_query at = *query, half;
    uint32_t shift = 0;
    double time, less;

    if (is_symmetric(query, rule))
        return clock_time_all(query, rule, true);
    while (at.ranks > 32 && at.nodes > 2 && (uint64_t)clock_plan_steps(&at, rule->algorithm) * at.ranks > STEPS_MAX)
        at = fewer(query, rule, ++shift);
    if (shift && (query->kind == WEFT_COLL_ALLTOALL || (query->kind != WEFT_COLL_ALLREDUCE && strstr(rule->name, "multileader"))))
        return -1; /* no straight line */
    time = clock_time_all(&at, rule, false);
    if (!shift || time < 0)
        return time;
    half = fewer(query, rule, shift + 1);
    less = clock_time_all(&half, rule, false);
    if (is_of_rounds(query, rule))
        return time + (time - less) * shift;
    return time + (time - less) * (query->ranks - at.ranks) / (at.ranks - half.ranks);
}
