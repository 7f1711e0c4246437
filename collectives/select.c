/* SPDX-License-Identifier: BSD-3-Clause
 *
 * select: the rules of each operation, and their evaluation. Called by coll.c and hier.c for each call, and by tools that print the rules.
 * Invariant: one rule of each operation matches every query; those after it are there for tests and tools.
 */
#include "collectives/select.h"

#include <stdio.h>

#include "base/macros.h"
#include "collectives/algorithms.h"

#define ALL UINT32_MAX
#define ANY 0, WEFT_UNIT_ANY
#define LATENCIES(n) n, WEFT_UNIT_LATENCIES
#define SLOTS(n) n, WEFT_UNIT_SLOTS
#define SLOTS_BY_RANKS(n) n, WEFT_UNIT_SLOTS_BY_RANKS
#define COMMUTATIVE WEFT_NEED_COMMUTATIVE
#define POWER_OF_2 WEFT_NEED_POWER_OF_2
#define AREA WEFT_NEED_AREA
#define NODES WEFT_NEED_NODES
#define EVEN WEFT_NEED_EVEN
#define NOT_CHOSEN "stands after a rule that always matches"
#define ONE_LEADER "only one leader per node exchanges messages with other nodes"

#define RULES_MAX 20

/* ---- model ----
 * A message of n bytes takes 1 + x latencies, x = n / latency_bytes; reductions and copies take none. For P ranks, k = log2(P) rounded up,
 * bytes as weft_coll_bytes counts them:
 *     binomial, doubling             k (1 + x)              (doubling: 2 (1 + x) more where P is no power of two)
 *     scatter, ring                  k + P - 1 + 2 x
 *     blocks, ring; blocks, gather   2 (P - 1) + 2 x        one message per rank and block, twice
 *     binomial gather, scatter; Bruck, doubling of allgather   k + (P - 1) x
 *     linear, ring of allgather, pairwise                      (P - 1) (1 + x)
 *     Bruck of alltoall              k (1 + x P / 2)
 *     scan by doubling, by chain     k (1 + x), (P - 2 + x / 4) 5      segments of four latencies; exscan by doubling: a round more
 *     reduce_scatter by doubling, in blocks or a ring   k (1 + x), P - 1 + x
 * In allgatherv and reduce_scatter x is of all blocks, in allgather of one.
 * The functions below return the size at which two of them are equal, in 1/256 of a latency. */

static uint64_t log2_up(uint32_t ranks) { return 32 - (uint64_t)__builtin_clz(ranks - 1); }

static uint64_t tree_or_scatter_ring(uint32_t ranks) { return 256 * ((uint64_t)ranks - 1) / (log2_up(ranks) - 2); }

static uint64_t tree_or_blocks(uint32_t ranks)
{
    uint64_t rounds = log2_up(ranks);
    return 256 * (2 * (uint64_t)(ranks - 1) - rounds) / (rounds - 2);
}

static uint64_t doubling_or_ring(uint32_t ranks)
{
    uint64_t rounds = log2_up(ranks) + (ranks & (ranks - 1) ? 1 : 0); /* log2 rounded down, plus two if not a power of two */
    return 256 * (2 * (uint64_t)(ranks - 1) - rounds) / (rounds - 2);
}

static uint64_t bruck_or_pairwise(uint32_t ranks)
{
    uint64_t rounds = log2_up(ranks), others = ranks - 1;
    return 256 * (others - rounds) / (rounds * ranks / 2 - others);
}

/* The model prefers the tree at any size, by a falling margin; the limit bounds its memory for all blocks. */
static uint64_t tree_or_linear(uint32_t ranks)
{
    (void)ranks;
    return 256 * 4;
}

/* allgatherv: the bytes of all ranks */
static uint64_t tree_or_linear_of_all(uint32_t ranks) { return tree_or_linear(ranks) * ranks; }

static uint64_t rounds_or_chain(uint64_t rounds, uint32_t ranks) { return 1024 * (5 * (uint64_t)ranks - 10 - rounds) / (4 * rounds - 5); }
static uint64_t scan_or_chain(uint32_t ranks) { return rounds_or_chain(log2_up(ranks), ranks); }
static uint64_t exscan_or_chain(uint32_t ranks) { return rounds_or_chain(1 + log2_up(ranks - 1), ranks); }

