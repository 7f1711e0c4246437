/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_setup: see shmcoll_setup.h.
 */
#include "collectives/shmcoll_setup.h"

#include <stdlib.h>

#include "base/kernel_copy.h"
#include "base/knob.h"
#include "collectives/algorithms.h"
#include "collectives/choice.h"
#include "collectives/shmcoll.h"
#include "collectives/stop.h"
#include "collectives/topology.h"
#include "core/worker.h"
#include "core/world.h"

enum { MEMBER_CAN = 1, MEMBER_OVERSUBSCRIBED = 2, MEMBER_FENCE = 4, MEMBER_CSUM = 8 };
#define NO_AREA UINT32_MAX
#define LARGE_AREAS 64u /* of a node: later ones have shorter slots */

typedef struct wire { /* see weft_team */
    weft_coll_params params;
    uint32_t latency_bytes, eager_bytes, eager_total_max;
} wire;

/* What the first member on a node tells the others. */
typedef struct decision {
    wire wire;           /* told to it by the team's first member */
    uint32_t area_index; /* index in the segment; NO_AREA: none */
    uint8_t flags;       /* MEMBER_ flags of all */
} decision;

struct weft_shmcoll_setup {
    weft_team *team;
    decision decision;
    weft_shmcoll *mapped; /* the area, not agreed upon yet; NULL: none */
    uint8_t has_all_mapped; /* 1: each member has mapped the area */
    uint8_t own;            /* what this member tells the first one on its node */
    uint8_t all[];        /* what the members tell; [ranks on this node] at the first one */
};

