/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_area: costs of the collectives through a node area (shmcoll.c). Members write, read and reduce slots at the same time, so the cost
 * is that of one pass over the bytes that a member gets (a root: gets or gives): a lower bound. Each form was measured to be the fastest up
 * to a bound in slots, with 2 to 16 ranks, also where they share CPUs. That bound is part of the cost: beyond, the form must not be used.
 */
#include <math.h>

#include "collectives/cost.h"
#include "collectives/cost_terms.h"

/* bound: in slots; blocks: bytes that one member gets, in units of query->bytes. */
static double area(const weft_coll_query *query, double bound, double blocks)
{
    weft_terms t = weft_terms_of(query);

    if (query->nodes > 1 || t.bytes > bound * query->slot_bytes)
        return INFINITY;
    return query->params->flag_ns + blocks * t.bytes * t.copy;
}

static double others(const weft_coll_query *query) { return query->ranks - 1.0; }

/* Where ranks share CPUs a message costs one more hand-over of the CPU, so slots are faster at any length: with 4 ranks on 2 CPUs 16 and
 * 64 MB take a half to a tenth of the time. */
static double reduction(const weft_coll_query *query)
{
    return area(query, query->params->shares_cpus ? INFINITY : 256.0 / query->ranks, 1);
}

double weft_cost_area_barrier(const weft_coll_query *query) { return area(query, INFINITY, 0); }
double weft_cost_area_bcast(const weft_coll_query *query) { return area(query, 256, 1); }
double weft_cost_area_reduce(const weft_coll_query *query) { return reduction(query); }
double weft_cost_area_allreduce(const weft_coll_query *query) { return reduction(query); }
double weft_cost_area_gather(const weft_coll_query *query) { return area(query, 16, others(query)); }
double weft_cost_area_scatter(const weft_coll_query *query) { return area(query, 4.0 / query->ranks, others(query)); }
double weft_cost_area_allgather(const weft_coll_query *query) { return area(query, 256, others(query)); }
double weft_cost_area_alltoall(const weft_coll_query *query) { return area(query, 2.0 / query->ranks, others(query)); }
double weft_cost_area_allgatherv(const weft_coll_query *query) { return area(query, 256, 1 - 1.0 / query->ranks); }
double weft_cost_area_scan(const weft_coll_query *query) { return reduction(query); }
double weft_cost_area_reduce_scatter(const weft_coll_query *query) { return area(query, 256, 1 - 1.0 / query->ranks); }
