/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier: hierarchical collectives over several nodes (team->topology). Called through select.c.
 * Each has stages among the members of a node (through the node area if the schedule is immediate, else by messages) and among the leaders
 * of the nodes; select.c chooses each stage's algorithm. A leader is its node's lowest member; on the root's node it is the root.
 * weft_allreduce_multileader: each of the first topology->leaders_per_node members of a node leads for one block of the vector.
 * Invariant: all members agree on the leaders.
 */
#include "base/status.h"
#include "collectives/algorithms.h"
#include "collectives/choice.h"
#include "collectives/hier.h"
#include "collectives/shmcoll.h"
#include "collectives/topology.h"

static const weft_coll_rule *select_rule(const weft_sched *sched, const weft_hier_stage *at, const weft_coll *args)
{
    weft_team *team = sched->team;
    /* of the operations used here, only these depend on it */
    bool is_root = (at->kind == WEFT_COLL_GATHER || at->kind == WEFT_COLL_SCATTER) && at->members[args->root] == team->rank;
    weft_coll_query query = weft_coll_query_of(at->kind, at->count, team, args, is_root);

    query.nodes = at->is_in_node ? 1 : at->count;
    query.sharing = at->sharing;
    if (at->is_in_node && sched->is_immediate && team->area) {
        query.slot_bytes = weft_shmcoll_slot_bytes(team->area);
        if (weft_shmcoll_can_hold(team->area, at->kind, args))
            query.has |= WEFT_NEED_AREA;
    }
    return weft_coll_choose(team, &query);
}

void weft_hier_perform(weft_sched *sched, const weft_hier_stage *at, const weft_coll *args)
{
    const weft_coll_rule *rule;

    if (at->count < 2)
        return;
    rule = select_rule(sched, at, args);
    if (rule->algorithm) {
        weft_sched_sub(sched, at->members, at->count, rule->algorithm, args);
        return;
    }
    weft_sched_fence(sched);
    if (!sched->rc) {
        int rc;
        weft_shmcoll_set_tainted(sched->team->area, sched->damage != 0);
        rc = weft_shmcoll_stage(sched->team->area, at->kind, args);
        if (rc)
            weft_sched_fail(sched, rc);
    }
}

static void in_node(weft_sched *sched, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_hier_perform(sched, &(weft_hier_stage){kind, topology->node_ranks, topology->node_rank_count, true, 1}, args);
}

/* Called by the leaders only. */
static void among_leaders(weft_sched *sched, enum weft_coll_kind kind, const uint32_t *leaders, const weft_coll *args)
{
    weft_hier_perform(sched, &(weft_hier_stage){kind, leaders, sched->team->topology->count, false, 1}, args);
}

/* The leader of each node for this root. NULL: out of memory; the schedule keeps the error. */
static const uint32_t *leaders_for_root(weft_sched *sched, uint32_t root, uint32_t node)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t *leaders;

    if (topology->leaders[node] == root)
        return topology->leaders;
    leaders = weft_sched_temp(sched, topology->count * sizeof *leaders, weft_sched_bytes());
    for (uint32_t i = 0; leaders && i < topology->count; i++)
        leaders[i] = i == node ? root : topology->leaders[i];
    return leaders;
}

void weft_barrier_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    const weft_type *byte = weft_sched_bytes();
    char *word = weft_sched_temp(sched, topology->node_rank_count + 1, byte);
    weft_coll here = {.sendbuf = word, .sendcount = 1, .sendtype = byte, .recvbuf = word + 1, .recvcount = 1, .recvtype = byte};

    if (!word)
        return;
    word[0] = 0;
    in_node(sched, WEFT_COLL_GATHER, &here);
    if (!topology->index)
        among_leaders(sched, WEFT_COLL_BARRIER, topology->leaders, args);
    here.recvbuf = word;
    in_node(sched, WEFT_COLL_BCAST, &here);
}

void weft_bcast_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t root = (uint32_t)args->root, node = weft_topology_of(topology, root);
    const uint32_t *leaders = leaders_for_root(sched, root, node);
    weft_coll part = *args;

    if (!leaders)
        return;
    part.root = (int)node;
    if (leaders[topology->node] == sched->rank)
        among_leaders(sched, WEFT_COLL_BCAST, leaders, &part);
    part.root = (int)weft_topology_index(topology, leaders[topology->node]);
    in_node(sched, WEFT_COLL_BCAST, &part);
}

