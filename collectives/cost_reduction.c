/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_reduction: see cost.h. Reductions by messages.
 */
#include "collectives/cost.h"
#include "collectives/cost_terms.h"

/* ---- to one ---- */

double weft_cost_reduce_binomial(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 2, t.bytes, t.reduce);
}

double weft_cost_reduce_knomial_4(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 4, t.bytes, t.reduce);
}

double weft_cost_reduce_knomial_8(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_tree(&t, 8, t.bytes, t.reduce);
}

double weft_cost_reduce_chain(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_pipeline(&t, t.bytes, t.reduce);
}

double weft_cost_reduce_binary(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_binary(&t, weft_terms_log2(t.ranks + 1) - 1, t.bytes, t.reduce, true);
}

/* From rank 0: all others are on one side of it. */
double weft_cost_reduce_binary_order(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_binary(&t, weft_terms_log2(t.ranks), t.bytes, t.reduce, true);
}

double weft_cost_reduce_rabenseifner(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_halving(&t, t.bytes / t.ranks) + weft_terms_halves(&t, t.bytes / t.ranks);
}

/* Each rank gets the others' parts of its block and reduces them; in order, the last rank first copies its own. */
static double reduce_own_block(const weft_terms *t)
{
    double block = t->bytes / t->ranks;
    return weft_terms_all_to_all(t, block) + (t->ranks - 1.0) * block * t->reduce + (t->is_in_order ? block * t->copy : 0);
}

double weft_cost_reduce_blocks(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double waits = t.node_ranks >= t.ranks ? 2 * t.node->latency_ns : 0; /* measured: twice all ranks wait for the slowest */
    return waits + reduce_own_block(&t) + weft_terms_all_to_one(&t, t.bytes / t.ranks);
}

/* ---- to all ---- */

/* Among the most ranks f k^m with f < k. The others are folded into them first, and get the result last. */
static double multiplying(const weft_terms *t, uint32_t k)
{
    uint64_t power = 1;
    double time = (t->ranks > 2 ? 2 * t->bytes * t->copy : 0) + weft_terms_turns(t, (k - 1) * t->bytes);

    while (power * k <= t->ranks)
        power *= k;
    power *= t->ranks / power;
    if (power < t->ranks)
        time += 2 * weft_terms_message(t, 1, t->bytes) + t->bytes * t->reduce;
    for (uint64_t stride = 1, radix; stride < power; stride *= radix) {
        uint64_t distance = power < t->ranks ? 2 * stride : stride; /* of each pair one is left out */
        radix = power / stride < k ? power / stride : k;
        time += weft_terms_exchanges(t, (uint32_t)distance, (uint32_t)radix - 1, t->bytes) + (double)(radix - 1) * t->bytes * t->reduce;
    }
    return time;
}

double weft_cost_allreduce_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return multiplying(&t, 2);
}

double weft_cost_allreduce_multiplying_3(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return multiplying(&t, 3);
}

double weft_cost_allreduce_multiplying_4(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return multiplying(&t, 4);
}

double weft_cost_allreduce_multiplying_8(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return multiplying(&t, 8);
}

double weft_cost_allreduce_rabenseifner(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_halving(&t, t.bytes / t.ranks) + weft_terms_multiplying(&t, t.bytes / t.ranks, 2);
}

/* Of two ranks between which the kernel copies fast the copy of longer blocks was measured to cost less than what doubling reduces twice. */
#define COPIED_MIN 393216 /* bytes */
double weft_cost_allreduce_blocks(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    t.is_in_order = t.is_in_order && !(weft_coll_is_copied_pair(query->params, query->ranks) && query->bytes > COPIED_MIN);
    return reduce_own_block(&t) + weft_terms_all_to_all(&t, t.bytes / t.ranks);
}

double weft_cost_allreduce_blocks_ring(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return reduce_own_block(&t) + weft_terms_ring(&t, t.bytes / t.ranks);
}

static double reduce_scatter_ring(const weft_terms *t)
{
    double block = t->bytes / t->ranks;
    return t->bytes * t->copy + weft_terms_reducing_ring(t, block);
}

double weft_cost_allreduce_ring(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return reduce_scatter_ring(&t) + weft_terms_ring(&t, t.bytes / t.ranks);
}

/* ---- to all, in blocks ---- */

double weft_cost_reduce_scatter_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return multiplying(&t, 2) + t.bytes / t.ranks * t.copy;
}

double weft_cost_reduce_scatter_linear(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return reduce_own_block(&t);
}

double weft_cost_reduce_scatter_halving(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return weft_terms_halving(&t, t.bytes / t.ranks) + t.bytes / t.ranks * t.copy;
}

double weft_cost_reduce_scatter_ring(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return reduce_scatter_ring(&t);
}

/* ---- scans ---- */

/* Rounds of doubled distances; is_shifted: the first distance twice. Data moves up only, so that the longest path has a message between
 * nodes for each further node at most. The own data is copied while the first message is on its way from another node; within one, the CPU
 * copies that as well. */
static double scan_rounds(const weft_terms *t, uint32_t rounds, bool is_shifted)
{
    uint32_t borders = (t->ranks - 1) / t->node_ranks;
    double copy = t->bytes * t->copy, time = weft_terms_turns(t, t->bytes);

    for (uint32_t i = 0; i < rounds; i++, copy = 0) {
        bool is_near = rounds - i > borders;
        uint32_t distance = (uint32_t)1 << (i && is_shifted ? i - 1 : i);
        double message = is_near ? t->node->latency_ns + t->bytes * t->node_gap : weft_terms_round(t, distance, t->bytes);
        time += is_near ? message + copy : weft_terms_max(message, copy);
    }
    return time;
}

double weft_cost_scan_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    uint32_t rounds = weft_terms_log2(t.ranks);
    return scan_rounds(&t, rounds, false) + rounds * t.bytes * t.reduce;
}

/* The data goes to the next rank; then a scan among all but rank 0. */
double weft_cost_exscan_doubling(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    uint32_t rounds = weft_terms_log2(t.ranks - 1);
    return scan_rounds(&t, 1 + rounds, true) + rounds * t.bytes * t.reduce;
}

double weft_cost_scan_chain(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return t.bytes * t.copy + weft_terms_pipeline(&t, t.bytes, t.reduce);
}