/* Bytes of the lines and slots of area `index`, at most: so that many communicators do not reserve as much memory as a few. */
static uint64_t area_limit(uint32_t index, uint32_t ranks)
{
    uint64_t few = (uint64_t)ranks * 8192;

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

/* A stage of the agreement: among the node-local members or the leaders; without topology, among all. */
static void run_among(weft_sched *sched, bool node_ranks, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    const weft_topology *topology = sched->team->topology;

    if (!topology)
        algorithm(sched, args);
    else if (node_ranks)
        weft_sched_sub(sched, topology->node_ranks, topology->node_rank_count, algorithm, args);
    else if (!topology->index)
        weft_sched_sub(sched, topology->leaders, topology->count, algorithm, args);
    weft_sched_fence(sched);
}

static void gather_flags(weft_sched *sched, weft_shmcoll_setup *self)
{
    weft_coll args = {.sendbuf = &self->own, .recvbuf = self->all, .sendcount = 1, .recvcount = 1, .sendtype = weft_sched_bytes(),
                      .recvtype = weft_sched_bytes()};
    run_among(sched, true, weft_gather_binomial, &args);
}

static void bcast(weft_sched *sched, bool node_ranks, void *buf, uint64_t bytes)
{
    weft_coll args = {.recvbuf = buf, .recvcount = bytes, .recvtype = weft_sched_bytes()};
    run_among(sched, node_ranks, weft_bcast_binomial, &args);
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

/* Of the members of one node. This one is the first. */
static bool is_copied_once(const weft_team *team)
{
    weft_peer *peer;

    if (team->nodes > 1 || weft_chan_resolve_peer(team->chan, 1, &peer))
        return false;
    return peer->ep->iface->caps.prompt && peer->ep->iface->ops->can_rma(peer->ep->iface, peer->ep) &&
           weft_kernel_copy_ns() <= WEFT_KERNEL_COPY_MAX_NS;
}

static void decide(weft_sched *sched, void *arg)
{
    weft_shmcoll_setup *self = arg;
    const weft_segment *segment = &self->team->chan->worker->world->boot->segment;
    uint32_t node_ranks = node_group_of(self->team).count, index;
    uint8_t can = MEMBER_CAN, also = 0;
    bool shares_cpus;

    weft_team_trust(self->team, sched->damage);
    for (uint32_t i = 0; i < node_ranks; i++) {
        can &= self->all[i];
        also |= self->all[i];
    }
    shares_cpus = also & MEMBER_OVERSUBSCRIBED || self->team->chan->worker->world->is_oversubscribed;
    self->decision.wire.params.shares_cpus = self->team->nodes == 1 && shares_cpus;
    if (!can || weft_segment_alloc_area(segment, &index))
        return;
    if (weft_segment_claim(segment, segment->hdr->areas + index * segment->hdr->area_bytes,
                           weft_shmcoll_used_bytes(area_limit(index, node_ranks), node_ranks, flags_of(also)))) {
        weft_segment_free_area(segment, index);
        return;
    }
    self->decision.area_index = index;
    self->decision.flags = also;
    self->decision.wire.params.is_copied_once = is_copied_once(self->team);
}

static weft_shmcoll *open_area(weft_team *team, const node_group *group, const decision *agreed)
{
    weft_worker *worker = team->chan->worker;
    const weft_boot *boot = worker->world->boot;
    const weft_segment *segment = &boot->segment;
    unsigned flags = flags_of(agreed->flags);
    uint64_t bytes = weft_shmcoll_used_bytes(area_limit(agreed->area_index, group->count), group->count, flags);
    uint64_t all = segment->hdr->area_bytes;
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS];
    weft_shmcoll *area;
    void *base;

    if (weft_segment_view(segment, segment->hdr->areas + agreed->area_index * segment->hdr->area_bytes, all, &base))
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
    area->area_index = agreed->area_index;
    area->team = team;
    return area;
}

static void map_area(weft_sched *sched, void *arg)
{
    weft_shmcoll_setup *self = arg;
    const weft_boot *boot = self->team->chan->worker->world->boot;
    uint64_t areas = boot->has_segment ? boot->segment.hdr->area_count : 0;
    node_group group = node_group_of(self->team);

    weft_team_trust(self->team, sched->damage); /* at once: members that it forwarded the data to do not know */
    if (self->decision.area_index < areas && self->own & MEMBER_CAN) /* else NO_AREA, or damaged: then no member uses it */
        self->mapped = open_area(self->team, &group, &self->decision);
    self->own = self->mapped != NULL;
}

static void conclude(weft_sched *sched, void *arg)
{
    weft_shmcoll_setup *self = arg;

    (void)sched;
    self->has_all_mapped = 1;
    for (uint32_t i = 0; i < node_group_of(self->team).count; i++)
        self->has_all_mapped &= self->all[i];
}

/* The first member allocates an area, which all map. If mapping fails on one member, no member uses the area. */
static void agree_in_node(weft_sched *sched, weft_shmcoll_setup *self)
{
    bool is_first = !node_group_of(self->team).rank;

    gather_flags(sched, self);
    if (is_first)
        weft_sched_call(sched, decide, self);
    bcast(sched, true, &self->decision, sizeof self->decision);
    weft_sched_call(sched, map_area, self);
    gather_flags(sched, self);
    if (is_first)
        weft_sched_call(sched, conclude, self);
    bcast(sched, true, &self->has_all_mapped, sizeof self->has_all_mapped);
}

void weft_shmcoll_setup_steps(weft_sched *sched, const weft_coll *args)
{
    weft_shmcoll_setup *self = args->recvbuf;
    const weft_team *team = self->team;
    node_group group = node_group_of(team);

    if (team->nodes > 1)
        bcast(sched, false, &self->decision.wire, sizeof self->decision.wire);
    if (!is_one_per_node(team) && group.count > 1)
        agree_in_node(sched, self);
}

weft_shmcoll_setup *weft_shmcoll_setup_new(weft_team *team)
{
    node_group group = node_group_of(team);
    weft_shmcoll_setup *self = calloc(1, sizeof *self + (group.rank ? 0 : group.count));

    if (!self)
        return NULL;
    self->team = team;
    self->decision.wire = !team->rank && team->nodes > 1 ? wire_params(team)
                                                         : (wire){.params = team->params, .latency_bytes = team->latency_bytes};
    self->decision.area_index = NO_AREA;
    self->own = own_flags(team, group.count);
    return self;
}

static void drop_area(weft_shmcoll_setup *self, bool is_unused)
{
    const weft_segment *segment = &self->team->chan->worker->world->boot->segment;

    if (is_unused && self->decision.area_index != NO_AREA && !node_group_of(self->team).rank)
        weft_segment_free_area(segment, self->decision.area_index); /* no member has written to it */
    if (self->mapped) {
        weft_segment_drop(self->mapped->hdr, self->mapped->bytes);
        free(self->mapped);
    }
}

void weft_shmcoll_setup_end(weft_shmcoll_setup *self, int rc)
{
    weft_team *team = self->team;

    if (!rc && self->has_all_mapped)
        team->area = self->mapped;
    else
        drop_area(self, !rc);
    if (!rc) {
        team->params = self->decision.wire.params;
        team->latency_bytes = self->decision.wire.latency_bytes;
        team->eager_bytes = self->decision.wire.eager_bytes;
        team->eager_total_max = self->decision.wire.eager_total_max;
        weft_coll_choices_free(team); /* those of the parameters before */
    }
    free(self);
}