/* Reduces within the node into `sum` at the leader. Returns where the result is: the own data if no other member is on the node. */
static const void *reduce_in_node(weft_sched *sched, const weft_coll *args, uint32_t leader, bool in_place, void *sum)
{
    const weft_topology *topology = sched->team->topology;
    weft_coll part = *args;

    if (topology->node_rank_count == 1)
        return in_place ? args->recvbuf : args->sendbuf;
    part.root = (int)weft_topology_index(topology, leader);
    part.recvbuf = sum;
    part.in_place = in_place && sched->rank == leader;
    if (in_place && sched->rank != leader)
        part.sendbuf = args->recvbuf;
    in_node(sched, WEFT_COLL_REDUCE, &part);
    return sum;
}

void weft_reduce_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t root = (uint32_t)args->root, node = weft_topology_of(topology, root);
    const uint32_t *leaders = leaders_for_root(sched, root, node);
    bool is_root = sched->rank == root;
    weft_coll part = *args;
    void *sum = NULL;

    if (!leaders)
        return;
    if (is_root)
        sum = args->recvbuf;
    else if (leaders[topology->node] == sched->rank && topology->node_rank_count > 1)
        sum = weft_sched_temp(sched, args->recvcount, args->recvtype);
    part.sendbuf = reduce_in_node(sched, args, leaders[topology->node], is_root && args->in_place, sum);
    part.root = (int)node;
    part.in_place = is_root && part.sendbuf == args->recvbuf;
    if (leaders[topology->node] == sched->rank)
        among_leaders(sched, WEFT_COLL_REDUCE, leaders, &part);
}

void weft_allreduce_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_coll part = *args;

    part.sendbuf = reduce_in_node(sched, args, topology->leaders[topology->node], args->in_place, args->recvbuf);
    part.in_place = part.sendbuf == args->recvbuf;
    if (!topology->index)
        among_leaders(sched, WEFT_COLL_ALLREDUCE, topology->leaders, &part);
    part.root = 0;
    in_node(sched, WEFT_COLL_BCAST, &part);
}

/* ---- multileader ---- */

/* The blocks of a vector, one for each leader of a node. */
static weft_blocks leaders_blocks(const weft_topology *topology, const void *buf, const weft_coll *args)
{
    return weft_blocks_even(buf, args->recvcount, args->recvtype, topology->leaders_per_node);
}

static weft_coll own_block(const weft_topology *topology, const weft_coll *args)
{
    weft_blocks blocks = leaders_blocks(topology, args->recvbuf, args);
    weft_block own = weft_blocks_at(&blocks, topology->index);
    weft_coll part = *args;

    part.recvcount = own.count;
    part.recvbuf = own.at;
    part.in_place = true;
    return part;
}

static void reduce_scatter_in_node(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_blocks data = leaders_blocks(topology, args->in_place ? args->recvbuf : args->sendbuf, args);

    weft_reduce_own_block(sched, &data, topology->index < topology->leaders_per_node ? own_block(topology, args).recvbuf : NULL);
}

static void allgather_in_node(weft_sched *sched, const weft_coll *args)
{
    weft_blocks blocks = leaders_blocks(sched->team->topology, args->recvbuf, args);

    weft_allgather_blocks_linear(sched, &blocks);
}

/* One half of the allreduce within the node, through the node area if possible, else by messages. */
static void half_in_node(weft_sched *sched, weft_shmcoll_half *in_slots, weft_sched_algorithm *by_messages, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_shmcoll *area = sched->is_immediate ? sched->team->area : NULL;
    int rc;

    if (!area || !weft_shmcoll_can_split(area, args->recvtype, topology->leaders_per_node)) {
        weft_sched_sub(sched, topology->node_ranks, topology->node_rank_count, by_messages, args);
        return;
    }
    weft_sched_fence(sched);
    if (sched->rc)
        return;
    weft_shmcoll_set_tainted(area, sched->damage != 0);
    rc = in_slots(area, args, topology->leaders_per_node);
    if (rc)
        weft_sched_fail(sched, rc);
}

void weft_allreduce_multileader(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;

    if (topology->node_rank_count == 1) { /* topology->leaders_per_node is 1 */
        weft_hier_perform(sched, &(weft_hier_stage){WEFT_COLL_ALLREDUCE, topology->same_index, topology->count, false, 1}, args);
        return;
    }
    half_in_node(sched, weft_shmcoll_reduce_scatter, reduce_scatter_in_node, args);
    if (topology->index < topology->leaders_per_node) {
        weft_coll part = own_block(topology, args);
        weft_hier_stage stage = {WEFT_COLL_ALLREDUCE, topology->same_index, topology->count, false, topology->leaders_per_node};
        weft_hier_perform(sched, &stage, &part);
    }
    half_in_node(sched, weft_shmcoll_allgather, allgather_in_node, args);
}
