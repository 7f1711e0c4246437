/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier: hierarchical collectives over several nodes (team->topology). Called through select.c.
 * Each has stages among the members of a node (through the node area if the schedule is immediate, else by messages) and among the leaders
 * of the nodes; select.c chooses each stage's algorithm. A leader is its node's lowest member; on the root's node it is the root.
 * weft_allreduce_multileader: each of the first topology->parts members of a node leads for one part of the vector.
 * Invariant: all members agree on the leaders.
 */
#include "base/status.h"
#include "collectives/algorithms.h"
#include "collectives/select.h"
#include "collectives/shmcoll.h"
#include "collectives/topology.h"

typedef struct stage {
    enum weft_coll_kind kind;
    const uint32_t *members;
    uint32_t count;
    bool is_inside; /* among members of this node */
} stage;

static const weft_coll_rule *choose(const weft_sched *sched, const stage *at, const weft_coll *args)
{
    const weft_team *team = sched->team;
    /* of the operations used here, only gather depends on it */
    bool is_root = at->kind == WEFT_COLL_GATHER && at->members[args->root] == team->rank;
    weft_coll_query ask = {.kind = at->kind, .ranks = at->count,
                           .latency_bytes = at->is_inside ? WEFT_COLL_RULE_LATENCY : team->latency_bytes};

    ask.bytes = weft_coll_select_bytes(at->kind, args, is_root);
    if (args->op && args->op->is_commutative)
        ask.has |= WEFT_NEED_COMMUTATIVE;
    if (!(at->count & (at->count - 1)))
        ask.has |= WEFT_NEED_POWER;
    if (at->is_inside && sched->is_immediate && team->node) {
        ask.slot_bytes = weft_shmcoll_slot_bytes(team->node);
        if (!args->op || args->recvtype->size <= (int64_t)ask.slot_bytes)
            ask.has |= WEFT_NEED_NODE;
    }
    return weft_coll_select(&ask);
}

static void perform(weft_sched *sched, const stage *at, const weft_coll *args)
{
    const weft_coll_rule *row;

    if (at->count < 2)
        return;
    row = choose(sched, at, args);
    if (row->algorithm) {
        weft_sched_sub(sched, at->members, at->count, row->algorithm, args);
        return;
    }
    weft_sched_fence(sched);
    if (!sched->rc) {
        int rc;
        weft_shmcoll_mark(sched->team->node, sched->damage != 0);
        rc = weft_shmcoll_stage(sched->team->node, at->kind, args);
        if (rc)
            weft_sched_fail(sched, rc);
    }
}

static void inside(weft_sched *sched, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    perform(sched, &(stage){kind, topology->node_ranks, topology->node_rank_count, true}, args);
}

/* Called by the leaders (speakers) only. */
static void across(weft_sched *sched, enum weft_coll_kind kind, const uint32_t *speakers, const weft_coll *args)
{
    perform(sched, &(stage){kind, speakers, sched->team->topology->count, false}, args);
}

/* The leader of each node for this root. NULL: out of memory; the schedule keeps the error. */
static const uint32_t *leaders_for_root(weft_sched *sched, uint32_t root, uint32_t node)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t *speakers;

    if (topology->leaders[node] == root)
        return topology->leaders;
    speakers = weft_sched_temp(sched, topology->count * sizeof *speakers, weft_sched_bytes());
    for (uint32_t i = 0; speakers && i < topology->count; i++)
        speakers[i] = i == node ? root : topology->leaders[i];
    return speakers;
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
    inside(sched, WEFT_COLL_GATHER, &here);
    if (!topology->index)
        across(sched, WEFT_COLL_BARRIER, topology->leaders, args);
    here.recvbuf = word;
    inside(sched, WEFT_COLL_BCAST, &here);
}

void weft_bcast_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t root = (uint32_t)args->root, node = weft_topology_of(topology, root);
    const uint32_t *speakers = leaders_for_root(sched, root, node);
    weft_coll part = *args;

    if (!speakers)
        return;
    part.root = (int)node;
    if (speakers[topology->mine] == sched->rank)
        across(sched, WEFT_COLL_BCAST, speakers, &part);
    part.root = (int)weft_topology_index(topology, speakers[topology->mine]);
    inside(sched, WEFT_COLL_BCAST, &part);
}

