/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_split: sends long blocks in several eager messages, where the wire favours those (caps.eager; agreed on as team->eager_bytes). A
 * rendezvous waits until the other rank polls, which costs most on a shared CPU.
 * Not split: blocks within the node, and blocks over team->eager_total_max (half of a peer's credit).
 */
#include "collectives/algorithms.h"
#include "collectives/topology.h"

static uint64_t fragment_max(const weft_sched *sched, uint32_t other, uint64_t count, const weft_type *type)
{
    const weft_team *team = sched->team;
    uint64_t max;

    if (!team->eager_bytes || !type->size || count * (uint64_t)type->size > team->eager_total_max)
        return count;
    if (team->topology && weft_topology_is_on_node(team->topology, weft_sched_member(sched, other)))
        return count;
    max = team->eager_bytes / (uint64_t)type->size;
    return max ? max : count;
}

void weft_send_fragments(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type)
{
    uint64_t max = fragment_max(sched, to, count, type);

    for (uint64_t at = 0; at < count; at += max)
        weft_sched_send(sched, to, weft_sched_at(buf, type, at), count - at < max ? count - at : max, type);
}

void weft_recv_fragments(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type)
{
    uint64_t max = fragment_max(sched, from, count, type);

    for (uint64_t at = 0; at < count; at += max)
        weft_sched_recv(sched, from, weft_sched_at(buf, type, at), count - at < max ? count - at : max, type);
}