static uint64_t doubling_or_blocks(uint32_t ranks)
{
    uint64_t rounds = log2_up(ranks) + (ranks & (ranks - 1) ? 1 : 0);
    return 256 * ((uint64_t)ranks - 1 - rounds) / (rounds - 1);
}

#define REDUCE_SCATTER_RULES(kind) \
    {kind, "shmcoll", NULL, 2, ALL, SLOTS(256), AREA, "each rank reduces its block from the others' slots"}, \
    {kind, "doubling", weft_reduce_scatter_doubling, 1, ALL, LATENCIES(1), 0, "latency dominates: log2(ranks) exchanges", \
     doubling_or_blocks}, \
    {kind, "blocks", weft_reduce_scatter_linear, 1, 16, ANY, 0, "all ranks reduce at once, each its block"}, \
    {kind, "ring", weft_reduce_scatter_ring, 1, ALL, ANY, COMMUTATIVE, "neighbours only"}, \
    {kind, "blocks", weft_reduce_scatter_linear, 1, ALL, ANY, 0, "the operator does not commute"}, \
    {kind, "halving", weft_reduce_scatter_halving, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN}

#define NEIGHBOR_RULE(kind, algorithm) [kind] = {{kind, "linear", algorithm, 1, ALL, ANY, 0, "one message along each edge, all at once"}}

