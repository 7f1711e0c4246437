/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_setup: weft_shmcoll_agree. In a team's first blocking call the members of each node agree, by messages, on a node area, and all
 * members on the wire's parameters (params, latency_bytes, eager_bytes, eager_total_max).
 * Invariant: the agreement advances team->sequence by SCHEDS_MAX on every member, whatever its node decides.
 */
#include <stdlib.h>

#include "base/knob.h"
#include "base/status.h"
#include "collectives/algorithms.h"
#include "collectives/choice.h"
#include "collectives/shmcoll.h"
#include "collectives/topology.h"
#include "core/worker.h"
#include "core/world.h"

enum { MEMBER_CAN = 1, MEMBER_OVERSUBSCRIBED = 2, MEMBER_FENCE = 4, MEMBER_CSUM = 8 };
#define NO_AREA UINT32_MAX
#define LARGE_AREAS 64u /* of a node: later ones have shorter slots */
#define SCHEDS_MAX 5u /* schedules of one agreement, at most */

typedef struct wire { /* see weft_team */
    weft_coll_params params;
    uint32_t latency_bytes, eager_bytes, eager_total_max;
} wire;

typedef struct agreement {
    wire wire;
    uint32_t area_index; /* index in the segment; NO_AREA: none */
    uint8_t flags;  /* SAYS_ flags; in map_area: 1 if all members have mapped the area */
} agreement;

/* Bytes of the lines and slots of area `index`, at most: so that many communicators do not reserve as much memory as a few. */
static uint64_t area_limit(uint32_t index, uint32_t ranks)
{
    uint64_t few = (uint64_t)ranks * 4096;

    if (index < LARGE_AREAS)
        return WEFT_SHMCOLL_BYTES;
    return few > WEFT_SHMCOLL_BYTES / 8 ? few : WEFT_SHMCOLL_BYTES / 8;
}

static unsigned flags_of(uint8_t flags)
{
    return (flags & MEMBER_OVERSUBSCRIBED ? WEFT_SHMCOLL_OVERSUBSCRIBED : 0) | (flags & MEMBER_FENCE ? WEFT_SHMCOLL_FENCE : 0) |
           (flags & MEMBER_CSUM ? WEFT_SHMCOLL_CSUM : 0);
}

/* The members on this node, this one included: all of the team, or topology->node_ranks. */
typedef struct node_group {
    const uint32_t *members; /* NULL: all, in order */
    uint32_t count, rank;    /* rank: this member's, in the group */
} node_group;

static node_group node_group_of(const weft_team *team)
{
    const weft_topology *topology = team->topology;

    return topology ? (node_group){topology->node_ranks, topology->node_rank_count, topology->index}
                    : (node_group){NULL, team->size, team->rank};
}

static uint32_t job_rank(const weft_team *team, const node_group *group, uint32_t i)
{
    return weft_group_process(team->chan->group, group->members ? group->members[i] : i).rank;
}

/* Every member is on a node of its own. */
static bool is_one_per_node(const weft_team *team) { return !team->topology && team->nodes > 1; }

static uint8_t own_flags(const weft_team *team, uint32_t node_ranks)
{
    const weft_world *world = team->chan->worker->world;
    uint8_t flags = MEMBER_CAN;

    if (!world->boot->has_segment || node_ranks > WEFT_SHMCOLL_RANKS)
        return 0;
    if (world->is_oversubscribed)
        flags |= MEMBER_OVERSUBSCRIBED;
    if (!atomic_load_explicit(&world->page->membarrier_ok, memory_order_relaxed))
        flags |= MEMBER_FENCE;
    if (weft_knob.checksum)
        flags |= MEMBER_CSUM;
    return flags;
}

/* A stage of the agreement, as a schedule of the team: among the node-local members or the leaders; without topology, among all. */
static void run_among(weft_sched *sched, bool node_ranks, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;

    if (!topology)
        algorithm(sched, args);
    else if (node_ranks)
        weft_sched_sub(sched, topology->node_ranks, topology->node_rank_count, algorithm, args);
    else if (!topology->index)
        weft_sched_sub(sched, topology->leaders, topology->count, algorithm, args);
}

static void gather_in_node(weft_sched *sched, const weft_coll *args) { run_among(sched, true, weft_gather_binomial, args); }
static void bcast_in_node(weft_sched *sched, const weft_coll *args) { run_among(sched, true, weft_bcast_binomial, args); }
static void bcast_leaders(weft_sched *sched, const weft_coll *args) { run_among(sched, false, weft_bcast_binomial, args); }

static int gather_flags(weft_team *team, weft_shmcoll_performer *perform, uint8_t own, uint8_t *all)
{
    weft_coll args = {.sendbuf = &own, .recvbuf = all, .sendcount = 1, .recvcount = 1, .sendtype = weft_sched_bytes(),
                      .recvtype = weft_sched_bytes()};
    return perform(team, gather_in_node, &args);
}

static int bcast(weft_team *team, weft_shmcoll_performer *perform, weft_sched_algorithm *stage, void *buf, uint64_t bytes)
{
    weft_coll args = {.recvbuf = buf, .recvcount = bytes, .recvtype = weft_sched_bytes()};
    return perform(team, stage, &args);
}

