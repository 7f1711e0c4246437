/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topology: the nodes of a team's members, for hierarchical collectives (hier.c). Made by coll.c with the team, and owned by it.
 * Read only. Equal on every member but for node, node_rank_count, index, node_ranks and same_index.
 */
#ifndef WEFT_COLLECTIVES_TOPOLOGY_H
#define WEFT_COLLECTIVES_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/team.h"
#include "core/group.h"

typedef struct weft_topology {
    uint32_t count;          /* nodes with members; at least 2 */
    uint32_t node;           /* this member's node, 0 .. count - 1 */
    uint32_t node_rank_count; /* members on this node, this one included */
    uint32_t index;          /* this member's index in node_ranks */
    uint32_t leaders_per_node; /* members on the smallest node: blocks of a vector in multileader allreduce; equal on all nodes */
    const uint32_t *leaders; /* [count] lowest member of each node, ascending; defines the order of nodes */
    const uint32_t *node_ranks; /* [node_rank_count] members on this node, ascending */
    const uint32_t *same_index;   /* [count] the member with this index on each node, as leaders; valid if index < leaders_per_node */
    const uint32_t *order_of; /* by node in the job: its index here; valid for nodes with members */
    const uint32_t *node_of; /* node of a rank in the job; owned by the launcher's boot */
    const weft_group *group; /* the members; not owned */
    uint32_t members[];      /* storage of leaders, node_ranks, same_index and order_of */
} weft_topology;

/* A member is on node_of[its rank in the job]. Group and array must outlive *topology, which is freed by free(). *topology is NULL if all
 * members are on one node, or each on its own. Returns 0 or WEFT_E_NOMEM. */
int weft_topology_make(uint32_t rank, const weft_group *group, const uint32_t *node_of, weft_topology **topology);
/* The node (0 .. count - 1) of a member. */
uint32_t weft_topology_of(const weft_topology *topology, uint32_t member);
/* Whether a member is on this node. */
bool weft_topology_is_on_node(const weft_topology *topology, uint32_t member);
/* The members of each node: node i's are members[firsts[i]] .. members[firsts[i + 1] - 1], ascending. firsts has count + 1 values, members
 * one for each member. */
void weft_topology_members(const weft_topology *topology, uint32_t *firsts, uint32_t *members);
/* Index in node_ranks of a member on this node. */
uint32_t weft_topology_index(const weft_topology *topology, uint32_t member);

#endif
