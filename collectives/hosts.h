/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: how a team's members stand on nodes, for those collectives in which one member of each node speaks across (hosts_coll.c).
 * Made with the team, the same on every member but for who "we" are; read only.
 */
#ifndef WEFT_COLLECTIVES_HOSTS_H
#define WEFT_COLLECTIVES_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/plan.h"

typedef struct weft_hosts {
    uint32_t count;          /* nodes on which members stand, at least 2 */
    uint32_t mine;           /* ours of them */
    uint32_t mate_count;     /* members on our node, ourselves included */
    uint32_t index;          /* ours among them */
    uint32_t parts;          /* members on the node with the fewest: into so many parts a vector is cut that each node cuts alike */
    const uint32_t *leaders; /* [count] the lowest member of each node, ascending: the order of nodes */
    const uint32_t *mates;   /* [mate_count] ascending */
    const uint32_t *peers;   /* [count] who has our index on each node, where index < parts; in the order of leaders */
    const uint32_t *node_of; /* of a world rank; the launcher's */
    const uint32_t *world;   /* a member's world rank; NULL: the same */
    uint32_t members[];      /* behind leaders, mates, and peers */
} weft_hosts;

/* Member i of `size` stands on node node_of[world[i]] (world NULL: node_of[i]); both must live as long as the result, which is one block for
 * free(). *hosts is NULL where there is nothing to gain: all on one node, or no two on one. WEFT_E_NOMEM. */
int weft_hosts_make(uint32_t rank, uint32_t size, const uint32_t *node_of, const uint32_t *world, weft_hosts **hosts);
/* The node (0 .. count - 1) of a member. */
uint32_t weft_hosts_of(const weft_hosts *hosts, uint32_t member);
/* Does a member stand on our node? */
bool weft_hosts_is_mate(const weft_hosts *hosts, uint32_t member);
/* The index of a member of our node among its mates. */
uint32_t weft_hosts_index(const weft_hosts *hosts, uint32_t mate);

#endif
