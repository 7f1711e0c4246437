/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_pipeline: reduces the vectors of all ranks at the root, in segments along a chain or a binary tree (pipeline.h). Called through
 * select.c. A rank reduces a segment as lower child, itself, upper child: in rank order, if the tree is in order.
 */
#include "collectives/algorithms.h"
#include "collectives/pipeline.h"

typedef struct flow {
    weft_pipeline_node node;
    const void *own; /* this rank's data */
    void *lower;     /* slots for the lower child's segments */
    void *sum;       /* the upper child's segments, which become the result: slots, or, at the root, the result's own place */
    bool is_in_place; /* sum is the result's own place */
    uint64_t count, segment;
    const weft_type *type;
    weft_sched_message from_lower[WEFT_PIPELINE_AHEAD], from_upper[WEFT_PIPELINE_AHEAD]; /* under way, by number of the segment */
    weft_sched_message sent[WEFT_PIPELINE_SLOTS];
} flow;

static bool has(uint32_t rank) { return rank != WEFT_PIPELINE_NONE; }

static uint64_t length_at(const flow *f, uint64_t at) { return f->count - at < f->segment ? f->count - at : f->segment; }

static void *slot_at(const flow *f, void *slots, uint64_t at)
{
    return weft_sched_at(slots, f->type, at / f->segment % WEFT_PIPELINE_SLOTS * f->segment);
}

static void *sum_at(const flow *f, uint64_t at) { return f->is_in_place ? weft_sched_at(f->sum, f->type, at) : slot_at(f, f->sum, at); }

/* The slot may still be sent from. */
static void recv_segment(weft_sched *sched, flow *f, uint64_t at)
{
    uint64_t number = at / f->segment;

    if (at >= f->count)
        return;
    weft_sched_await(sched, f->sent[number % WEFT_PIPELINE_SLOTS]);
    if (has(f->node.lower))
        f->from_lower[number % WEFT_PIPELINE_AHEAD] = weft_sched_recv(sched, f->node.lower, slot_at(f, f->lower, at), length_at(f, at),
                                                                      f->type);
    if (has(f->node.upper))
        f->from_upper[number % WEFT_PIPELINE_AHEAD] = weft_sched_recv(sched, f->node.upper, sum_at(f, at), length_at(f, at), f->type);
}

static void await_segment(weft_sched *sched, const flow *f, uint64_t at)
{
    uint64_t number = at / f->segment;

    if (has(f->node.lower))
        weft_sched_await(sched, f->from_lower[number % WEFT_PIPELINE_AHEAD]);
    if (has(f->node.upper))
        weft_sched_await(sched, f->from_upper[number % WEFT_PIPELINE_AHEAD]);
}

/* Returns the reduced segment. */
static const void *reduce_segment(weft_sched *sched, const flow *f, uint64_t at)
{
    const void *own = weft_sched_at(f->own, f->type, at);
    uint64_t n = length_at(f, at);

    if (!has(f->node.lower) && !has(f->node.upper))
        return own;
    if (has(f->node.upper))
        weft_sched_reduce(sched, own, sum_at(f, at), n, f->type);
    else
        weft_sched_copy(sched, sum_at(f, at), n, f->type, own, n, f->type);
    if (has(f->node.lower))
        weft_sched_reduce(sched, slot_at(f, f->lower, at), sum_at(f, at), n, f->type);
    return sum_at(f, at);
}

static void flow_open(weft_sched *sched, const weft_coll *args, flow *f)
{
    bool is_root = !has(f->node.parent);

    f->own = args->in_place && is_root ? args->recvbuf : args->sendbuf;
    f->count = args->recvcount;
    f->type = args->recvtype;
    f->segment = weft_pipeline_segment(sched, f->count, f->type);
    if (has(f->node.lower))
        f->lower = weft_sched_temp(sched, WEFT_PIPELINE_SLOTS * f->segment, f->type);
    f->is_in_place = is_root && (!args->in_place || !has(f->node.upper)); /* else the own data is there until it is reduced */
    if (f->is_in_place)
        f->sum = args->recvbuf;
    else if (has(f->node.lower) || has(f->node.upper))
        f->sum = weft_sched_temp(sched, WEFT_PIPELINE_SLOTS * f->segment, f->type);
    for (int i = 0; i < WEFT_PIPELINE_SLOTS; i++)
        f->sent[i] = WEFT_SCHED_NO_MESSAGE;
}

static void run(weft_sched *sched, const weft_coll *args, weft_pipeline_node node)
{
    flow f = {.node = node};

    flow_open(sched, args, &f);
    for (uint64_t i = 0; i < WEFT_PIPELINE_AHEAD && !sched->rc; i++)
        recv_segment(sched, &f, i * f.segment);
    for (uint64_t at = 0; at < f.count && !sched->rc; at += f.segment) {
        weft_sched_message *sent = &f.sent[at / f.segment % WEFT_PIPELINE_SLOTS];
        uint64_t n = length_at(&f, at);
        const void *sum;
        await_segment(sched, &f, at);
        recv_segment(sched, &f, at + WEFT_PIPELINE_AHEAD * f.segment);
        sum = reduce_segment(sched, &f, at);
        if (!has(node.parent)) {
            weft_sched_copy(sched, weft_sched_at(args->recvbuf, f.type, at), n, f.type, sum, n, f.type);
            continue;
        }
        weft_sched_await(sched, *sent); /* bounds the sends of a rank without children */
        *sent = weft_sched_send(sched, node.parent, sum, n, f.type);
    }
}

void weft_reduce_chain(weft_sched *sched, const weft_coll *args)
{
    run(sched, args, weft_pipeline_chain(sched->size, sched->rank, (uint32_t)args->root));
}

void weft_reduce_chain_order(weft_sched *sched, const weft_coll *args)
{
    run(sched, args, weft_pipeline_chain_in_order(sched->size, sched->rank, (uint32_t)args->root));
}

void weft_reduce_binary(weft_sched *sched, const weft_coll *args)
{
    run(sched, args, weft_pipeline_binary(sched->size, sched->rank, (uint32_t)args->root));
}

void weft_reduce_binary_order(weft_sched *sched, const weft_coll *args)
{
    run(sched, args, weft_pipeline_binary_in_order(sched->size, sched->rank, (uint32_t)args->root));
}
