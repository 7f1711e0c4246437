/* SPDX-License-Identifier: BSD-3-Clause
 *
 * neighbor: neighborhood collectives (MPI 5.0 8.6): one message along each edge of the communicator's topology. Called through select.c.
 * An edge without bytes needs no message: both ends know its length.
 * Invariant: several edges between the same two members match in the order of the source's destinations. On a grid, what a member sends
 * down (neighbor 2d) arrives from above (neighbor 2d + 1): a dimension of one or two members has both edges between the same members.
 */
#include "collectives/algorithms.h"

static bool is_message(int neighbor, const weft_block *block) { return neighbor >= 0 && weft_block_bytes(block); }

static void receive_all(weft_sched *sched, const weft_coll *args)
{
    const weft_neighbors *to = args->neighbors;
    weft_blocks in = weft_blocks_received(args);

    for (uint32_t i = 0; i < to->source_count; i++) {
        uint32_t from = to->is_grid ? i ^ 1 : i;
        weft_block block = weft_blocks_at(&in, from);
        if (is_message(to->sources[from], &block))
            weft_sched_recv(sched, (uint32_t)to->sources[from], block.at, block.count, block.type);
    }
}

/* is_same: block 0 goes to all. */
static void send_all(weft_sched *sched, const weft_coll *args, bool is_same)
{
    const weft_neighbors *to = args->neighbors;
    weft_blocks out = weft_blocks_sent(args);

    for (uint32_t i = 0; i < to->destination_count; i++) {
        weft_block block = weft_blocks_at(&out, is_same ? 0 : i);
        if (is_message(to->destinations[i], &block))
            weft_sched_send(sched, (uint32_t)to->destinations[i], block.at, block.count, block.type);
    }
}

void weft_neighbor_allgather(weft_sched *sched, const weft_coll *args)
{
    receive_all(sched, args);
    send_all(sched, args, true);
    weft_sched_fence(sched);
}

void weft_neighbor_alltoall(weft_sched *sched, const weft_coll *args)
{
    receive_all(sched, args);
    send_all(sched, args, false);
    weft_sched_fence(sched);
}