/* Reduces within the node into `sum` at the leader. Returns where the result is: the own data if no other member is on the node. */
static const void *fold_inside(weft_sched *sched, const weft_coll *args, uint32_t speaker, bool in_place, void *sum)
{
    const weft_topology *topology = sched->team->topology;
    weft_coll part = *args;

    if (topology->node_rank_count == 1)
        return in_place ? args->recvbuf : args->sendbuf;
    part.root = (int)weft_topology_index(topology, speaker);
    part.recvbuf = sum;
    part.in_place = in_place && sched->rank == speaker;
    if (in_place && sched->rank != speaker)
        part.sendbuf = args->recvbuf;
    inside(sched, WEFT_COLL_REDUCE, &part);
    return sum;
}

void weft_reduce_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    uint32_t root = (uint32_t)args->root, node = weft_topology_of(topology, root);
    const uint32_t *speakers = leaders_for_root(sched, root, node);
    bool is_root = sched->rank == root;
    weft_coll part = *args;
    void *sum = NULL;

    if (!speakers)
        return;
    if (is_root)
        sum = args->recvbuf;
    else if (speakers[topology->mine] == sched->rank && topology->node_rank_count > 1)
        sum = weft_sched_temp(sched, args->recvcount, args->recvtype);
    part.sendbuf = fold_inside(sched, args, speakers[topology->mine], is_root && args->in_place, sum);
    part.root = (int)node;
    part.in_place = is_root && part.sendbuf == args->recvbuf;
    if (speakers[topology->mine] == sched->rank)
        across(sched, WEFT_COLL_REDUCE, speakers, &part);
}

void weft_allreduce_hier(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_coll part = *args;

    part.sendbuf = fold_inside(sched, args, topology->leaders[topology->mine], args->in_place, args->recvbuf);
    part.in_place = part.sendbuf == args->recvbuf;
    if (!topology->index)
        across(sched, WEFT_COLL_ALLREDUCE, topology->leaders, &part);
    part.root = 0;
    inside(sched, WEFT_COLL_BCAST, &part);
}

/* ---- multileader ---- */

static weft_coll own_part(const weft_topology *topology, const weft_coll *args)
{
    uint64_t first = weft_sched_block_start(args->recvcount, topology->parts, topology->index);
    weft_coll part = *args;

    part.recvcount = weft_sched_block_start(args->recvcount, topology->parts, topology->index + 1) - first;
    part.recvbuf = weft_sched_at(args->recvbuf, args->recvtype, first);
    part.in_place = true;
    return part;
}

static void fold_parts(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;

    weft_reduce_own_block(sched, args, topology->parts, topology->index < topology->parts ? own_part(topology, args).recvbuf : NULL);
}

static void spread_parts(weft_sched *sched, const weft_coll *args)
{
    weft_spread_blocks(sched, args->recvbuf, args->recvcount, args->recvtype, sched->team->topology->parts);
}

/* One half of the allreduce within the node, through the node area if possible, else by messages. */
static void parts_inside(weft_sched *sched, weft_shmcoll_rsag *in_slots, weft_sched_algorithm *by_messages, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_shmcoll *node = sched->is_immediate ? sched->team->node : NULL;
    int rc;

    if (!node || !weft_shmcoll_can_rsag(node, args->recvtype, topology->parts)) {
        weft_sched_sub(sched, topology->node_ranks, topology->node_rank_count, by_messages, args);
        return;
    }
    weft_sched_fence(sched);
    if (sched->rc)
        return;
    weft_shmcoll_mark(node, sched->damage != 0);
    rc = in_slots(node, args, topology->parts);
    if (rc)
        weft_sched_fail(sched, rc);
}

void weft_allreduce_multileader(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;

    if (topology->node_rank_count == 1) { /* topology->parts is 1 */
        perform(sched, &(stage){WEFT_COLL_ALLREDUCE, topology->peers, topology->count, false}, args);
        return;
    }
    parts_inside(sched, weft_shmcoll_reduce_scatter, fold_parts, args);
    if (topology->index < topology->parts) {
        weft_coll part = own_part(topology, args);
        perform(sched, &(stage){WEFT_COLL_ALLREDUCE, topology->peers, topology->count, false}, &part);
    }
    parts_inside(sched, weft_shmcoll_allgather, spread_parts, args);
}
