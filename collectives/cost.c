/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost: see cost.h. Algorithms of messages without reductions.
 */
#include "collectives/cost.h"

#include <math.h>

#include "collectives/cost_terms.h"

/* ---- barrier ---- */

static double dissemination(const weft_coll_query *query, uint32_t k)
{
    weft_terms t = weft_terms_of(query);
    double time = k == 2 ? weft_terms_border(&t) : 0;

    for (uint64_t distance = 1; distance < t.ranks; distance *= k) {
        uint64_t others = (t.ranks - 1) / distance;
        time += k == 2 ? weft_terms_doubled_round(&t, (uint32_t)distance, 0)
                       : weft_terms_rounds(&t, (uint32_t)distance, others < k - 1 ? (uint32_t)others : k - 1, 0);
    }
    return time;
}

double weft_cost_barrier_dissemination(const weft_coll_query *query) { return dissemination(query, 2); }
double weft_cost_barrier_dissemination_4(const weft_coll_query *query) { return dissemination(query, 4); }
double weft_cost_barrier_dissemination_8(const weft_coll_query *query) { return dissemination(query, 8); }

double weft_cost_barrier_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double time = 0;

    for (uint32_t i = 0; i < weft_terms_log2(t.ranks); i++)
        time += weft_terms_exchange(&t, (uint32_t)1 << i, 0);
    return time;
}

/* ---- bcast ---- */

double weft_cost_bcast_binomial(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 2, t.bytes, 0);
}

double weft_cost_bcast_knomial_4(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 4, t.bytes, 0);
}

double weft_cost_bcast_knomial_8(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 8, t.bytes, 0);
}

double weft_cost_bcast_chain(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_pipeline(&t, t.bytes, 0);
}

double weft_cost_bcast_binary(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_binary(&t, weft_terms_log2(t.ranks + 1) - 1, t.bytes, 0, false);
}

double weft_cost_bcast_scatter_ring(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    if (weft_coll_query_is_crowd(query)) /* every byte is copied twice, and nothing at the same time */
        return INFINITY;
    return weft_terms_halves(&t, t.bytes / t.ranks) + weft_terms_ring(&t, t.bytes / t.ranks);
}

double weft_cost_bcast_scatter_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_halves(&t, t.bytes / t.ranks) + weft_terms_multiplying(&t, t.bytes / t.ranks, 2);
}

/* ---- blocks ---- */

double weft_cost_gather_linear(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_all_to_one(&t, t.bytes);
}

/* A binomial tree of which each edge carries all blocks of its subtree. */
double weft_cost_gather_binomial(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double time = (t.ranks - 1.0) * t.bytes * t.copy;

    for (uint32_t i = 0; i < weft_terms_log2(t.ranks); i++) {
        uint32_t bit = (uint32_t)1 << i;
        time += weft_terms_message(&t, bit, t.bytes * weft_terms_min(bit, t.ranks - bit));
    }
    return time;
}

double weft_cost_scatter_linear(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_one_to_all(&t, t.bytes);
}

double weft_cost_scatter_binomial(const weft_coll_query *query) { return weft_cost_gather_binomial(query); }

/* Those of allgather and allgatherv: of equal blocks, as many bytes each. */
static double ring(const weft_terms *t, double block) { return weft_terms_ring(t, block); }

static double bruck(const weft_terms *t, double block)
{
    double time = t->ranks * block * t->copy + weft_terms_border(t);

    for (uint32_t have = 1; have < t->ranks; have = have < t->ranks - have ? have * 2 : t->ranks)
        time += weft_terms_doubled_round(t, have, block * weft_terms_min(have, t->ranks - have));
    return time;
}

static double doubling(const weft_terms *t, double block) { return block * t->copy + weft_terms_multiplying(t, block, 2); }
static double multiplying_4(const weft_terms *t, double block) { return block * t->copy + weft_terms_multiplying(t, block, 4); }
static double multiplying_8(const weft_terms *t, double block) { return block * t->copy + weft_terms_multiplying(t, block, 8); }

/* The pair first; then two blocks in each round, in one message or in two. Every second round goes to the next pair; at the borders of a
 * node that is on another one, and both borders share its port. */
