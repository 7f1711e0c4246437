/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts_coll: collectives over several nodes, in which one member of each speaks for its node. Called through choose.c where two
 * members at least stand on one node (plan->team->hosts). Each is made of stages: among the members of our node (through shared slots
 * where a live plan may, else by messages), and among the nodes' speakers, each stage by the table's own choice for so many ranks. What
 * crosses between two nodes is one message where it was one for each of their ranks.
 * Of a long vector to be folded each member speaks for a part (weft_allreduce_parts), as many parts as the node with the fewest has members.
 * A speaker is the node's lowest member, or the root on the root's own node. All members see the same speakers.
 */
#include "base/status.h"
#include "collectives/algorithms.h"
#include "collectives/choose.h"
#include "collectives/hosts.h"
#include "collectives/node.h"

typedef struct stage {
    enum weft_coll_kind kind;
    const uint32_t *members;
    uint32_t count;
    bool is_inside; /* of our node */
} stage;

static const weft_choice *choose(const weft_plan *plan, const stage *at, const weft_coll *args)
{
    const weft_team *team = plan->team;
    bool is_root = at->kind == WEFT_COLL_GATHER && at->members[args->root] == team->rank; /* of those used here only it counts blocks */
    weft_choice_ask ask = {.kind = at->kind, .ranks = at->count, .latency_bytes = at->is_inside ? WEFT_CHOICE_LATENCY : team->latency_bytes};

    ask.bytes = weft_choose_bytes(at->kind, args, is_root);
    if (args->op && args->op->is_commutative)
        ask.has |= WEFT_NEED_COMMUTATIVE;
    if (!(at->count & (at->count - 1)))
        ask.has |= WEFT_NEED_POWER;
    if (at->is_inside && plan->is_live && team->node) {
        ask.slot_bytes = weft_node_slot_bytes(team->node);
        if (!args->op || args->recvtype->size <= (int64_t)ask.slot_bytes)
            ask.has |= WEFT_NEED_NODE;
    }
    return weft_choose(&ask);
}

static void perform(weft_plan *plan, const stage *at, const weft_coll *args)
{
    const weft_choice *row;

    if (at->count < 2)
        return;
    row = choose(plan, at, args);
    if (row->algorithm) {
        weft_plan_sub(plan, at->members, at->count, row->algorithm, args);
        return;
    }
    weft_plan_fence(plan);
    if (!plan->rc) {
        int rc;
        weft_node_mark(plan->team->node, plan->damage != 0);
        rc = weft_node_stage(plan->team->node, at->kind, args);
        if (rc)
            weft_plan_fail(plan, rc);
    }
}

static void inside(weft_plan *plan, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    perform(plan, &(stage){kind, hosts->mates, hosts->mate_count, true}, args);
}

/* Of speakers only. */
static void across(weft_plan *plan, enum weft_coll_kind kind, const uint32_t *speakers, const weft_coll *args)
{
    perform(plan, &(stage){kind, speakers, plan->team->hosts->count, false}, args);
}

/* Who speaks for each node when `root` is the root; NULL when there is no memory, which sticks to the plan. */
static const uint32_t *speakers_with(weft_plan *plan, uint32_t root, uint32_t node)
{
    const weft_hosts *hosts = plan->team->hosts;
    uint32_t *speakers;

    if (hosts->leaders[node] == root)
        return hosts->leaders;
    speakers = weft_plan_temp(plan, hosts->count * sizeof *speakers, weft_plan_bytes());
    for (uint32_t i = 0; speakers && i < hosts->count; i++)
        speakers[i] = i == node ? root : hosts->leaders[i];
    return speakers;
}

void weft_barrier_hosts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    const weft_type *byte = weft_plan_bytes();
    char *word = weft_plan_temp(plan, hosts->mate_count + 1, byte);
    weft_coll here = {.sendbuf = word, .sendcount = 1, .sendtype = byte, .recvbuf = word + 1, .recvcount = 1, .recvtype = byte};

    if (!word)
        return;
    word[0] = 0;
    inside(plan, WEFT_COLL_GATHER, &here);
    if (!hosts->index)
        across(plan, WEFT_COLL_BARRIER, hosts->leaders, args);
    here.recvbuf = word;
    inside(plan, WEFT_COLL_BCAST, &here);
}

void weft_bcast_hosts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    uint32_t root = (uint32_t)args->root, node = weft_hosts_of(hosts, root);
    const uint32_t *speakers = speakers_with(plan, root, node);
    weft_coll part = *args;

    if (!speakers)
        return;
    part.root = (int)node;
    if (speakers[hosts->mine] == plan->rank)
        across(plan, WEFT_COLL_BCAST, speakers, &part);
    part.root = (int)weft_hosts_index(hosts, speakers[hosts->mine]);
    inside(plan, WEFT_COLL_BCAST, &part);
}

