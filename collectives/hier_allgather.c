/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier_allgather: multi-leader allgather and allgatherv over several nodes (hier_bundles.h). Called through select.c. Each group hands its
 * blocks to its leader, the leaders of each bundle gather it from all nodes, and the leaders of a node share their bundles with the node.
 */
#include "collectives/algorithms.h"
#include "collectives/hier.h"
#include "collectives/hier_bundles.h"

/* Blocks starts[i] .. starts[i + 1] - 1 of the room, of member i. */
static void gather_all(weft_sched *sched, weft_bundles_room room, const uint64_t *starts, weft_hier_stage stage) /* without kind */
{
    weft_layout layout;
    weft_coll call = weft_bundles_call(sched, room, starts, stage.count, &layout);

    if (sched->rc)
        return;
    stage.kind = call.is_v ? WEFT_COLL_ALLGATHERV : WEFT_COLL_ALLGATHER;
    weft_hier_perform(sched, &stage, &call);
}

void weft_allgather_multileader(weft_sched *sched, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;
    weft_blocks all = weft_blocks_received(args);
    weft_bundles b = weft_bundles_make(sched, &all, WEFT_BUNDLES_NO_ROOT);
    weft_block own = {(void *)args->sendbuf, args->sendcount, args->sendtype};
    weft_bundles_room room;
    uint64_t *starts;

    if (sched->rc)
        return;
    room = weft_bundles_room_of(sched, &b, 0, b.leaders * b.nodes);
    starts = weft_sched_temp(sched, (topology->node_rank_count + (uint64_t)1) * sizeof *starts, weft_sched_bytes());
    if (sched->rc)
        return;
    if (args->in_place)
        own = weft_blocks_at(&all, sched->rank);
    else
        weft_blocks_fill(sched, &all, sched->rank, own.at, own.count, own.type);
    weft_bundles_hand(sched, &b, &all, room, &own, true);
    if (topology->index < b.leaders)
        gather_all(sched, room, b.starts + b.own * b.nodes,
                   (weft_hier_stage){.members = topology->same_index, .count = b.nodes, .sharing = b.leaders});
    for (uint32_t i = 0; i <= topology->node_rank_count; i++) /* members that do not lead have empty blocks */
        starts[i] = b.starts[(i < b.leaders ? i : b.leaders) * b.nodes];
    gather_all(sched, room, starts,
               (weft_hier_stage){.members = topology->node_ranks, .count = topology->node_rank_count, .is_in_node = true, .sharing = 1});
    weft_bundles_unpack(sched, &b, &all, room);
}
