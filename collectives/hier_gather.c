/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier_gather: multi-leader gather and scatter over several nodes (hier_bundles.h). Called through select.c. A gather: each group hands its
 * blocks to its leader; on the root's node the leaders gather their bundles from all nodes, and hand them to the root. A scatter is the
 * reverse.
 */
#include "collectives/algorithms.h"
#include "collectives/hier.h"
#include "collectives/hier_bundles.h"

typedef struct journey {
    weft_bundles b;
    weft_blocks blocks;     /* of all members; without the root's: only their length is known */
    weft_block own;
    weft_bundles_room room; /* root: all blocks; a leader on its node: the bundle; other leaders: the group */
    bool is_gather, is_root, leads, is_on_root_node;
} journey;

static void journey_open(weft_sched *sched, const weft_coll *args, journey *j)
{
    uint32_t node = sched->team->topology->node, root = (uint32_t)args->root, first, end;

    j->is_root = sched->rank == root;
    j->b = weft_bundles_make(sched, &j->blocks, root);
    if (sched->rc)
        return;
    j->leads = weft_bundles_leader(&j->b, j->b.own, node) == sched->rank;
    j->is_on_root_node = node == j->b.root_node;
    first = j->is_root ? 0 : j->b.own * j->b.nodes + (j->is_on_root_node ? 0 : node);
    end = j->is_root ? j->b.leaders * j->b.nodes : j->is_on_root_node ? first + j->b.nodes : first + 1;
    if (j->leads)
        j->room = weft_bundles_room_of(sched, &j->b, first, end);
}

/* Between the leaders of a bundle: one on each node. */
static void between_nodes(weft_sched *sched, journey *j)
{
    uint32_t first = j->b.own * j->b.nodes, node = sched->team->topology->node;
    const uint64_t *starts = j->b.starts + first;
    uint32_t *members = weft_sched_temp(sched, j->b.nodes * sizeof *members, weft_sched_bytes());
    weft_layout layout;
    weft_coll call = {.in_place = false};
    enum weft_coll_kind kind;

    if (!members)
        return;
    for (uint32_t i = 0; i < j->b.nodes; i++)
        members[i] = weft_bundles_leader(&j->b, j->b.own, i);
    call = weft_bundles_call(sched, (weft_bundles_room){j->room.buf, j->is_on_root_node ? j->room.origin : starts[0]}, starts, j->b.nodes,
                             &layout);
    if (sched->rc)
        return;
    kind = j->is_gather ? (call.is_v ? WEFT_COLL_GATHERV : WEFT_COLL_GATHER) : call.is_v ? WEFT_COLL_SCATTERV : WEFT_COLL_SCATTER;
    call.root = (int)j->b.root_node;
    if (!j->is_on_root_node) { /* one block, which is the whole room */
        call.in_place = false;
        call.send_layout = call.recv_layout = NULL;
        call.sendcount = call.recvcount = starts[node + 1] - starts[node];
    } else if (j->is_gather) {
        call.send_layout = NULL;
    } else {
        call.recv_layout = NULL;
    }
    weft_hier_perform(sched, &(weft_hier_stage){kind, members, j->b.nodes, false, j->b.leaders}, &call);
}

/* Between the root and the other leaders on its node: a bundle each. */
static void in_root_node(weft_sched *sched, journey *j)
{
    for (uint32_t i = 0; i < j->b.leaders; i++) {
        uint64_t at = j->b.starts[i * j->b.nodes], bytes = j->b.starts[(i + 1) * j->b.nodes] - at;
        uint32_t leader = weft_bundles_leader(&j->b, i, j->b.root_node);
        if (leader == j->b.root || !bytes || !(j->is_root || leader == sched->rank))
            continue;
        if (j->is_root == j->is_gather)
            weft_sched_recv(sched, j->is_root ? leader : j->b.root, weft_bundles_at(j->room, at), bytes, weft_sched_bytes());
        else
            weft_sched_send(sched, j->is_root ? leader : j->b.root, weft_bundles_at(j->room, at), bytes, weft_sched_bytes());
    }
    weft_sched_fence(sched);
}

void weft_gather_multileader(weft_sched *sched, const weft_coll *args)
{
    bool is_root = sched->rank == (uint32_t)args->root;
    journey j = {.is_gather = true, .own = {(void *)args->sendbuf, args->sendcount, args->sendtype},
                 .blocks = is_root ? weft_blocks_received(args) : weft_blocks_sent(args)};

    journey_open(sched, args, &j);
    if (sched->rc)
        return;
    weft_bundles_hand(sched, &j.b, &j.blocks, j.room, &j.own, true);
    if (j.leads)
        between_nodes(sched, &j);
    if (j.is_on_root_node)
        in_root_node(sched, &j);
    if (!is_root)
        return;
    weft_bundles_unpack(sched, &j.b, &j.blocks, j.room);
    if (!args->in_place)
        weft_blocks_fill(sched, &j.blocks, sched->rank, j.own.at, j.own.count, j.own.type);
}

void weft_scatter_multileader(weft_sched *sched, const weft_coll *args)
{
    bool is_root = sched->rank == (uint32_t)args->root;
    journey j = {.own = {args->recvbuf, args->recvcount, args->recvtype},
                 .blocks = is_root ? weft_blocks_sent(args) : weft_blocks_received(args)};

    journey_open(sched, args, &j);
    if (sched->rc)
        return;
    if (is_root) {
        weft_bundles_pack(sched, &j.b, &j.blocks, j.room);
        if (!args->in_place)
            weft_blocks_take(sched, &j.blocks, sched->rank, j.own.at, j.own.count, j.own.type);
    }
    if (j.is_on_root_node)
        in_root_node(sched, &j);
    if (j.leads)
        between_nodes(sched, &j);
    weft_bundles_hand(sched, &j.b, &j.blocks, j.room, &j.own, false);
}
