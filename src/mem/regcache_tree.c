/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcache_tree: see regcache_tree.h. Nodes with equal start are ordered by their own address, so that removal finds the node.
 */
#include "mem/regcache_tree.h"

#include <stddef.h>

static int height_of(const weft_regnode *node) { return node ? node->height : 0; }
static int lean_of(const weft_regnode *node) { return height_of(node->left) - height_of(node->right); }

static bool is_before(const weft_regnode *a, const weft_regnode *b)
{
    return a->start != b->start ? a->start < b->start : a < b;
}

static void refresh(weft_regnode *node)
{
    int left = height_of(node->left), right = height_of(node->right);

    node->height = 1 + (left > right ? left : right);
    node->highest = node->end;
    if (left && node->left->highest > node->highest)
        node->highest = node->left->highest;
    if (right && node->right->highest > node->highest)
        node->highest = node->right->highest;
}

static weft_regnode *turn_right(weft_regnode *node)
{
    weft_regnode *top = node->left;
    node->left = top->right;
    top->right = node;
    refresh(node);
    refresh(top);
    return top;
}

static weft_regnode *turn_left(weft_regnode *node)
{
    weft_regnode *top = node->right;
    node->right = top->left;
    top->left = node;
    refresh(node);
    refresh(top);
    return top;
}

/* Balances a subtree whose children are balanced and differ in height by two at most; returns its new root. */
static weft_regnode *balance(weft_regnode *node)
{
    refresh(node);
    int lean = lean_of(node);
    if (lean > 1) {
        if (lean_of(node->left) < 0)
            node->left = turn_left(node->left);
        return turn_right(node);
    }
    if (lean < -1) {
        if (lean_of(node->right) > 0)
            node->right = turn_right(node->right);
        return turn_left(node);
    }
    return node;
}

static weft_regnode *add(weft_regnode *top, weft_regnode *node)
{
    if (!top)
        return node;
    if (is_before(node, top))
        top->left = add(top->left, node);
    else
        top->right = add(top->right, node);
    return balance(top);
}

void weft_regtree_add(weft_regnode **root, weft_regnode *node)
{
    node->left = node->right = NULL;
    refresh(node);
    *root = add(*root, node);
}

static weft_regnode *take_first(weft_regnode *top, weft_regnode **first)
{
    if (!top->left) {
        *first = top;
        return top->right;
    }
    top->left = take_first(top->left, first);
    return balance(top);
}

static weft_regnode *take(weft_regnode *top, weft_regnode *node)
{
    if (!top)
        return NULL;
    if (top == node) {
        weft_regnode *heir;
        if (!top->right)
            return top->left;
        weft_regnode *right = take_first(top->right, &heir);
        heir->left = top->left;
        heir->right = right;
        return balance(heir);
    }
    if (is_before(node, top))
        top->left = take(top->left, node);
    else
        top->right = take(top->right, node);
    return balance(top);
}

void weft_regtree_remove(weft_regnode **root, weft_regnode *node)
{
    *root = take(*root, node);
}

weft_regnode *weft_regtree_find(weft_regnode *root, uint64_t start, uint64_t end, uint32_t rights,
                                bool (*accepts)(const weft_regnode *node))
{
    while (root && root->highest >= end) {
        if (root->start > start) {
            root = root->left;
            continue;
        }
        if (root->end >= end && (root->rights & rights) == rights && accepts(root))
            return root;
        /* Either side may match; nearer starts (right) are more likely to. */
        weft_regnode *found = weft_regtree_find(root->right, start, end, rights, accepts);
        if (found)
            return found;
        root = root->left;
    }
    return NULL;
}

void weft_regtree_each(weft_regnode *root, uint64_t start, uint64_t end, void (*each)(void *arg, weft_regnode *node), void *arg)
{
    if (!root || root->highest <= start)
        return;
    weft_regtree_each(root->left, start, end, each, arg);
    if (root->start >= end)
        return;
    if (root->end > start)
        each(arg, root);
    weft_regtree_each(root->right, start, end, each, arg);
}

static void chain(void *arg, weft_regnode *node)
{
    weft_regnode **last = arg;

    node->chained = *last;
    *last = node;
}

weft_regnode *weft_regtree_chain(weft_regnode *root, uint64_t start, uint64_t end)
{
    weft_regnode *last = NULL;
    weft_regtree_each(root, start, end, chain, &last);
    return last;
}

long weft_regtree_check(const weft_regnode *root)
{
    if (!root)
        return 0;
    long left = weft_regtree_check(root->left), right = weft_regtree_check(root->right);
    uint64_t highest = root->end;
    if (left < 0 || right < 0 || lean_of(root) > 1 || lean_of(root) < -1)
        return -1;
    if ((root->left && !is_before(root->left, root)) || (root->right && !is_before(root, root->right)))
        return -1;
    highest = root->left && root->left->highest > highest ? root->left->highest : highest;
    highest = root->right && root->right->highest > highest ? root->right->highest : highest;
    return highest == root->highest ? left + right + 1 : -1;
}
