/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: see hosts.h. Called by coll.c when a team is opened, and by hosts_coll.c.
 */
#include "collectives/hosts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static uint32_t node_at(const uint32_t *node_of, const uint32_t *world, uint32_t member) { return node_of[world ? world[member] : member]; }

/* Counts nodes, and the members of ours; `seen` has a place for each node. */
static void count_up(uint32_t rank, uint32_t size, const uint32_t *node_of, const uint32_t *world, bool *seen, uint32_t *nodes, uint32_t *mates)
{
    uint32_t ours = node_at(node_of, world, rank);

    *nodes = *mates = 0;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t node = node_at(node_of, world, i);
        *nodes += !seen[node];
        seen[node] = true;
        *mates += node == ours;
    }
}

static void fill(weft_hosts *hosts, uint32_t rank, uint32_t size, bool *seen)
{
    uint32_t *leaders = hosts->members, *mates = hosts->members + hosts->count, node_count = 0, mate_count = 0;
    uint32_t ours = node_at(hosts->node_of, hosts->world, rank);

    for (uint32_t i = 0; i < size; i++) {
        uint32_t node = node_at(hosts->node_of, hosts->world, i);
        if (!seen[node]) {
            if (node == ours)
                hosts->mine = node_count;
            leaders[node_count++] = i;
            seen[node] = true;
        }
        if (node == ours) {
            if (i == rank)
                hosts->index = mate_count;
            mates[mate_count++] = i;
        }
    }
    hosts->leaders = leaders;
    hosts->mates = mates;
}

int weft_hosts_make(uint32_t rank, uint32_t size, const uint32_t *node_of, const uint32_t *world, weft_hosts **out)
{
    uint32_t room = 0, nodes, mates;
    weft_hosts *hosts = NULL;
    bool *seen;

    *out = NULL;
    for (uint32_t i = 0; i < size; i++)
        if (node_at(node_of, world, i) >= room)
            room = node_at(node_of, world, i) + 1;
    seen = calloc(room, sizeof *seen);
    if (!seen)
        return weft_fail(WEFT_E_NOMEM, "no memory to note the nodes of a communicator of %u", size);
    count_up(rank, size, node_of, world, seen, &nodes, &mates);
    if (nodes > 1 && nodes < size) {
        hosts = malloc(sizeof *hosts + ((uint64_t)nodes + mates) * sizeof *hosts->members);
        if (!hosts) {
            free(seen);
            return weft_fail(WEFT_E_NOMEM, "no memory to note the nodes of a communicator of %u", size);
        }
        *hosts = (weft_hosts){.count = nodes, .mate_count = mates, .node_of = node_of, .world = world};
        memset(seen, 0, room * sizeof *seen);
        fill(hosts, rank, size, seen);
    }
    free(seen);
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

uint32_t weft_hosts_index(const weft_hosts *hosts, uint32_t mate)
{
    uint32_t i = 0;

    while (hosts->mates[i] != mate)
        i++;
    return i;
}
