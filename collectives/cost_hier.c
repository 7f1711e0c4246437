/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_hier: see cost.h. Algorithms over several nodes: the sum of their stages, each by the algorithm that is chosen for it (hier.c).
 */
#include "collectives/cost.h"
#include "collectives/cost_terms.h"

static uint32_t node_ranks_of(const weft_coll_query *query) { return (query->ranks + query->nodes - 1) / query->nodes; }

static double stage(const weft_coll_query *query, enum weft_coll_kind kind, double bytes, bool is_in_node, uint32_t sharing)
{
    weft_coll_query part = *query;

    part.kind = kind;
    part.bytes = (uint64_t)bytes;
    part.ranks = is_in_node ? node_ranks_of(query) : query->nodes;
    part.nodes = is_in_node ? 1 : query->nodes;
    part.sharing = sharing;
    part.has = query->has & (WEFT_NEED_COMMUTATIVE | WEFT_NEED_ORDER | (is_in_node ? WEFT_NEED_AREA : 0));
    return part.ranks < 2 ? 0 : weft_coll_select(&part)->cost(&part);
}

double weft_cost_barrier_hier(const weft_coll_query *query)
{
    return stage(query, WEFT_COLL_GATHER, 1, true, 1) + stage(query, WEFT_COLL_BARRIER, 0, false, 1) +
           stage(query, WEFT_COLL_BCAST, 1, true, 1);
}

double weft_cost_bcast_hier(const weft_coll_query *query)
{
    double bytes = (double)query->bytes;
    return stage(query, WEFT_COLL_BCAST, bytes, false, 1) + stage(query, WEFT_COLL_BCAST, bytes, true, 1);
}

double weft_cost_reduce_hier(const weft_coll_query *query)
{
    double bytes = (double)query->bytes;
    return stage(query, WEFT_COLL_REDUCE, bytes, true, 1) + stage(query, WEFT_COLL_REDUCE, bytes, false, 1);
}

double weft_cost_allreduce_hier(const weft_coll_query *query)
{
    double bytes = (double)query->bytes;
    return stage(query, WEFT_COLL_REDUCE, bytes, true, 1) + stage(query, WEFT_COLL_ALLREDUCE, bytes, false, 1) +
           stage(query, WEFT_COLL_BCAST, bytes, true, 1);
}

/* In the node by messages, also where slots are used: so the crossing to the form with one leader is near the measured one. */
double weft_cost_allreduce_multileader(const weft_coll_query *query)
{
    weft_coll_query in_node = *query;

    in_node.ranks = node_ranks_of(query);
    in_node.nodes = 1;
    return weft_cost_allreduce_blocks(&in_node) +
           stage(query, WEFT_COLL_ALLREDUCE, (double)query->bytes / in_node.ranks, false, in_node.ranks);
}

/* ---- blocks: each rank of a node leads for a part (hier_bundles.h) ---- */

/* The leader's group with the root has no block of the root: its counts differ, so it is linear. */
double weft_cost_gather_multileader(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double part = query->nodes * t.bytes; /* of one leader */

    return stage(query, WEFT_COLL_GATHERV, t.bytes, false, t.node_ranks) + t.node->latency_ns - t.node->overhead_ns +
           (t.node_ranks - 1.0) * (t.node->overhead_ns + part * t.node_gap) + t.ranks * t.bytes * t.copy;
}

double weft_cost_scatter_multileader(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    double first = t.node->latency_ns + query->nodes * t.bytes * t.node_gap, last = first + (t.node_ranks - 2.0) * t.node->overhead_ns;
    double port = (query->nodes - 1.0) * t.node_ranks * t.bytes * t.net_gap;

    /* the leaders begin one after the other: the last one's time, or that of the port that they share */
    return weft_terms_max(last + stage(query, WEFT_COLL_SCATTERV, t.bytes, false, 1), first + t.net->latency_ns + port) +
           t.ranks * t.bytes * t.copy;
}

static double allgather(const weft_coll_query *query, const weft_terms *t, double block)
{
    return stage(query, WEFT_COLL_ALLGATHER, block, false, t->node_ranks) +
           stage(query, WEFT_COLL_ALLGATHER, query->nodes * block, true, 1) + t->ranks * block * t->copy;
}

double weft_cost_allgather_multileader(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return allgather(query, &t, t.bytes);
}

double weft_cost_allgatherv_multileader(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    return allgather(query, &t, t.bytes / t.ranks);
}

/* Each rank carries some messages to other nodes: `part` of `here` ranks there get a block from each rank here. It collects their blocks,
 * exchanges them, and deals them out. */
double weft_cost_alltoall_hier(const weft_coll_query *query)
{
    weft_terms t = weft_terms_of(query);
    uint32_t here = t.node_ranks, others = query->nodes - 1, parts = (here + others - 1) / others;
    double mean = (double)parts * others / here, carried = (mean + (parts * others + here - 1) / here) / 2; /* some carry one less */
    double part = (double)here / parts, block = t.bytes, moved = carried * here * part * block; /* bytes that a rank carries */
    double copies = (2.0 * t.ranks + carried * part) * block + moved;
    double sends = here - 1.0 + (double)others * parts + carried * (part - 1), receives = here - 1.0 + carried * (here - 1.0) + others;
    double near = 2.0 * t.node->latency_ns + (sends + receives) * t.node->overhead_ns + (2 * moved + here * block) * t.node_gap;
    double far = t.net->latency_ns + weft_terms_max(carried * 2.0 * t.net->overhead_ns, here * moved * t.net_gap);

    return copies * t.copy + near + far;
}