static double exchange_pairs(const weft_terms *t, double block, uint32_t each)
{
    double far_gap = 2 * block * t->net_gap, near_gap = 2 * block * t->node_gap, more = each - 1.0;
    double far = t->net->latency_ns + far_gap + more * weft_terms_max(0, t->net->overhead_ns - far_gap / 2);
    double near = weft_terms_max(t->node->latency_ns + more * t->node->overhead_ns, 2.0 * each * t->node->overhead_ns) + near_gap;
    uint32_t rounds = t->ranks / 2 - 1, outer = (rounds + 1) / 2;
    double time = rounds * far;

    if (t->node_ranks >= t->ranks)
        time = rounds * near;
    else if (t->node_ranks > 1)
        time = weft_terms_max(rounds * near, (rounds - outer) * near + outer * (far + far_gap));
    return block * t->copy + weft_terms_exchange(t, 1, block) + time;
}

#define ALLGATHER(algorithm) \
    double weft_cost_allgather_##algorithm(const weft_coll_query *query) \
    { \
        weft_terms t = weft_terms_of(query); \
        return algorithm(&t, t.bytes); \
    } \
    double weft_cost_allgatherv_##algorithm(const weft_coll_query *query) \
    { \
        weft_terms t = weft_terms_of(query); \
        return algorithm(&t, t.bytes / t.ranks); \
    }

/* Where ranks share CPUs and the kernel copies messages: measured to take 0.6 to 0.75 of a ring's time, with one wait, not one for each
 * block, and more than slots up to the bound of these. Not measured elsewhere. */
static double linear(const weft_coll_query *query, uint32_t blocks, double by_slots)
{
    weft_terms t = weft_terms_of(query);
    bool may = query->params->shares_cpus && query->params->is_copied_once;

    if (!may || (query->has & WEFT_NEED_AREA && isfinite(by_slots)))
        return INFINITY;
    return 0.7 * weft_terms_ring(&t, t.bytes / blocks);
}

double weft_cost_allgather_linear(const weft_coll_query *query) { return linear(query, 1, weft_cost_area_allgather(query)); }
double weft_cost_allgatherv_linear(const weft_coll_query *query) { return linear(query, query->ranks, weft_cost_area_allgatherv(query)); }

ALLGATHER(ring)
ALLGATHER(bruck)
ALLGATHER(doubling)
ALLGATHER(multiplying_4)
ALLGATHER(multiplying_8)

double weft_cost_allgather_neighbor(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return exchange_pairs(&t, t.bytes, 1);
}

double weft_cost_allgatherv_neighbor(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return exchange_pairs(&t, t.bytes / t.ranks, 2);
}

double weft_cost_alltoall_linear(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return t.bytes * t.copy + weft_terms_all_to_all(&t, t.bytes);
}

/* Of p - 1 rounds, those to the ranks of the own node are partly inside: a round of distance d has min(d, node_ranks) crossing messages. */
double weft_cost_alltoall_pairwise(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double time = t.bytes * t.copy, rounds = t.ranks - 1.0, mixed = 0;

    for (uint32_t i = 1; i < t.node_ranks && i < t.ranks && t.node_ranks < t.ranks; i++, mixed += 2) /* distances i and ranks - i */
        time += 2 * weft_terms_round(&t, i, t.bytes);
    return rounds > mixed ? time + (rounds - mixed) * weft_terms_round(&t, t.ranks, t.bytes) : time;
}

double weft_cost_alltoall_bruck(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double time = 2 * t.ranks * t.bytes * t.copy + weft_terms_border(&t);

    for (uint64_t bit = 1; bit < t.ranks; bit *= 2) {
        uint64_t whole = t.ranks / (2 * bit) * bit, rest = t.ranks % (2 * bit);
        double bytes = (double)(whole + (rest > bit ? rest - bit : 0)) * t.bytes;
        const weft_coll_link *link = weft_terms_link(&t, (uint32_t)bit);
        double alone = link->latency_ns + bytes * (link == t.net ? t.net_gap : t.node_gap) + 2 * bytes * t.copy;
        time += weft_terms_max(weft_terms_doubled_round(&t, (uint32_t)bit, bytes), alone); /* while the port is busy ranks copy */
        time += link->overhead_ns; /* of many short copies */
    }
    return time;
}

double weft_cost_neighbors(const weft_coll_query *query) { return query->params->net.latency_ns; }
