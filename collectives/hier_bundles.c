/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier_bundles: see hier_bundles.h. Called by hier_gather.c and hier_allgather.c.
 */
#include "collectives/hier_bundles.h"

static uint64_t bytes_of(const weft_bundles *bundles, const weft_blocks *blocks, uint32_t member)
{
    return member == bundles->root ? 0 : weft_blocks_bytes(blocks, member, 1);
}

/* Fills the arrays from the members by node. */
static void group_up(weft_bundles *b, const weft_blocks *blocks, const uint32_t *node_firsts, const uint32_t *by_node, uint32_t *members,
                     uint32_t *firsts, uint64_t *starts)
{
    uint32_t n = 0, g = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < b->leaders; i++)
        for (uint32_t node = 0; node < b->nodes; node++, g++) {
            firsts[g] = n;
            starts[g] = bytes;
            for (uint32_t k = node_firsts[node] + i; k < node_firsts[node + 1]; k += b->leaders) {
                bytes += bytes_of(b, blocks, by_node[k]);
                members[n++] = by_node[k];
            }
        }
    firsts[g] = n;
    starts[g] = bytes;
}

static uint32_t *numbers(weft_sched *sched, uint64_t count)
{
    return weft_sched_temp(sched, count * sizeof(uint32_t), weft_sched_bytes());
}

weft_bundles weft_bundles_make(weft_sched *sched, const weft_blocks *blocks, uint32_t root)
{
    const weft_topology *topology = sched->team->topology;
    weft_bundles b = {.leaders = topology->leaders_per_node, .nodes = topology->count, .root = root};
    uint64_t groups = (uint64_t)b.leaders * b.nodes;
    uint32_t *node_firsts = numbers(sched, b.nodes + (uint64_t)1), *by_node = numbers(sched, sched->size);
    uint32_t *members = numbers(sched, sched->size), *firsts = numbers(sched, groups + 1);
    uint64_t *starts = weft_sched_temp(sched, (groups + 1) * sizeof *starts, weft_sched_bytes());

    if (sched->rc)
        return b;
    b.own = topology->index % b.leaders;
    weft_topology_members(topology, node_firsts, by_node);
    if (root != WEFT_BUNDLES_NO_ROOT) {
        uint32_t index = 0;
        b.root_node = weft_topology_of(topology, root);
        while (by_node[node_firsts[b.root_node] + index] != root)
            index++;
        b.root_leader = index % b.leaders;
    }
    group_up(&b, blocks, node_firsts, by_node, members, firsts, starts);
    b.members = members;
    b.firsts = firsts;
    b.starts = starts;
    return b;
}

uint32_t weft_bundles_leader(const weft_bundles *b, uint32_t leader, uint32_t node)
{
    if (b->root != WEFT_BUNDLES_NO_ROOT && leader == b->root_leader && node == b->root_node)
        return b->root;
    return b->members[b->firsts[leader * b->nodes + node]];
}

weft_bundles_room weft_bundles_room_of(weft_sched *sched, const weft_bundles *b, uint32_t first, uint32_t end)
{
    return (weft_bundles_room){weft_sched_temp(sched, b->starts[end] - b->starts[first], weft_sched_bytes()), b->starts[first]};
}

void weft_bundles_hand(weft_sched *sched, const weft_bundles *b, const weft_blocks *blocks, weft_bundles_room room, const weft_block *own,
                       bool is_gather)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t node = sched->team->topology->node, g = b->own * b->nodes + node, leader = weft_bundles_leader(b, b->own, node);
    uint64_t at = b->starts[g];

    if (sched->rank != leader && weft_block_bytes(own)) {
        if (is_gather)
            weft_sched_send(sched, leader, own->at, own->count, own->type);
        else
            weft_sched_recv(sched, leader, own->at, own->count, own->type);
    }
    for (uint32_t i = b->firsts[g]; i < b->firsts[g + 1] && sched->rank == leader; i++) {
        uint64_t bytes = bytes_of(b, blocks, b->members[i]);
        char *place = weft_bundles_at(room, at);
        if (b->members[i] == sched->rank && bytes && is_gather)
            weft_sched_copy(sched, place, bytes, byte, own->at, own->count, own->type);
        else if (b->members[i] == sched->rank && bytes)
            weft_sched_copy(sched, own->at, own->count, own->type, place, bytes, byte);
        else if (bytes && is_gather)
            weft_sched_recv(sched, b->members[i], place, bytes, byte);
        else if (bytes)
            weft_sched_send(sched, b->members[i], place, bytes, byte);
        at += bytes;
    }
    weft_sched_fence(sched);
}

static void move(weft_sched *sched, const weft_bundles *b, const weft_blocks *blocks, weft_bundles_room room, bool is_pack)
{
    uint64_t at = b->starts[0];

    for (uint32_t i = 0; i < sched->size && !sched->rc; i++) {
        uint32_t member = b->members[i];
        char *place = weft_bundles_at(room, at);
        at += bytes_of(b, blocks, member);
        if (member == sched->rank || member == b->root)
            continue;
        if (is_pack)
            weft_blocks_pack(sched, blocks, member, 1, place);
        else
            weft_blocks_unpack(sched, blocks, member, 1, place);
    }
}

void weft_bundles_unpack(weft_sched *sched, const weft_bundles *b, const weft_blocks *blocks, weft_bundles_room room)
{
    move(sched, b, blocks, room, false);
}

void weft_bundles_pack(weft_sched *sched, const weft_bundles *b, const weft_blocks *blocks, weft_bundles_room room)
{
    move(sched, b, blocks, room, true);
}

weft_coll weft_bundles_call(weft_sched *sched, weft_bundles_room room, const uint64_t *starts, uint32_t n, weft_layout *layout)
{
    const weft_type *byte = weft_sched_bytes();
    char *at = weft_bundles_at(room, starts[0]);
    uint64_t each = starts[1] - starts[0];
    weft_coll call = {.sendbuf = at, .recvbuf = at, .sendtype = byte, .recvtype = byte, .in_place = true};
    int64_t *counts = NULL;

    for (uint32_t i = 0; i < n; i++)
        call.is_v = call.is_v || starts[i + 1] - starts[i] != each;
    call.sendcount = call.recvcount = call.is_v ? starts[n] - starts[0] : each;
    if (call.is_v)
        counts = weft_sched_temp(sched, 2 * (uint64_t)n * sizeof *counts, byte);
    for (uint32_t i = 0; counts && i < n; i++) {
        counts[i] = (int64_t)(starts[i + 1] - starts[i]);
        counts[n + i] = (int64_t)(starts[i] - starts[0]);
    }
    if (counts) {
        *layout = (weft_layout){.counts = {counts, sizeof *counts}, .displs = {counts + n, sizeof *counts}};
        call.send_layout = call.recv_layout = layout;
    }
    return call;
}
