/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree: the launch tree, which daemon starts which. Every process computes it from the map and the fan-out.
 * The daemons of all hosts but the head's form a row in the order of their nodes. A process that starts others splits its range of the row
 * into at most `fanout` parts of nearly equal length and starts the first daemon of each part, whose range is the rest of the part. Pure
 * functions.
 */
#ifndef WEFT_MPIRUN_TREE_H
#define WEFT_MPIRUN_TREE_H

#include <stdint.h>

#include "tools/mpirun/map.h"

typedef struct tree {
    uint32_t fanout;
    uint32_t head;        /* node of the head; map->node_count: the head runs no rank */
    uint32_t first, count; /* range of the row below this process */
} tree;

/* Returns a node's position in the row. The nodes below it have the next positions. */
uint32_t tree_position(const tree *self, uint32_t node);
/* The head's view; fanout 0: FANOUT_DEFAULT. */
tree tree_of_head(const map *map, uint32_t head, uint32_t fanout);
/* The view of a node below `above`; count 0: it starts no daemon. */
tree tree_of_node(const tree *above, uint32_t node);
/* Number of daemons that this process starts, and the node of each. */
uint32_t tree_children(const tree *self);
uint32_t tree_child(const tree *self, uint32_t index);
/* Returns the index of the child that leads to a node; UINT32_MAX: the node is not below. */
uint32_t tree_child_towards(const tree *self, uint32_t node);
/* Returns the node whose daemon starts `node`; the head's number if that is the head. */
uint32_t tree_parent(const tree *of_head, uint32_t node);
#endif
