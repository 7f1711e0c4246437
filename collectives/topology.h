/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topology: how a team's members stand on nodes, for those collectives in which one member of each node speaks across (hier.c).
 * Made with the team, the same on every member but for who "we" are; read only.
 */
#ifndef WEFT_COLLECTIVES_TOPOLOGY_H
#define WEFT_COLLECTIVES_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/sched.h"

typedef struct weft_topology {
    uint32_t count;          /* nodes on which members stand, at least 2 */
    uint32_t mine;           /* ours of them */
    uint32_t node_rank_count;     /* members on our node, ourselves included */
    uint32_t index;          /* ours among them */
    uint32_t parts;          /* members on the node with the fewest: into so many parts a vector is cut that each node cuts alike */
    const uint32_t *leaders; /* [count] the lowest member of each node, ascending: the order of nodes */
    const uint32_t *node_ranks;   /* [mate_count] ascending */
    const uint32_t *peers;   /* [count] who has our index on each node, where index < parts; in the order of leaders */
    const uint32_t *node_of; /* of a world rank; the launcher's */
    const uint32_t *world;   /* a member's world rank; NULL: the same */
    uint32_t members[];      /* behind leaders, mates, and peers */
} weft_topology;

/* Member i of `size` stands on node node_of[world[i]] (world NULL: node_of[i]); both must live as long as the result, which is one block for
 * free(). *hosts is NULL where there is nothing to gain: all on one node, or no two on one. WEFT_E_NOMEM. */
int weft_topology_make(uint32_t rank, uint32_t size, const uint32_t *node_of, const uint32_t *world, weft_topology **topology);
/* The node (0 .. count - 1) of a member. */
uint32_t weft_topology_of(const weft_topology *topology, uint32_t member);
/* Does a member stand on our node? */
bool weft_topology_is_on_node(const weft_topology *topology, uint32_t member);
/* The index of a member of our node among its mates. */
uint32_t weft_topology_index(const weft_topology *topology, uint32_t mate);

#endif