/* What the members of our node folded at its speaker, `sum` there; whose own data if it stands alone. */
static const void *fold_inside(weft_plan *plan, const weft_coll *args, uint32_t speaker, bool in_place, void *sum)
{
    const weft_hosts *hosts = plan->team->hosts;
    weft_coll part = *args;

    if (hosts->mate_count == 1)
        return in_place ? args->recvbuf : args->sendbuf;
    part.root = (int)weft_hosts_index(hosts, speaker);
    part.recvbuf = sum;
    part.in_place = in_place && plan->rank == speaker;
    if (in_place && plan->rank != speaker)
        part.sendbuf = args->recvbuf;
    inside(plan, WEFT_COLL_REDUCE, &part);
    return sum;
}

void weft_reduce_hosts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    uint32_t root = (uint32_t)args->root, node = weft_hosts_of(hosts, root);
    const uint32_t *speakers = speakers_with(plan, root, node);
    bool is_root = plan->rank == root;
    weft_coll part = *args;
    void *sum = NULL;

    if (!speakers)
        return;
    if (is_root)
        sum = args->recvbuf;
    else if (speakers[hosts->mine] == plan->rank && hosts->mate_count > 1)
        sum = weft_plan_temp(plan, args->recvcount, args->recvtype);
    part.sendbuf = fold_inside(plan, args, speakers[hosts->mine], is_root && args->in_place, sum);
    part.root = (int)node;
    part.in_place = is_root && part.sendbuf == args->recvbuf;
    if (speakers[hosts->mine] == plan->rank)
        across(plan, WEFT_COLL_REDUCE, speakers, &part);
}

void weft_allreduce_hosts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    weft_coll part = *args;

    part.sendbuf = fold_inside(plan, args, hosts->leaders[hosts->mine], args->in_place, args->recvbuf);
    part.in_place = part.sendbuf == args->recvbuf;
    if (!hosts->index)
        across(plan, WEFT_COLL_ALLREDUCE, hosts->leaders, &part);
    part.root = 0;
    inside(plan, WEFT_COLL_BCAST, &part);
}

/* ---- each member speaks for a part ---- */

static weft_coll own_part(const weft_hosts *hosts, const weft_coll *args)
{
    uint64_t first = weft_plan_block_start(args->recvcount, hosts->parts, hosts->index);
    weft_coll part = *args;

    part.recvcount = weft_plan_block_start(args->recvcount, hosts->parts, hosts->index + 1) - first;
    part.recvbuf = weft_plan_at(args->recvbuf, args->recvtype, first);
    part.in_place = true;
    return part;
}

static void fold_parts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;

    weft_reduce_own_block(plan, args, hosts->parts, hosts->index < hosts->parts ? own_part(hosts, args).recvbuf : NULL);
}

static void spread_parts(weft_plan *plan, const weft_coll *args)
{
    weft_spread_blocks(plan, args->recvbuf, args->recvcount, args->recvtype, plan->team->hosts->parts);
}

/* Among the members of our node. */
static void parts_inside(weft_plan *plan, weft_node_parts *in_slots, weft_plan_algorithm *by_messages, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;
    weft_node *node = plan->is_live ? plan->team->node : NULL;
    int rc;

    if (!node || !weft_node_takes_parts(node, args->recvtype, hosts->parts)) {
        weft_plan_sub(plan, hosts->mates, hosts->mate_count, by_messages, args);
        return;
    }
    weft_plan_fence(plan);
    if (plan->rc)
        return;
    weft_node_mark(node, plan->damage != 0);
    rc = in_slots(node, args, hosts->parts);
    if (rc)
        weft_plan_fail(plan, rc);
}

void weft_allreduce_parts(weft_plan *plan, const weft_coll *args)
{
    const weft_hosts *hosts = plan->team->hosts;

    if (hosts->mate_count == 1) { /* one part, and it is ours */
        perform(plan, &(stage){WEFT_COLL_ALLREDUCE, hosts->peers, hosts->count, false}, args);
        return;
    }
    parts_inside(plan, weft_node_fold_parts, fold_parts, args);
    if (hosts->index < hosts->parts) {
        weft_coll part = own_part(hosts, args);
        perform(plan, &(stage){WEFT_COLL_ALLREDUCE, hosts->peers, hosts->count, false}, &part);
    }
    parts_inside(plan, weft_node_spread_parts, spread_parts, args);
}
