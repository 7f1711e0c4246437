/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show_map: see show_map.h.
 */
#include "tools/mpirun/show_map.h"

#include <stdio.h>
#include <string.h>

#include "tools/mpirun/agent.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/tree.h"

#define RUN_BYTES 24 /* ",65535-65536" and the ellipsis */

/* Writes "ranks 0-3,8"; marks ranges left out for lack of space. */
static void ranks_text(const map *map, uint32_t node, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "rank%s ", map->nodes[node].count == 1 ? "" : "s");
    const char *comma = "";

    for (uint32_t r = 0, end; r < map->ranks; r = end) {
        for (end = r + 1; end < map->ranks && map->node_of[end] == map->node_of[r];)
            end++;
        if (map->node_of[r] != node)
            continue;
        if (used + RUN_BYTES > capacity) {
            snprintf(text + used, capacity - used, "%s...", comma);
            return;
        }
        used += (size_t)snprintf(text + used, capacity - used, end - r > 1 ? "%s%u-%u" : "%s%u", comma, r, end - 1);
        comma = ",";
    }
}

static void node_print(const options *opts, const map *map, const tree *tree, uint32_t node, const char *host)
{
    const char *agent = opts->is_by_srun ? "srun" : opts->agent && *opts->agent ? opts->agent : AGENT_DEFAULT;
    char ranks[160], from[300] = "";

    ranks_text(map, node, ranks, sizeof(ranks));
    if (map->nodes[node].is_here) {
        report(0, "host %s (this machine): %s", host, ranks);
        return;
    }
    uint32_t parent = tree_parent(tree, node);
    if (parent != tree->head)
        snprintf(from, sizeof(from), " from host %s", map->nodes[parent].name);
    report(0, "host %s (by %s%s): %s", map->nodes[node].name, agent, from, ranks);
}

void show_map_print(const options *opts, const map *map, const char *host)
{
    uint32_t head = 0;

    while (head < map->node_count && !map->nodes[head].is_here)
        head++;
    tree tree = tree_of_head(map, head, opts->fanout);
    report(0, "%u rank%s on %u host%s%s%s", map->ranks, map->ranks == 1 ? "" : "s", map->node_count, map->node_count == 1 ? "" : "s",
             opts->allocation ? " of " : "", opts->allocation ? opts->allocation : "");
    for (uint32_t a = 0; a < opts->app_count; a++)
        report(0, "program %s: %u rank%s from rank %u on", opts->apps[a].argv[0], opts->apps[a].count, opts->apps[a].count == 1 ? "" : "s",
               opts->apps[a].first);
    for (uint32_t i = 0; i < map->node_count; i++)
        node_print(opts, map, &tree, i, host);
}