static const weft_coll_rule rules[WEFT_COLL_KINDS][RULES_MAX] = {
    [WEFT_COLL_BARRIER] = {
        {WEFT_COLL_BARRIER, "shmcoll", NULL, 2, ALL, ANY, AREA, "a flag in shared memory costs one cache line"},
        {WEFT_COLL_BARRIER, "hier", weft_barrier_hier, 3, ALL, ANY, NODES, ONE_LEADER},
        {WEFT_COLL_BARRIER, "doubling", weft_barrier_doubling, 2, ALL, ANY, POWER_OF_2, "log2(ranks) exchanges, the first with neighbours"},
        {WEFT_COLL_BARRIER, "dissemination", weft_barrier_dissemination, 1, ALL, ANY, 0, "log2(ranks) rounds for any number of ranks"},
        {WEFT_COLL_BARRIER, "4-way dissemination", weft_barrier_dissemination_4, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_BARRIER, "8-way dissemination", weft_barrier_dissemination_8, 1, ALL, ANY, 0, NOT_CHOSEN},
    },
    [WEFT_COLL_BCAST] = {
        {WEFT_COLL_BCAST, "shmcoll", NULL, 2, ALL, SLOTS(256), AREA, "all read the root's slot at once"},
        {WEFT_COLL_BCAST, "hier", weft_bcast_hier, 3, ALL, ANY, NODES, ONE_LEADER},
        {WEFT_COLL_BCAST, "binomial", weft_bcast_binomial, 1, 2, ANY, 0, "one message"},
        {WEFT_COLL_BCAST, "binomial", weft_bcast_binomial, 1, ALL, LATENCIES(8), 0, "latency dominates: log2(ranks) messages",
         tree_or_scatter_ring},
        {WEFT_COLL_BCAST, "chain", weft_bcast_chain, 3, 8, ANY, 0, "filling a short pipeline costs less than sending the bytes twice"},
        {WEFT_COLL_BCAST, "scatter, ring", weft_bcast_scatter_ring, 1, ALL, ANY, 0, "twice the bytes for any number of ranks"},
        {WEFT_COLL_BCAST, "scatter, doubling", weft_bcast_scatter_doubling, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_BCAST, "binary tree", weft_bcast_binary, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_BCAST, "4-nomial", weft_bcast_knomial_4, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_BCAST, "8-nomial", weft_bcast_knomial_8, 1, ALL, ANY, 0, NOT_CHOSEN},
    },
    [WEFT_COLL_REDUCE] = {
        {WEFT_COLL_REDUCE, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(256), AREA, "the root reduces from the others' slots"},
        {WEFT_COLL_REDUCE, "hier", weft_reduce_hier, 3, ALL, ANY, NODES | COMMUTATIVE, ONE_LEADER},
        {WEFT_COLL_REDUCE, "binomial", weft_reduce_binomial, 1, ALL, LATENCIES(16), COMMUTATIVE,
         "latency dominates: log2(ranks) messages", tree_or_blocks},
        {WEFT_COLL_REDUCE, "binomial in order", weft_reduce_binomial_order, 1, ALL, LATENCIES(16), 0,
         "the operator does not commute", tree_or_blocks},
        {WEFT_COLL_REDUCE, "blocks, gather", weft_reduce_blocks, 1, ALL, ANY, 0, "all ranks reduce at once, each its block"},
        {WEFT_COLL_REDUCE, "Rabenseifner", weft_reduce_rabenseifner, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "chain", weft_reduce_chain, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "chain in order", weft_reduce_chain_order, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "binary tree", weft_reduce_binary, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "binary in order", weft_reduce_binary_order, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "4-nomial", weft_reduce_knomial_4, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "8-nomial", weft_reduce_knomial_8, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "4-nomial in order", weft_reduce_knomial_4_order, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_REDUCE, "8-nomial in order", weft_reduce_knomial_8_order, 1, ALL, ANY, 0, NOT_CHOSEN},
    },
    [WEFT_COLL_ALLREDUCE] = {
        {WEFT_COLL_ALLREDUCE, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(256), AREA,
         "each rank reduces its block in shared memory"},
        {WEFT_COLL_ALLREDUCE, "hier", weft_allreduce_hier, 3, ALL, LATENCIES(16), NODES | COMMUTATIVE, ONE_LEADER},
        {WEFT_COLL_ALLREDUCE, "multileader", weft_allreduce_multileader, 3, ALL, ANY, NODES | COMMUTATIVE,
         "each leader of a node exchanges one block with other nodes"},
        {WEFT_COLL_ALLREDUCE, "doubling", weft_allreduce_doubling, 1, ALL, LATENCIES(4), 0,
         "latency dominates: log2(ranks) exchanges", doubling_or_ring},
        {WEFT_COLL_ALLREDUCE, "blocks", weft_allreduce_blocks, 1, 16, ANY, 0, "all ranks reduce at once, each its block"},
        {WEFT_COLL_ALLREDUCE, "ring", weft_allreduce_ring, 1, ALL, ANY, COMMUTATIVE, "twice the bytes, and memory for one block"},
        {WEFT_COLL_ALLREDUCE, "blocks, ring", weft_allreduce_blocks_ring, 1, ALL, ANY, 0, "the operator does not commute"},
        {WEFT_COLL_ALLREDUCE, "Rabenseifner", weft_allreduce_rabenseifner, 1, ALL, ANY, COMMUTATIVE, NOT_CHOSEN},
        {WEFT_COLL_ALLREDUCE, "multiplying 3", weft_allreduce_multiplying_3, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLREDUCE, "multiplying 4", weft_allreduce_multiplying_4, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLREDUCE, "multiplying 8", weft_allreduce_multiplying_8, 1, ALL, ANY, 0, NOT_CHOSEN},
    },
    [WEFT_COLL_GATHER] = {
        {WEFT_COLL_GATHER, "shmcoll", NULL, 2, ALL, SLOTS(16), AREA, "the root reads the others' slots"},
        {WEFT_COLL_GATHER, "binomial", weft_gather_binomial, 4, ALL, LATENCIES(1), 0,
         "latency dominates: the root receives log2(ranks) messages", tree_or_linear},
        {WEFT_COLL_GATHER, "linear", weft_gather_linear, 1, ALL, ANY, 0, "each byte is sent once"},
        {WEFT_COLL_GATHER, "multileader", weft_gather_multileader, 1, ALL, ANY, NODES, NOT_CHOSEN},
    },
    [WEFT_COLL_SCATTER] = {
        {WEFT_COLL_SCATTER, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(4), AREA, "all read the root's slot at once"},
        {WEFT_COLL_SCATTER, "binomial", weft_scatter_binomial, 4, ALL, LATENCIES(1), 0,
         "latency dominates: the root sends log2(ranks) messages", tree_or_linear},
        {WEFT_COLL_SCATTER, "linear", weft_scatter_linear, 1, ALL, ANY, 0, "each byte is sent once"},
        {WEFT_COLL_SCATTER, "multileader", weft_scatter_multileader, 1, ALL, ANY, NODES, NOT_CHOSEN},
    },
    [WEFT_COLL_ALLGATHER] = {
        {WEFT_COLL_ALLGATHER, "shmcoll", NULL, 2, ALL, SLOTS(256), AREA, "each rank writes once, all read"},
        {WEFT_COLL_ALLGATHER, "doubling", weft_allgather_doubling, 1, ALL, LATENCIES(4), POWER_OF_2,
         "log2(ranks) exchanges, no copies"},
        {WEFT_COLL_ALLGATHER, "Bruck", weft_allgather_bruck, 3, ALL, LATENCIES(1), 0,
         "latency dominates: log2(ranks) rounds for any number of ranks", tree_or_linear},
        {WEFT_COLL_ALLGATHER, "ring", weft_allgather_ring, 1, ALL, ANY, 0, "neighbours only, each byte once on each link"},
        {WEFT_COLL_ALLGATHER, "multiplying 2", weft_allgather_doubling, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHER, "multiplying 4", weft_allgather_multiplying_4, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHER, "multiplying 8", weft_allgather_multiplying_8, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHER, "neighbour exchange", weft_allgather_neighbor, 1, ALL, ANY, EVEN, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHER, "multileader", weft_allgather_multileader, 1, ALL, ANY, NODES, NOT_CHOSEN},
    },
    [WEFT_COLL_ALLTOALL] = {
        {WEFT_COLL_ALLTOALL, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(2), AREA, "each rank writes once and reads its blocks"},
        {WEFT_COLL_ALLTOALL, "Bruck", weft_alltoall_bruck, 8, ALL, LATENCIES(1), 0, "latency dominates: log2(ranks) rounds",
         bruck_or_pairwise},
        {WEFT_COLL_ALLTOALL, "linear", weft_alltoall_linear, 1, 16, ANY, 0, "all messages at once"},
        {WEFT_COLL_ALLTOALL, "pairwise", weft_alltoall_pairwise, 1, ALL, ANY, 0, "one peer at a time: no rank receives from all at once"},
        {WEFT_COLL_ALLTOALL, "hier", weft_alltoall_hier, 1, ALL, ANY, NODES, NOT_CHOSEN},
    },
    [WEFT_COLL_GATHERV] = {
        {WEFT_COLL_GATHERV, "linear", weft_gather_linear, 1, ALL, ANY, 0, "only the root knows the counts"},
    },
    [WEFT_COLL_SCATTERV] = {
        {WEFT_COLL_SCATTERV, "linear", weft_scatter_linear, 1, ALL, ANY, 0, "only the root knows the counts"},
    },
    [WEFT_COLL_ALLGATHERV] = {
        {WEFT_COLL_ALLGATHERV, "shmcoll", NULL, 2, ALL, SLOTS(256), AREA, "each rank writes once, all read"},
        {WEFT_COLL_ALLGATHERV, "Bruck", weft_allgather_bruck, 1, ALL, LATENCIES(8), 0, "latency dominates: log2(ranks) rounds",
         tree_or_linear_of_all},
        {WEFT_COLL_ALLGATHERV, "ring", weft_allgather_ring, 1, ALL, ANY, 0, "neighbours only, each byte once on each link"},
        {WEFT_COLL_ALLGATHERV, "multiplying 2", weft_allgather_doubling, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHERV, "multiplying 4", weft_allgather_multiplying_4, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHERV, "multiplying 8", weft_allgather_multiplying_8, 1, ALL, ANY, 0, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHERV, "neighbour exchange", weft_allgather_neighbor, 1, ALL, ANY, EVEN, NOT_CHOSEN},
        {WEFT_COLL_ALLGATHERV, "multileader", weft_allgather_multileader, 1, ALL, ANY, NODES, NOT_CHOSEN},
    },
    [WEFT_COLL_ALLTOALLV] = {
        {WEFT_COLL_ALLTOALLV, "linear", weft_alltoall_linear, 1, 16, ANY, 0, "all messages at once"},
        {WEFT_COLL_ALLTOALLV, "pairwise", weft_alltoall_pairwise, 1, ALL, ANY, 0, "one peer at a time: no rank receives from all at once"},
    },
    [WEFT_COLL_ALLTOALLW] = {
        {WEFT_COLL_ALLTOALLW, "linear", weft_alltoall_linear, 1, 16, ANY, 0, "all messages at once"},
        {WEFT_COLL_ALLTOALLW, "pairwise", weft_alltoall_pairwise, 1, ALL, ANY, 0, "one peer at a time: no rank receives from all at once"},
    },
    [WEFT_COLL_SCAN] = {
        {WEFT_COLL_SCAN, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(256), AREA, "each rank reduces the lower ones' slots"},
        {WEFT_COLL_SCAN, "doubling", weft_scan_doubling, 1, 2, ANY, 0, "one message"},
        {WEFT_COLL_SCAN, "doubling", weft_scan_doubling, 1, ALL, LATENCIES(16), 0, "latency dominates: log2(ranks) rounds", scan_or_chain},
        {WEFT_COLL_SCAN, "chain", weft_scan_chain, 1, ALL, ANY, 0, "pipelined: each byte once on each link"},
    },
    [WEFT_COLL_EXSCAN] = {
        {WEFT_COLL_EXSCAN, "shmcoll", NULL, 2, ALL, SLOTS_BY_RANKS(256), AREA, "each rank reduces the lower ones' slots"},
        {WEFT_COLL_EXSCAN, "doubling", weft_exscan_doubling, 1, 2, ANY, 0, "one message"},
        {WEFT_COLL_EXSCAN, "doubling", weft_exscan_doubling, 1, ALL, LATENCIES(16), 0, "latency dominates: log2(ranks) rounds",
         exscan_or_chain},
        {WEFT_COLL_EXSCAN, "chain", weft_exscan_chain, 1, ALL, ANY, 0, "pipelined: each byte once on each link"},
    },
    [WEFT_COLL_REDUCE_SCATTER_BLOCK] = {REDUCE_SCATTER_RULES(WEFT_COLL_REDUCE_SCATTER_BLOCK)},
    [WEFT_COLL_REDUCE_SCATTER] = {REDUCE_SCATTER_RULES(WEFT_COLL_REDUCE_SCATTER)},
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLGATHER, weft_neighbor_allgather),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLGATHERV, weft_neighbor_allgather),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALL, weft_neighbor_alltoall),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALLV, weft_neighbor_alltoall),
    NEIGHBOR_RULE(WEFT_COLL_NEIGHBOR_ALLTOALLW, weft_neighbor_alltoall),
};

