/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_area: costs of the collectives through a node area (shmcoll.c). Members write, read and reduce slots at the same time, so the cost
 * is that of one pass over the bytes that a member gets (a root: gets or gives): a lower bound. Each form was measured to be the fastest up
 * to a bound in slots, with 2 to 16 ranks, also where they share CPUs. That bound is part of the cost: beyond, the form must not be used.
 */
#include <math.h>

#include "collectives/cost.h"
#include "collectives/cost_terms.h"

#define FEW 3               /* ranks */
#define CROWD_SLOTS 16      /* of a reduction in a crowd */
#define CROWD_BCAST_SLOTS 160
#define SHARED_SCATTER_BYTES 24576 /* of all blocks */

/* bound: in slots; blocks: bytes that one member gets, in units of query->bytes. */
static double area(const weft_coll_query *query, double bound, double blocks)
{
    weft_terms t = weft_terms_of(query);

    if (query->nodes > 1 || t.bytes > bound * query->slot_bytes)
        return INFINITY;
    return query->params->flag_ns + blocks * t.bytes * t.copy;
}

static double others(const weft_coll_query *query) { return query->ranks - 1.0; }

/* Is a message, which the kernel copies once, faster than slots? Of two ranks with a CPU each that is so between these KiB (Xeon, where the
 * kernel adds 2 us to a copy of 64 KiB: 0.3 to 0.9 of the time). */
static bool by_message(const weft_coll_query *query, double from_kib, double to_kib)
{
    double kib = (double)query->bytes / 1024;
    return weft_coll_is_copied_pair(query->params, query->ranks) && kib > from_kib && kib <= to_kib;
}

/* The same where ranks share CPUs. */
static bool shares_by_message(const weft_coll_query *query, double from_kib)
{
    return query->params->shares_cpus && query->params->is_copied_once && (double)query->bytes / 1024 > from_kib;
}

/* Where ranks share CPUs a message costs one more hand-over of the CPU, so slots are faster at any length: with 4 ranks on 2 CPUs 16 and
 * 64 MB take a half to a tenth of the time. */
static double reduction(const weft_coll_query *query)
{
    return area(query, query->params->shares_cpus ? INFINITY : 256.0 / query->ranks, 1);
}

/* In a crowd each round is a wait of all members for all. By messages there are log2(ranks), if the operator commutes: 16 ranks on 2 CPUs
 * take three quarters of the time from CROWD_SLOTS on, 32 ranks less than half. */
static bool is_long_in_crowd(const weft_coll_query *query)
{
    return weft_coll_query_is_crowd(query) && query->bytes > CROWD_SLOTS * (uint64_t)query->slot_bytes &&
           (query->ranks <= WEFT_COLL_AT_ONCE || query->has & WEFT_NEED_COMMUTATIVE);
}

/* A chain: each member reads one slot and writes one. */
static double scan(const weft_coll_query *query)
{
    return area(query, query->params->shares_cpus ? INFINITY : 256, 1) + others(query) * query->params->flag_ns;
}

/* No member knows the bytes. Few messages take less time than a wait for all members. */
double weft_cost_area_alltoallv(const weft_coll_query *query) { return query->ranks <= FEW ? INFINITY : area(query, INFINITY, 0); }
double weft_cost_area_barrier(const weft_coll_query *query) { return area(query, INFINITY, 0); }
double weft_cost_area_bcast(const weft_coll_query *query)
{
    return by_message(query, 96, INFINITY) ? INFINITY : area(query, weft_coll_query_is_crowd(query) ? CROWD_BCAST_SLOTS : 256, 1);
}
double weft_cost_area_reduce(const weft_coll_query *query) { return by_message(query, 24, 224) ? INFINITY : reduction(query); }
double weft_cost_area_allreduce(const weft_coll_query *query)
{
    return by_message(query, 24, INFINITY) || is_long_in_crowd(query) ? INFINITY : reduction(query);
}
double weft_cost_area_scan(const weft_coll_query *query) { return scan(query); }
double weft_cost_area_exscan(const weft_coll_query *query) { return by_message(query, 12, INFINITY) ? INFINITY : scan(query); }
double weft_cost_area_alltoall(const weft_coll_query *query) { return area(query, 2.0 / query->ranks, others(query)); }

/* Where ranks share CPUs, the root copies all blocks into its slot before any reader gets a CPU. */
double weft_cost_area_scatter(const weft_coll_query *query)
{
    bool is_long = query->params->shares_cpus && query->bytes * query->ranks > SHARED_SCATTER_BYTES;
    return by_message(query, 10, INFINITY) || is_long ? INFINITY : area(query, 4.0 / query->ranks, others(query)); /* weft_sched_one_way */
}

double weft_cost_area_gather(const weft_coll_query *query)
{
    return by_message(query, 12, INFINITY) || shares_by_message(query, 48) ? INFINITY : area(query, 16, others(query));
}

/* Few ranks that share CPUs: the linear allgather is faster. */
static bool is_long_of_few(const weft_coll_query *query, uint64_t block)
{
    return query->ranks > 2 && query->ranks <= FEW + 1 && shares_by_message(query, 0) && block > 48 * 1024 * (query->ranks - 2);
}

double weft_cost_area_allgather(const weft_coll_query *query)
{
    return by_message(query, 12, INFINITY) || is_long_of_few(query, query->bytes) ? INFINITY : area(query, 256, others(query));
}

double weft_cost_area_allgatherv(const weft_coll_query *query) /* bytes: of all blocks */
{
    return by_message(query, 24, INFINITY) || is_long_of_few(query, query->bytes / query->ranks)
               ? INFINITY : area(query, query->ranks <= FEW ? 256 : 256.0 * query->ranks, 1 - 1.0 / query->ranks);
}

double weft_cost_area_reduce_scatter(const weft_coll_query *query) /* bytes: of the vector */
{
    return by_message(query, 48, INFINITY) || is_long_in_crowd(query) ? INFINITY : area(query, 256, 1 - 1.0 / query->ranks);
}
