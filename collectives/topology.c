/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topology: see topology.h. Called by coll.c when a team is opened, and by hier.c and eager_split.c.
 */
#include "collectives/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static uint32_t node_at(const weft_topology *topology, uint32_t member)
{
    return topology->node_of[weft_group_process(topology->group, member).rank];
}

typedef struct tally { /* of one node */
    uint32_t members, order; /* order: its index in leaders */
} tally;

/* Counts nodes and their members. `nodes` is zero, indexed by node_of. */
static void count_up(weft_topology *to, uint32_t rank, uint32_t size, tally *nodes)
{
    uint32_t own = node_at(to, rank);

    for (uint32_t i = 0; i < size; i++) {
        tally *node = &nodes[node_at(to, i)];
        to->count += !node->members;
        if (i == rank)
            to->index = node->members;
        node->members++;
    }
    to->node_rank_count = nodes[own].members;
    to->leaders_per_node = size;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t members = nodes[node_at(to, i)].members;
        to->leaders_per_node = members < to->leaders_per_node ? members : to->leaders_per_node;
    }
}

/* Fills the arrays. `nodes` is zero again, as it counts the members seen so far. */
static void fill(weft_topology *topology, uint32_t rank, uint32_t size, tally *nodes, uint32_t capacity)
{
    uint32_t *leaders = topology->members, *node_ranks = leaders + topology->count,
             *same_index = node_ranks + topology->node_rank_count, *order_of = same_index + topology->count, node_count = 0;
    const tally *own = &nodes[node_at(topology, rank)];

    for (uint32_t i = 0; i < size; i++) {
        tally *node = &nodes[node_at(topology, i)];
        if (!node->members) {
            node->order = node_count;
            leaders[node_count++] = i;
        }
        if (node == own)
            node_ranks[node->members] = i;
        if (node->members == topology->index)
            same_index[node->order] = i;
        node->members++;
    }
    for (uint32_t i = 0; i < capacity; i++)
        order_of[i] = nodes[i].order;
    topology->node = own->order;
    topology->leaders = leaders;
    topology->node_ranks = node_ranks;
    topology->same_index = same_index;
    topology->order_of = order_of;
}

int weft_topology_make(uint32_t rank, const weft_group *group, const uint32_t *node_of, weft_topology **out)
{
    weft_topology found = {.node_of = node_of, .group = group}, *topology = NULL;
    uint32_t capacity = 0, size = group->size;
    tally *nodes;

    *out = NULL;
    for (uint32_t i = 0; i < size; i++)
        if (node_at(&found, i) >= capacity)
            capacity = node_at(&found, i) + 1;
    nodes = calloc(capacity, sizeof *nodes);
    if (!nodes)
        return weft_fail(WEFT_E_NOMEM, "no memory for the topology of a communicator of %u members", size);
    count_up(&found, rank, size, nodes);
    if (found.count > 1 && found.count < size) {
        topology = malloc(sizeof *topology + (2 * (uint64_t)found.count + found.node_rank_count + capacity) * sizeof *topology->members);
        if (!topology) {
            free(nodes);
            return weft_fail(WEFT_E_NOMEM, "no memory for the topology of a communicator of %u members", size);
        }
        *topology = found;
        memset(nodes, 0, capacity * sizeof *nodes);
        fill(topology, rank, size, nodes, capacity);
    }
    free(nodes);
    *out = topology;
    return WEFT_OK;
}

uint32_t weft_topology_of(const weft_topology *topology, uint32_t member)
{
    return topology->order_of[node_at(topology, member)];
}

void weft_topology_members(const weft_topology *topology, uint32_t *firsts, uint32_t *members)
{
    uint32_t size = topology->group->size;

    for (uint32_t i = 0; i <= topology->count; i++)
        firsts[i] = 0;
    for (uint32_t i = 0; i < size; i++)
        firsts[weft_topology_of(topology, i) + 1]++;
    for (uint32_t i = 0; i < topology->count; i++)
        firsts[i + 1] += firsts[i];
    for (uint32_t i = 0; i < size; i++) /* each first moves to its end */
        members[firsts[weft_topology_of(topology, i)]++] = i;
    for (uint32_t i = topology->count; i > 0; i--)
        firsts[i] = firsts[i - 1];
    firsts[0] = 0;
}

bool weft_topology_is_on_node(const weft_topology *topology, uint32_t member)
{
    return node_at(topology, member) == node_at(topology, topology->node_ranks[0]);
}

uint32_t weft_topology_index(const weft_topology *topology, uint32_t member)
{
    uint32_t i = 0;

    while (topology->node_ranks[i] != member)
        i++;
    return i;
}
