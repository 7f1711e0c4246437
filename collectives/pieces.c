/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pieces: long blocks between two ranks in messages that go eagerly, where the wire is better at those (caps.eager says so, the members
 * have agreed on it: team->eager_bytes). A rendezvous waits for the other side to look, which costs most where it shares its CPU.
 * Blocks to our own node go whole, and such as need more credit than a peer lends for two of them.
 */
#include "collectives/algorithms.h"
#include "collectives/hosts.h"

static uint64_t piece_max(const weft_plan *plan, uint32_t other, uint64_t count, const weft_type *type)
{
    const weft_team *team = plan->team;
    uint64_t max;

    if (!team->eager_bytes || !type->size || count * (uint64_t)type->size > team->eager_total_max)
        return count;
    if (team->hosts && weft_hosts_is_mate(team->hosts, plan->map ? plan->map[other] : other))
        return count;
    max = team->eager_bytes / (uint64_t)type->size;
    return max ? max : count;
}

void weft_send_pieces(weft_plan *plan, uint32_t to, const void *buf, uint64_t count, const weft_type *type)
{
    uint64_t max = piece_max(plan, to, count, type);

    for (uint64_t at = 0; at < count; at += max)
        weft_plan_send(plan, to, weft_plan_at(buf, type, at), count - at < max ? count - at : max, type);
}

void weft_recv_pieces(weft_plan *plan, uint32_t from, void *buf, uint64_t count, const weft_type *type)
{
    uint64_t max = piece_max(plan, from, count, type);

    for (uint64_t at = 0; at < count; at += max)
        weft_plan_recv(plan, from, weft_plan_at(buf, type, at), count - at < max ? count - at : max, type);
}
