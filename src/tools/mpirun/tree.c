/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree: see tree.h. The lengths of parts differ by at most one; the longer ones come first.
 */
#include "tools/mpirun/tree.h"

uint32_t tree_position(const tree *self, uint32_t node)
{
    return node - (node > self->head);
}

static uint32_t node_at(const tree *self, uint32_t position)
{
    return position + (position >= self->head);
}

uint32_t tree_children(const tree *self)
{
    return self->count < self->fanout ? self->count : self->fanout;
}

/* Returns the offset of a part in the range; part tree_children is the end of the range. */
static uint32_t part_begin(const tree *self, uint32_t part)
{
    uint32_t parts = tree_children(self), min = self->count / parts, longer = self->count % parts;

    return part * min + (part < longer ? part : longer);
}

tree tree_of_head(const map *map, uint32_t head, uint32_t fanout)
{
    return (tree){.fanout = fanout ? fanout : FANOUT_DEFAULT, .head = head, .count = map->node_count - (head < map->node_count)};
}

uint32_t tree_child(const tree *self, uint32_t index)
{
    return node_at(self, self->first + part_begin(self, index));
}

uint32_t tree_child_towards(const tree *self, uint32_t node)
{
    uint32_t position = tree_position(self, node), low = 0, high;

    if (node == self->head || position < self->first || position >= self->first + self->count)
        return UINT32_MAX;
    for (high = tree_children(self); high - low > 1;) {
        uint32_t middle = low + (high - low) / 2;
        if (self->first + part_begin(self, middle) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the range below a child. */
static tree below(const tree *self, uint32_t index)
{
    uint32_t begin = part_begin(self, index), end = part_begin(self, index + 1);

    return (tree){.fanout = self->fanout, .head = self->head, .first = self->first + begin + 1, .count = end - begin - 1};
}

/* Descends to a node; *parent: the node that starts it. */
static tree descend(const tree *above, uint32_t node, uint32_t *parent)
{
    tree at = *above;

    *parent = above->head;
    for (uint32_t towards; (towards = tree_child_towards(&at, node)) != UINT32_MAX;) {
        uint32_t child = tree_child(&at, towards);
        at = below(&at, towards);
        if (child == node)
            return at;
        *parent = child;
    }
    return (tree){.fanout = above->fanout, .head = above->head};
}

tree tree_of_node(const tree *above, uint32_t node)
{
    uint32_t parent;

    return descend(above, node, &parent);
}

uint32_t tree_parent(const tree *of_head, uint32_t node)
{
    uint32_t parent;

    descend(of_head, node, &parent);
    return parent;
}
