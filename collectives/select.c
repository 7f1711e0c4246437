/* SPDX-License-Identifier: BSD-3-Clause
 *
 * select: the table of algorithms, and the choice among them. Called by choice.c, cost.c, and tools and tests that print the table.
 * Invariant: of each operation one rule has no needs, no limit and a finite cost for every query.
 */
#include "collectives/select.h"

#include <math.h>

#include "base/macros.h"
#include "collectives/algorithms.h"
#include "collectives/cost.h"

#define COMMUTATIVE WEFT_NEED_COMMUTATIVE
#define ORDER WEFT_NEED_ORDER
#define POWER_OF_2 WEFT_NEED_POWER_OF_2
#define AREA WEFT_NEED_AREA
#define NODES WEFT_NEED_NODES
#define EVEN WEFT_NEED_EVEN
#define NETWORK WEFT_NEED_NETWORK
#define MANY WEFT_NEED_MANY
#define CROWD WEFT_NEED_CROWD
#define ANY UINT32_MAX
#define ONE_LEADER "only one leader per node exchanges messages with other nodes"

#define RULES_MAX 20
#define AT_ONCE WEFT_COLL_AT_ONCE

/* ---- the table: name, algorithm, cost, needs, when, most ranks, reason ---- */

#define ALLGATHER_RULES(kind, op) \
    {kind, "linear", weft_allgather_linear, weft_cost_##op##_linear, 0, 0, AT_ONCE, "all messages at once, where ranks share CPUs"}, \
    {kind, "ring", weft_allgather_ring, weft_cost_##op##_ring, 0, 0, ANY, "neighbours only, each byte once on each link"}, \
    {kind, "Bruck", weft_allgather_bruck, weft_cost_##op##_bruck, 0, 0, ANY, "log2(ranks) rounds for any number of ranks"}, \
    {kind, "multiplying 2", weft_allgather_doubling, weft_cost_##op##_doubling, 0, NETWORK, ANY, "log2(ranks) exchanges, no copies"}, \
    {kind, "multiplying 4", weft_allgather_multiplying_4, weft_cost_##op##_multiplying_4, 0, NETWORK, ANY, \
     "log4(ranks) rounds of 3 messages"}, \
    {kind, "multiplying 8", weft_allgather_multiplying_8, weft_cost_##op##_multiplying_8, 0, NETWORK, ANY, \
     "log8(ranks) rounds of 7 messages"}, \
    {kind, "neighbour exchange", weft_allgather_neighbor, weft_cost_##op##_neighbor, EVEN, NETWORK, ANY, \
     "neighbours only, ranks / 2 rounds"}, \
    {kind, "multileader", weft_allgather_multileader, weft_cost_##op##_multileader, NODES, 0, ANY, \
     "each leader of a node exchanges one part"}

#define REDUCE_SCATTER_RULES(kind) \
    {kind, "shmcoll", NULL, weft_cost_area_reduce_scatter, AREA, 0, ANY, "each rank reduces its block from the others' slots"}, \
    {kind, "blocks", weft_reduce_scatter_linear, weft_cost_reduce_scatter_linear, 0, 0, AT_ONCE, \
     "all ranks reduce at once, each its block"}, \
    {kind, "doubling", weft_reduce_scatter_doubling, weft_cost_reduce_scatter_doubling, 0, 0, ANY, \
     "log2(ranks) exchanges of all bytes"}, \
    {kind, "halving", weft_reduce_scatter_halving, weft_cost_reduce_scatter_halving, COMMUTATIVE, NETWORK, ANY, \
     "log2(ranks) exchanges, each byte once"}, \
    {kind, "halving", weft_reduce_scatter_halving, weft_cost_reduce_scatter_halving, COMMUTATIVE, CROWD, ANY, \
     "log2(ranks) waits, where ranks wait for CPUs"}, \
    {kind, "ring", weft_reduce_scatter_ring, weft_cost_reduce_scatter_ring, COMMUTATIVE, 0, ANY, "neighbours only"}, \
    {kind, "blocks", weft_reduce_scatter_linear, weft_cost_reduce_scatter_linear, 0, ORDER, ANY, "the operator does not commute"}

#define NEIGHBOR_RULE(kind, algorithm) \
    [kind] = {{kind, "linear", algorithm, weft_cost_neighbors, 0, 0, ANY, "one message along each edge, all at once"}}
#define PAIRS_AREA_RULE(kind) \
    {kind, "shmcoll", NULL, weft_cost_area_alltoallv, AREA, 0, ANY, "each rank writes once and reads its blocks; long ones are sent"}
#define PAIRS_RULES(kind) \
    {kind, "linear", weft_alltoall_linear, weft_cost_alltoall_linear, 0, 0, AT_ONCE, "all messages at once"}, \
    {kind, "pairwise", weft_alltoall_pairwise, weft_cost_alltoall_pairwise, 0, 0, ANY, \
     "one peer at a time: no rank receives from all at once"}

static const weft_coll_rule rules[WEFT_COLL_KINDS][RULES_MAX] = {
    [WEFT_COLL_BARRIER] = {
        {WEFT_COLL_BARRIER, "shmcoll", NULL, weft_cost_area_barrier, AREA, 0, ANY, "a flag in shared memory costs one cache line"},
        {WEFT_COLL_BARRIER, "hier", weft_barrier_hier, weft_cost_barrier_hier, NODES, 0, ANY, ONE_LEADER},
        {WEFT_COLL_BARRIER, "doubling", weft_barrier_doubling, weft_cost_barrier_doubling, POWER_OF_2, 0, ANY,
         "log2(ranks) exchanges, the first with neighbours"},
        {WEFT_COLL_BARRIER, "dissemination", weft_barrier_dissemination, weft_cost_barrier_dissemination, 0, 0, ANY,
         "log2(ranks) rounds for any number of ranks"},
        {WEFT_COLL_BARRIER, "4-way dissemination", weft_barrier_dissemination_4, weft_cost_barrier_dissemination_4, 0, NETWORK, ANY,
         "log4(ranks) rounds of 3 messages"},
        {WEFT_COLL_BARRIER, "8-way dissemination", weft_barrier_dissemination_8, weft_cost_barrier_dissemination_8, 0, NETWORK, ANY,
         "log8(ranks) rounds of 7 messages"},
    },
    [WEFT_COLL_BCAST] = {
        {WEFT_COLL_BCAST, "shmcoll", NULL, weft_cost_area_bcast, AREA, 0, ANY, "all read the root's slot at once"},
        {WEFT_COLL_BCAST, "hier", weft_bcast_hier, weft_cost_bcast_hier, NODES, 0, ANY, ONE_LEADER},
        {WEFT_COLL_BCAST, "binomial", weft_bcast_binomial, weft_cost_bcast_binomial, 0, 0, ANY, "log2(ranks) messages of all bytes"},
        {WEFT_COLL_BCAST, "4-nomial", weft_bcast_knomial_4, weft_cost_bcast_knomial_4, 0, NETWORK, ANY,
         "log4(ranks) levels of 3 messages"},
        {WEFT_COLL_BCAST, "8-nomial", weft_bcast_knomial_8, weft_cost_bcast_knomial_8, 0, NETWORK, ANY,
         "log8(ranks) levels of 7 messages"},
        {WEFT_COLL_BCAST, "chain", weft_bcast_chain, weft_cost_bcast_chain, 0, NETWORK, ANY,
         "a pipeline: all bytes once on each link, a latency for each rank"},
        {WEFT_COLL_BCAST, "chain", weft_bcast_chain, weft_cost_bcast_chain, 0, 0, WEFT_COLL_CHAIN,
         "filling a short pipeline costs less than sending the bytes twice"},
        {WEFT_COLL_BCAST, "binary tree", weft_bcast_binary, weft_cost_bcast_binary, 0, NETWORK, ANY,
         "a pipeline: all bytes twice, log2(ranks) latencies"},
        {WEFT_COLL_BCAST, "scatter, ring", weft_bcast_scatter_ring, weft_cost_bcast_scatter_ring, 0, MANY, ANY,
         "twice the bytes for any number of ranks"},
        {WEFT_COLL_BCAST, "scatter, doubling", weft_bcast_scatter_doubling, weft_cost_bcast_scatter_doubling, 0, NETWORK, ANY,
         "twice the bytes, 2 log2(ranks) messages"},
    },
    [WEFT_COLL_REDUCE] = {
        {WEFT_COLL_REDUCE, "shmcoll", NULL, weft_cost_area_reduce, AREA, 0, ANY, "the root reduces from the others' slots"},
        {WEFT_COLL_REDUCE, "hier", weft_reduce_hier, weft_cost_reduce_hier, NODES | COMMUTATIVE, 0, ANY, ONE_LEADER},
        {WEFT_COLL_REDUCE, "binomial", weft_reduce_binomial, weft_cost_reduce_binomial, COMMUTATIVE, 0, ANY,
         "log2(ranks) messages of all bytes"},
        {WEFT_COLL_REDUCE, "binomial in order", weft_reduce_binomial_order, weft_cost_reduce_binomial, 0, ORDER, ANY,
         "the operator does not commute"},
        {WEFT_COLL_REDUCE, "4-nomial", weft_reduce_knomial_4, weft_cost_reduce_knomial_4, COMMUTATIVE, NETWORK, ANY,
         "log4(ranks) levels of 3 messages"},
        {WEFT_COLL_REDUCE, "4-nomial in order", weft_reduce_knomial_4_order, weft_cost_reduce_knomial_4, 0, NETWORK | ORDER, ANY,
         "the operator does not commute"},
        {WEFT_COLL_REDUCE, "8-nomial", weft_reduce_knomial_8, weft_cost_reduce_knomial_8, COMMUTATIVE, NETWORK, ANY,
         "log8(ranks) levels of 7 messages"},
        {WEFT_COLL_REDUCE, "8-nomial in order", weft_reduce_knomial_8_order, weft_cost_reduce_knomial_8, 0, NETWORK | ORDER, ANY,
         "the operator does not commute"},
        {WEFT_COLL_REDUCE, "chain", weft_reduce_chain, weft_cost_reduce_chain, COMMUTATIVE, NETWORK, ANY,
         "a pipeline: all bytes once on each link, a latency for each rank"},
        {WEFT_COLL_REDUCE, "chain in order", weft_reduce_chain_order, weft_cost_reduce_chain, 0, NETWORK | ORDER, ANY,
         "the operator does not commute"},
        {WEFT_COLL_REDUCE, "binary tree", weft_reduce_binary, weft_cost_reduce_binary, COMMUTATIVE, NETWORK, ANY,
         "a pipeline: all bytes twice, log2(ranks) latencies"},
        {WEFT_COLL_REDUCE, "binary in order", weft_reduce_binary_order, weft_cost_reduce_binary_order, 0, NETWORK | ORDER, ANY,
         "the operator does not commute"},
        {WEFT_COLL_REDUCE, "Rabenseifner", weft_reduce_rabenseifner, weft_cost_reduce_rabenseifner, COMMUTATIVE, NETWORK, ANY,
         "twice the bytes, 2 log2(ranks) messages"},
        {WEFT_COLL_REDUCE, "blocks, gather", weft_reduce_blocks, weft_cost_reduce_blocks, 0, 0, ANY,
         "all ranks reduce at once, each its block"},
    },
    [WEFT_COLL_ALLREDUCE] = {
        {WEFT_COLL_ALLREDUCE, "shmcoll", NULL, weft_cost_area_allreduce, AREA, 0, ANY, "each rank reduces its block in shared memory"},
        {WEFT_COLL_ALLREDUCE, "hier", weft_allreduce_hier, weft_cost_allreduce_hier, NODES | COMMUTATIVE, 0, ANY, ONE_LEADER},
        {WEFT_COLL_ALLREDUCE, "multileader", weft_allreduce_multileader, weft_cost_allreduce_multileader, NODES | COMMUTATIVE, 0, ANY,
         "each leader of a node exchanges one block with other nodes"},
        {WEFT_COLL_ALLREDUCE, "doubling", weft_allreduce_doubling, weft_cost_allreduce_doubling, 0, 0, ANY,
         "log2(ranks) exchanges of all bytes"},
        {WEFT_COLL_ALLREDUCE, "multiplying 3", weft_allreduce_multiplying_3, weft_cost_allreduce_multiplying_3, 0, NETWORK, ANY,
         "log3(ranks) rounds of 2 messages"},
        {WEFT_COLL_ALLREDUCE, "multiplying 4", weft_allreduce_multiplying_4, weft_cost_allreduce_multiplying_4, 0, NETWORK, ANY,
         "log4(ranks) rounds of 3 messages"},
        {WEFT_COLL_ALLREDUCE, "multiplying 8", weft_allreduce_multiplying_8, weft_cost_allreduce_multiplying_8, 0, NETWORK, ANY,
         "log8(ranks) rounds of 7 messages"},
        {WEFT_COLL_ALLREDUCE, "Rabenseifner", weft_allreduce_rabenseifner, weft_cost_allreduce_rabenseifner, COMMUTATIVE, NETWORK, ANY,
         "twice the bytes, 2 log2(ranks) messages"},
        {WEFT_COLL_ALLREDUCE, "Rabenseifner", weft_allreduce_rabenseifner, weft_cost_allreduce_rabenseifner, COMMUTATIVE, CROWD, ANY,
         "2 log2(ranks) waits, where ranks wait for CPUs"},
        {WEFT_COLL_ALLREDUCE, "blocks", weft_allreduce_blocks, weft_cost_allreduce_blocks, 0, 0, AT_ONCE,
         "all ranks reduce at once, each its block"},
        {WEFT_COLL_ALLREDUCE, "ring", weft_allreduce_ring, weft_cost_allreduce_ring, COMMUTATIVE, 0, ANY,
         "twice the bytes, and memory for one block"},
        {WEFT_COLL_ALLREDUCE, "blocks, ring", weft_allreduce_blocks_ring, weft_cost_allreduce_blocks_ring, 0, ORDER, ANY,
         "the operator does not commute"},
    },
    [WEFT_COLL_GATHER] = {
        {WEFT_COLL_GATHER, "shmcoll", NULL, weft_cost_area_gather, AREA, 0, ANY, "the root reads the others' slots"},
        {WEFT_COLL_GATHER, "linear", weft_gather_linear, weft_cost_gather_linear, 0, 0, ANY, "each byte is sent once"},
        {WEFT_COLL_GATHER, "binomial", weft_gather_binomial, weft_cost_gather_binomial, 0, 0, ANY,
         "the root receives log2(ranks) messages"},
        {WEFT_COLL_GATHER, "multileader", weft_gather_multileader, weft_cost_gather_multileader, NODES, 0, ANY,
         "each leader of a node collects one part"},
    },
    [WEFT_COLL_SCATTER] = {
        {WEFT_COLL_SCATTER, "shmcoll", NULL, weft_cost_area_scatter, AREA, 0, ANY, "all read the root's slot at once"},
        {WEFT_COLL_SCATTER, "linear", weft_scatter_linear, weft_cost_scatter_linear, 0, 0, ANY, "each byte is sent once"},
        {WEFT_COLL_SCATTER, "binomial", weft_scatter_binomial, weft_cost_scatter_binomial, 0, 0, ANY,
         "the root sends log2(ranks) messages"},
        {WEFT_COLL_SCATTER, "multileader", weft_scatter_multileader, weft_cost_scatter_multileader, NODES, 0, ANY,
         "each leader of a node deals out one part"},
    },
    [WEFT_COLL_ALLGATHER] = {
        {WEFT_COLL_ALLGATHER, "shmcoll", NULL, weft_cost_area_allgather, AREA, 0, ANY, "each rank writes once, all read"},
        {WEFT_COLL_ALLGATHER, "doubling", weft_allgather_doubling, weft_cost_allgather_doubling, 0, POWER_OF_2, ANY,
         "log2(ranks) exchanges, no copies"},
        ALLGATHER_RULES(WEFT_COLL_ALLGATHER, allgather),
    },
    [WEFT_COLL_ALLTOALL] = {
        {WEFT_COLL_ALLTOALL, "shmcoll", NULL, weft_cost_area_alltoall, AREA, 0, ANY, "each rank writes once and reads its blocks"},
        PAIRS_RULES(WEFT_COLL_ALLTOALL),
        {WEFT_COLL_ALLTOALL, "Bruck", weft_alltoall_bruck, weft_cost_alltoall_bruck, 0, 0, ANY, "log2(ranks) rounds"},
        {WEFT_COLL_ALLTOALL, "hier", weft_alltoall_hier, weft_cost_alltoall_hier, NODES, 0, ANY, "one message for each pair of nodes"},
    },
    [WEFT_COLL_GATHERV] = {
        {WEFT_COLL_GATHERV, "linear", weft_gather_linear, weft_cost_gather_linear, 0, 0, ANY, "only the root knows the counts"},
    },
    [WEFT_COLL_SCATTERV] = {
        {WEFT_COLL_SCATTERV, "linear", weft_scatter_linear, weft_cost_scatter_linear, 0, 0, ANY, "only the root knows the counts"},
    },
    [WEFT_COLL_ALLGATHERV] = {
        {WEFT_COLL_ALLGATHERV, "shmcoll", NULL, weft_cost_area_allgatherv, AREA, 0, ANY, "each rank writes once, all read"},
        ALLGATHER_RULES(WEFT_COLL_ALLGATHERV, allgatherv),
    },
    [WEFT_COLL_ALLTOALLV] = {PAIRS_AREA_RULE(WEFT_COLL_ALLTOALLV), PAIRS_RULES(WEFT_COLL_ALLTOALLV)},
    [WEFT_COLL_ALLTOALLW] = {PAIRS_AREA_RULE(WEFT_COLL_ALLTOALLW), PAIRS_RULES(WEFT_COLL_ALLTOALLW)},
    [WEFT_COLL_SCAN] = {
        {WEFT_COLL_SCAN, "shmcoll", NULL, weft_cost_area_scan, AREA, 0, ANY, "a chain: each rank reads the lower one's prefix"},
        {WEFT_COLL_SCAN, "doubling", weft_scan_doubling, weft_cost_scan_doubling, 0, 0, ANY, "log2(ranks) rounds"},
        {WEFT_COLL_SCAN, "chain", weft_scan_chain, weft_cost_scan_chain, 0, 0, ANY, "a pipeline: each byte once on each link"},
    },
    [WEFT_COLL_EXSCAN] = {
        {WEFT_COLL_EXSCAN, "shmcoll", NULL, weft_cost_area_exscan, AREA, 0, ANY, "a chain: each rank reads the lower one's prefix"},
        {WEFT_COLL_EXSCAN, "doubling", weft_exscan_doubling, weft_cost_exscan_doubling, 0, 0, ANY, "log2(ranks) rounds"},
        {WEFT_COLL_EXSCAN, "chain", weft_exscan_chain, weft_cost_scan_chain, 0, 0, ANY, "a pipeline: each byte once on each link"},
    },
    [WEFT_COLL_REDUCE_SCATTER_BLOCK] = {REDUCE_SCATTER_RULES(WEFT_COLL_REDUCE_SCATTER_BLOCK)},
    [WEFT_COLL_REDUCE_SCATTER] = {REDUCE_SCATTER_RULES(WEFT_COLL_REDUCE_SCATTER)},
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLGATHER, weft_neighbor_allgather),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLGATHERV, weft_neighbor_allgather),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALL, weft_neighbor_alltoall),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALLV, weft_neighbor_alltoall),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALLW, weft_neighbor_alltoall),
};

