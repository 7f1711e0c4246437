/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: see hosts.h. Called by coll.c when a team is opened, and by hosts_coll.c.
 */
#include "collectives/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static uint32_t node_at(const uint32_t *node_of, const uint32_t *world, uint32_t member) { return node_of[world ? world[member] : member]; }

typedef struct tally { /* of one node */
    uint32_t members, order;
} tally;

/* Counts nodes and their members; `nodes` has a place for each. */
static void count_up(weft_hosts *to, uint32_t rank, uint32_t size, tally *nodes)
{
    uint32_t ours = node_at(to->node_of, to->world, rank);

    for (uint32_t i = 0; i < size; i++) {
        tally *node = &nodes[node_at(to->node_of, to->world, i)];
        to->count += !node->members;
        if (i == rank)
            to->index = node->members;
        node->members++;
    }
    to->mate_count = nodes[ours].members;
    to->parts = size;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t members = nodes[node_at(to->node_of, to->world, i)].members;
        to->parts = members < to->parts ? members : to->parts;
    }
}

/* `nodes` is zero again. */
static void fill(weft_hosts *hosts, uint32_t rank, uint32_t size, tally *nodes)
{
    uint32_t *leaders = hosts->members, *mates = leaders + hosts->count, *peers = mates + hosts->mate_count, node_count = 0;
    const tally *ours = &nodes[node_at(hosts->node_of, hosts->world, rank)];

    for (uint32_t i = 0; i < size; i++) {
        tally *node = &nodes[node_at(hosts->node_of, hosts->world, i)];
        if (!node->members) {
            node->order = node_count;
            leaders[node_count++] = i;
        }
        if (node == ours)
            mates[node->members] = i;
        if (node->members == hosts->index)
            peers[node->order] = i;
        node->members++;
    }
    hosts->mine = ours->order;
    hosts->leaders = leaders;
    hosts->mates = mates;
    hosts->peers = peers;
}

int weft_hosts_make(uint32_t rank, uint32_t size, const uint32_t *node_of, const uint32_t *world, weft_hosts **out)
{
    weft_hosts found = {.node_of = node_of, .world = world}, *hosts = NULL;
    uint32_t room = 0;
    tally *nodes;

    *out = NULL;
    for (uint32_t i = 0; i < size; i++)
        if (node_at(node_of, world, i) >= room)
            room = node_at(node_of, world, i) + 1;
    nodes = calloc(room, sizeof *nodes);
    if (!nodes)
        return weft_fail(WEFT_E_NOMEM, "no memory to note the nodes of a communicator of %u", size);
    count_up(&found, rank, size, nodes);
    if (found.count > 1 && found.count < size) {
        hosts = malloc(sizeof *hosts + (2 * (uint64_t)found.count + found.mate_count) * sizeof *hosts->members);
        if (!hosts) {
            free(nodes);
            return weft_fail(WEFT_E_NOMEM, "no memory to note the nodes of a communicator of %u", size);
        }
        *hosts = found;
        memset(nodes, 0, room * sizeof *nodes);
        fill(hosts, rank, size, nodes);
    }
    free(nodes);
    *out = hosts;
    return WEFT_OK;
}

uint32_t weft_hosts_of(const weft_hosts *hosts, uint32_t member)
{
    uint32_t node = node_at(hosts->node_of, hosts->world, member), i = 0;

    while (node_at(hosts->node_of, hosts->world, hosts->leaders[i]) != node)
        i++;
    return i;
}

bool weft_hosts_is_mate(const weft_hosts *hosts, uint32_t member)
{
    return node_at(hosts->node_of, hosts->world, member) == node_at(hosts->node_of, hosts->world, hosts->mates[0]);
}

uint32_t weft_hosts_index(const weft_hosts *hosts, uint32_t mate)
{
    uint32_t i = 0;

    while (hosts->mates[i] != mate)
        i++;
    return i;
}