static uint64_t rule_bytes(const weft_coll_rule *rule, const weft_coll_query *query)
{
    if (weft_unlikely(rule->crossing && query->ranks > WEFT_COLL_RULE_RANKS))
        return rule->crossing(query->ranks) * query->latency_bytes / 256;
    switch (rule->unit) {
    case WEFT_UNIT_LATENCIES:
        return (uint64_t)rule->up_to * query->latency_bytes;
    case WEFT_UNIT_SLOTS:
        return (uint64_t)rule->up_to * query->slot_bytes;
    case WEFT_UNIT_SLOTS_BY_RANKS:
        return rule->up_to * query->slot_bytes / query->ranks; /* 32-bit arithmetic: on the fast path of small calls */
    default:
        return UINT64_MAX;
    }
}

const weft_coll_rule *weft_coll_select(const weft_coll_query *query)
{
    const weft_coll_rule *rule = rules[query->kind];

    while ((rule->needs & ~query->has) || query->ranks < rule->ranks_min || query->ranks > rule->ranks_max ||
           query->bytes > rule_bytes(rule, query))
        rule++;
    return rule;
}

const weft_coll_rule *weft_coll_select_rules(enum weft_coll_kind kind, size_t *count)
{
    *count = 0;
    while (*count < RULES_MAX && rules[kind][*count].name)
        ++*count;
    return rules[kind];
}

int weft_coll_select_print(const weft_coll_rule *rule, const weft_coll_query *with, char *text, size_t capacity)
{
    uint64_t bytes = rule_bytes(rule, with);
    char max[32] = "any size", ranks[16] = "any";

    if (rule->ranks_max != ALL)
        snprintf(ranks, sizeof ranks, "%u", rule->ranks_max);
    if (bytes != UINT64_MAX)
        snprintf(max, sizeof max, "<= %llu B", (unsigned long long)bytes);
    return snprintf(text, capacity, "%-10s %-18s %u..%s ranks, %s%s%s%s%s: %s", weft_coll_name(rule->kind), rule->name, rule->ranks_min,
                    ranks, max,
                    rule->needs & COMMUTATIVE ? ", commutative" : "", rule->needs & POWER_OF_2 ? ", ranks a power of two" : "",
                    rule->needs & EVEN ? ", even ranks" : "",
                    rule->needs & NODES ? ", several nodes" : "",
                    rule->reason);
}
