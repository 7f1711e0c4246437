/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_tree: the tree of daemons: all compute the same; each host but the head's is started by one process, and a frame's route leads
 * through those that started it; no process starts more than the fan-out, and the tree has minimal depth.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>

#include "tools/mpirun/tree.h"

#define MAX 700

/* Visits all below; marks each with its parent, 1 + node. Returns the depth. */
static uint32_t walk(const tree *head, const tree *at, uint32_t above, uint32_t *starter, uint32_t depth)
{
    uint32_t deepest = depth, wrong = 0, previous = 0;

    CU_ASSERT_TRUE_FATAL(tree_children(at) <= at->fanout);
    for (uint32_t i = 0; i < tree_children(at); i++) {
        uint32_t node = tree_child(at, i);
        tree below = tree_of_node(head, node), again = tree_of_node(at, node);
        wrong += starter[node] != 0 || node == head->head || (i && node <= previous);
        wrong += below.first != again.first || below.count != again.count || tree_parent(head, node) != above;
        wrong += below.count && below.first != tree_position(head, node) + 1;
        starter[node] = 1 + above;
        previous = node;
        uint32_t deep = walk(head, &below, node, starter, depth + 1);
        deepest = deep > deepest ? deep : deepest;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    return deepest;
}

/* The most hosts of a tree of this depth. */
static uint64_t reach(uint64_t fanout, uint32_t steps)
{
    uint64_t all = 0, level = 1;

    for (uint32_t i = 0; i < steps; i++)
        all += level *= fanout;
    return all;
}

static void one(uint32_t nodes, uint32_t head, uint32_t fanout)
{
    static uint32_t starter[MAX];
    const map map = {.node_count = nodes};
    tree top = tree_of_head(&map, head, fanout);
    uint32_t hosts = nodes - (head < nodes), missing = 0, astray = 0;

    for (uint32_t i = 0; i < nodes; i++)
        starter[i] = 0;
    uint32_t depth = walk(&top, &top, head, starter, 0);
    for (uint32_t i = 0; i < nodes; i++) {
        missing += (starter[i] != 0) != (i != head);
        /* route of a frame from the head */
        tree at = top;
        for (uint32_t way, steps = 0; i != head && steps <= hosts; steps++) {
            if ((way = tree_child_towards(&at, i)) == UINT32_MAX) {
                astray++;
                break;
            }
            uint32_t next = tree_child(&at, way);
            if (next == i)
                break;
            at = tree_of_node(&top, next);
        }
    }
    CU_ASSERT_EQUAL(missing, 0);
    CU_ASSERT_EQUAL(astray, 0);
    CU_ASSERT_EQUAL(tree_child_towards(&top, head), UINT32_MAX);
    CU_ASSERT_EQUAL(tree_child_towards(&top, nodes), UINT32_MAX);
    CU_ASSERT_TRUE(reach(top.fanout, depth) >= hosts);
    CU_ASSERT_TRUE(!depth || reach(top.fanout, depth - 1) < hosts);
}

static void all_sizes(void)
{
    const uint32_t fanouts[] = {1, 2, 3, 5, 64};

    for (size_t f = 0; f < sizeof(fanouts) / sizeof(*fanouts); f++)
        for (uint32_t nodes = 1; nodes <= 40; nodes++)
            for (uint32_t head = 0; head <= nodes; head++)
                one(nodes, head, fanouts[f]);
}

static void many(void)
{
    one(65, 0, 0);
    one(66, 0, 0);
    one(MAX, 0, 0);
    one(MAX, 350, 0);
    one(MAX, MAX, 7);
}

/* Up to the default fan-out the head starts all hosts. */
static void a_star(void)
{
    const map map = {.node_count = FANOUT_DEFAULT + 1};
    tree top = tree_of_head(&map, 3, 0);

    CU_ASSERT_EQUAL(tree_children(&top), FANOUT_DEFAULT);
    for (uint32_t i = 0; i < map.node_count; i++) {
        tree below = tree_of_node(&top, i);
        CU_ASSERT_EQUAL(below.count, 0);
        CU_ASSERT_EQUAL(tree_children(&below), 0);
        CU_ASSERT_EQUAL(tree_parent(&top, i), 3);
    }
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("tree", NULL, NULL);
    CU_add_test(suite, "all sizes", all_sizes);
    CU_add_test(suite, "many", many);
    CU_add_test(suite, "a star", a_star);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
