/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree: which daemon starts which. Everybody reckons it from the job's map and the fan-out, so nobody has to be told. The daemons of all
 * hosts but the head's stand in a row in the order of their nodes; who starts others splits the stretch of the row that is its own into
 * as many parts, as equal as they can be, and starts the first of each, whose stretch is the rest of the part.
 */
#ifndef WEFT_MPIRUN_TREE_H
#define WEFT_MPIRUN_TREE_H

#include <stdint.h>

#include "tools/mpirun/map.h"

#define TREE_FANOUT 64 /* unless WEFT_LAUNCH_FANOUT says otherwise */

typedef struct tree {
    uint32_t fanout;
    uint32_t head;        /* the head's node; map->node_count: it has none */
    uint32_t first, count; /* places in the row that stand below us */
} tree;

/* Where a node stands in the row. What stands below it are the next places. */
uint32_t tree_place(const tree *self, uint32_t node);
/* As the head sees it; fanout 0: the default. */
tree tree_of_head(const map *map, uint32_t head, uint32_t fanout);
/* As a node does that stands below. Its count is 0 where it starts none. */
tree tree_of_node(const tree *above, uint32_t node);
/* How many we start ourselves, and which. */
uint32_t tree_children(const tree *self);
uint32_t tree_child(const tree *self, uint32_t index);
/* Which of our children (its index) leads to a node; UINT32_MAX: it does not stand below us. */
uint32_t tree_way(const tree *self, uint32_t node);
/* The node that starts it; the head's number where that is the head. */
uint32_t tree_parent(const tree *of_hdr, uint32_t node);
#endif