/* ---- choice ---- */

double weft_coll_rule_cost(const weft_coll_rule *rule, const weft_coll_query *query)
{
    uint32_t has = query->has | weft_coll_query_numbers(query);

    if (((rule->needs | rule->when) & ~has) || query->ranks > rule->ranks_max)
        return INFINITY;
    return query->ranks < 2 ? 0 : rule->cost(query);
}

const weft_coll_rule *weft_coll_select(const weft_coll_query *query)
{
    const weft_coll_rule *best = NULL;
    double least = INFINITY;

    for (const weft_coll_rule *rule = rules[query->kind]; rule < rules[query->kind] + RULES_MAX && rule->name; rule++) {
        double cost = weft_coll_rule_cost(rule, query);
        if (cost < least * (1 - 1e-9)) { /* of equal ones the first */
            least = cost;
            best = rule;
        }
    }
    return best;
}

const weft_coll_rule *weft_coll_select_rules(enum weft_coll_kind kind, size_t *count)
{
    *count = 0;
    while (*count < RULES_MAX && rules[kind][*count].name)
        ++*count;
    return rules[kind];
}

/* ---- classes ---- */

uint64_t weft_coll_class_start(uint32_t class)
{
    if (class >= WEFT_COLL_CLASSES)
        return UINT64_MAX;
    return class < 8 ? class : (uint64_t)(4 + class % 4) << (class / 4 - 1);
}

uint32_t weft_coll_select_class(const weft_coll_query *query, uint32_t class)
{
    uint64_t first = weft_coll_class_start(class), end = weft_coll_class_start(class + 1);
    weft_coll_query at = *query;

    at.bytes = first + (end - first) / 2;
    return (uint32_t)(weft_coll_select(&at) - rules[query->kind]);
}