/* Parameters of the network, from the caps of the ep to a member on another node. */
static wire wire_params(const weft_team *team)
{
    weft_peer *peer;
    wire found = {.params = team->params, .latency_bytes = team->latency_bytes};
    const weft_caps *caps;

    if (weft_chan_resolve_peer(team->chan, team->topology ? team->topology->leaders[1] : 1, &peer))
        return found;
    caps = &peer->ep->iface->caps;
    found.eager_bytes = caps->eager ? peer->eager_max : 0;
    found.eager_total_max = (uint32_t)weft_knob.credit_kib * 512; /* half the credit: reduced blocks leave while the first are in flight */
    found.params.net = weft_coll_link_of(caps->latency_ns, caps->mbyte_per_s, &team->params.net);
    found.latency_bytes = weft_coll_link_bytes(&found.params.net);
    return found;
}

static void root_decides(weft_team *team, uint32_t node_ranks, const uint8_t *all, agreement *agreement)
{
    const weft_segment *segment = &team->chan->worker->world->boot->segment;
    uint8_t can = MEMBER_CAN, also = 0;

    for (uint32_t i = 0; i < node_ranks; i++) {
        can &= all[i];
        also |= all[i];
    }
    if (!can || weft_segment_alloc_area(segment, &agreement->area_index))
        return;
    if (weft_segment_claim(segment, segment->hdr->areas + agreement->area_index * segment->hdr->area_bytes,
                           weft_shmcoll_used_bytes(area_limit(agreement->area_index, node_ranks), node_ranks, flags_of(also)))) {
        weft_segment_free_area(segment, agreement->area_index);
        agreement->area_index = NO_AREA;
        return;
    }
    agreement->flags = also;
}

static weft_shmcoll *open_area(weft_team *team, const node_group *group, const agreement *agreement)
{
    weft_worker *worker = team->chan->worker;
    const weft_boot *boot = worker->world->boot;
    const weft_segment *segment = &boot->segment;
    unsigned flags = flags_of(agreement->flags);
    uint64_t bytes = weft_shmcoll_used_bytes(area_limit(agreement->area_index, group->count), group->count, flags);
    uint64_t all = segment->hdr->area_bytes;
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS];
    weft_shmcoll *area;
    void *base;

    if (weft_segment_view(segment, segment->hdr->areas + agreement->area_index * segment->hdr->area_bytes, all, &base))
        return NULL;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = job_rank(team, group, i);
        pages[i] = weft_segment_rank(segment, boot->local_of ? boot->local_of[rank] : rank);
    }
    area = weft_shmcoll_attach(worker, base, bytes, group->rank, group->count, pages, flags);
    if (!area) {
        weft_segment_drop(base, all);
        return NULL;
    }
    area->bytes = all;
    area->lanes = (char *)base + bytes;
    area->lanes_bytes = all - bytes;
    area->node_ranks = group->members;
    area->area_index = agreement->area_index;
    area->team = team;
    return area;
}

/* Maps the agreed area. If mapping fails on one member, no member uses the area. */
static int map_area(weft_team *team, weft_shmcoll_performer *perform, const node_group *group, agreement *agreement, uint8_t *all)
{
    const weft_segment *segment = &team->chan->worker->world->boot->segment;
    weft_shmcoll *area = open_area(team, group, agreement);
    uint8_t can = 1;
    int rc = gather_flags(team, perform, area != NULL, all);

    for (uint32_t i = 0; all && !rc && i < group->count; i++)
        can &= all[i];
    agreement->flags = can;
    if (!rc)
        rc = bcast(team, perform, bcast_in_node, agreement, sizeof *agreement);
    if (!rc && agreement->flags) {
        team->area = area;
        return WEFT_OK;
    }
    if (!rc && !group->rank)
        weft_segment_free_area(segment, agreement->area_index); /* no member has written to it */
    if (area) {
        weft_segment_drop(area->hdr, area->bytes);
        free(area);
    }
    return rc;
}

static int agree_in_node(weft_team *team, weft_shmcoll_performer *perform, agreement *agreement)
{
    node_group group = node_group_of(team);
    uint8_t *all = group.rank ? NULL : calloc(1, group.count);
    int rc = group.rank || all ? WEFT_OK : weft_fail(WEFT_E_NOMEM, "no memory for a communicator of %u", team->size);

    if (group.count > 1) {
        if (!rc)
            rc = gather_flags(team, perform, own_flags(team, group.count), all);
        if (!rc && !group.rank)
            root_decides(team, group.count, all, agreement);
        if (!rc)
            rc = bcast(team, perform, bcast_in_node, agreement, sizeof *agreement);
        if (!rc && agreement->area_index != NO_AREA)
            rc = map_area(team, perform, &group, agreement, all);
    }
    free(all);
    return rc;
}

int weft_shmcoll_agree(weft_team *team, weft_shmcoll_performer *perform)
{
    agreement agreement = {.area_index = NO_AREA, .wire = {.params = team->params, .latency_bytes = team->latency_bytes}};
    uint32_t scheds = team->sequence;
    int rc = WEFT_OK;

    if (!team->rank && team->nodes > 1)
        agreement.wire = wire_params(team);
    if (team->nodes > 1)
        rc = bcast(team, perform, bcast_leaders, &agreement.wire, sizeof agreement.wire);
    if (!rc && !is_one_per_node(team))
        rc = agree_in_node(team, perform, &agreement);
    team->params = agreement.wire.params;
    team->latency_bytes = agreement.wire.latency_bytes;
    weft_coll_choices_free(team); /* those of nonblocking calls before */
    team->eager_bytes = agreement.wire.eager_bytes;
    team->eager_total_max = agreement.wire.eager_total_max;
    team->sequence = scheds + SCHEDS_MAX; /* nodes may use fewer schedules, but tags must be equal on all members */
    return rc;
}
