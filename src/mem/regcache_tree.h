/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_tree: ranges of addresses that may overlap, in a balanced (AVL) tree by start; each node knows the highest end below
 * it, so that whoever covers or touches a range is found without a walk over all. Nodes are the owner's. Called by regcache,
 * which guards it.
 */
#ifndef WEFT_MEM_REGCACHE_TREE_H
#define WEFT_MEM_REGCACHE_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_regnode {
    struct weft_regnode *left, *right;
    uint64_t start, end;
    uint64_t highest;             /* of the ends in this node and below */
    uint32_t rights;              /* the owner's: what find asks for */
    int height;
    struct weft_regnode *chained; /* what weft_regtree_chain gives */
} weft_regnode;

/* Both change *root; start, end and rights of a node in the tree do not change. */
void weft_regtree_add(weft_regnode **root, weft_regnode *node);
void weft_regtree_remove(weft_regnode **root, weft_regnode *node);
/* A node that covers [start, end), has these rights at least, and pleases; NULL: none. */
weft_regnode *weft_regtree_find(weft_regnode *root, uint64_t start, uint64_t end, uint32_t rights,
                                bool (*pleases)(const weft_regnode *node));
/* All that overlap [start, end), linked by `chained`: the tree may be changed while the chain is walked. */
weft_regnode *weft_regtree_chain(weft_regnode *root, uint64_t start, uint64_t end);
/* Is the tree what it should be: order, balance, highest ends? For tests; how many nodes, or -1. */
long weft_regtree_check(const weft_regnode *root);

#endif
