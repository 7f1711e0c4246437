/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_tree: interval tree: an AVL tree of address ranges by start, which may overlap; each node holds the highest end of its
 * subtree. The caller owns the nodes. No lock: regcache guards it.
 */
#ifndef WEFT_MEM_REGCACHE_TREE_H
#define WEFT_MEM_REGCACHE_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_regnode {
    struct weft_regnode *left, *right;
    uint64_t start, end;
    uint64_t highest;             /* highest end in this subtree */
    uint32_t rights;              /* the owner's bits, compared by find */
    int height;
    struct weft_regnode *chained; /* next in the result of weft_regtree_chain() */
} weft_regnode;

/* Both update *root. start, end and rights of a node must not change while it is in the tree. */
void weft_regtree_add(weft_regnode **root, weft_regnode *node);
void weft_regtree_remove(weft_regnode **root, weft_regnode *node);
/* Finds a node that contains [start, end) with at least these rights and for which accepts() is true; NULL: none. */
weft_regnode *weft_regtree_find(weft_regnode *root, uint64_t start, uint64_t end, uint32_t rights,
                                bool (*accepts)(const weft_regnode *node));
/* Returns all nodes that overlap [start, end), linked by `chained`; NULL: none. The tree may change while the caller walks them. */
weft_regnode *weft_regtree_chain(weft_regnode *root, uint64_t start, uint64_t end);
/* Calls `each` for the nodes that overlap [start, end). Changes nothing; the tree must not change meanwhile. */
void weft_regtree_each(weft_regnode *root, uint64_t start, uint64_t end, void (*each)(void *arg, weft_regnode *node), void *arg);
/* For tests: number of nodes, or -1 if order, balance or a highest end is wrong. */
long weft_regtree_check(const weft_regnode *root);

#endif
