/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_job_desc: the serialized job. The map is the same after unpacking, by slot, by node and mixed, and compact where adjacent ranks
 * share a node; a truncated description is rejected.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpirun/job_desc.h"

int report(int code, const char *format, ...)
{
    (void)format;
    return code;
}

static char *argv_made[] = {"program", NULL};
static char *environment_made[] = {"A=b", NULL};

/* Describes `ranks` ranks on `nodes` nodes by `place`; how many bytes it took. */
static size_t one(uint32_t ranks, uint32_t nodes, uint32_t (*place)(uint32_t rank, uint32_t ranks, uint32_t nodes), pack *body)
{
    app part = {.count = ranks, .argv = argv_made};
    options opts = {.apps = &part, .app_count = 1, .ranks = ranks, .fanout = 3};
    map map = {.ranks = ranks, .node_count = nodes};
    uint32_t wrong = 0;

    map.nodes = calloc(nodes, sizeof(*map.nodes));
    map.node_of = calloc(ranks, sizeof(*map.node_of));
    for (uint32_t i = 0; i < nodes; i++)
        map.nodes[i].name = "host";
    map.nodes[1].is_here = true;
    for (uint32_t r = 0; r < ranks; r++)
        map.node_of[r] = place(r, ranks, nodes);
    job_desc_pack(&opts, &map, "name", "host", body);
    ctrl_frame frame = {.kind = CTRL_START, .body = body->bytes.bytes + body->bytes.start, .bytes = body->bytes.used};
    job_desc unpacked;
    CU_ASSERT_EQUAL_FATAL(job_desc_unpack(&frame, nodes - 1, &unpacked), 0);
    CU_ASSERT_TRUE_FATAL(unpacked.map.ranks == ranks && unpacked.map.node_count == nodes && unpacked.head == 1 &&
                         unpacked.opts.fanout == 3);
    uint32_t *next = calloc(nodes, sizeof(*next));
    for (uint32_t r = 0; r < ranks; r++)
        wrong += unpacked.map.node_of[r] != map.node_of[r] || unpacked.map.local_of[r] != next[map.node_of[r]]++;
    for (uint32_t i = 0; i < nodes; i++)
        wrong += unpacked.map.nodes[i].count != next[i];
    CU_ASSERT_EQUAL(wrong, 0);
    job_desc_free(&unpacked);
    free(next);
    free(map.nodes);
    free(map.node_of);
    return body->bytes.used;
}

static uint32_t by_slot(uint32_t rank, uint32_t ranks, uint32_t nodes) { return (uint32_t)((uint64_t)rank * nodes / ranks); }
static uint32_t by_node(uint32_t rank, uint32_t ranks, uint32_t nodes) { return (void)ranks, rank % nodes; }
static uint32_t by_turns(uint32_t rank, uint32_t ranks, uint32_t nodes) { return (void)ranks, rank / 3 % nodes; }

static size_t size_of(uint32_t ranks, uint32_t nodes, uint32_t (*place)(uint32_t, uint32_t, uint32_t))
{
    pack body = {0};
    size_t bytes = one(ranks, nodes, place, &body);

    buffer_free(&body.bytes);
    return bytes;
}

static void places(void)
{
    for (uint32_t nodes = 3; nodes < 12; nodes += 3)
        for (uint32_t ranks = nodes; ranks < 200; ranks += 17) {
            size_of(ranks, nodes, by_slot);
            size_of(ranks, nodes, by_node);
        }
    size_of(300, 7, by_turns);
}

static void short_by_slot(void)
{
    size_t few = size_of(1000, 10, by_slot), many = size_of(60000, 10, by_slot);

    CU_ASSERT_EQUAL(many, few); /* ten runs are ten runs */
    few = size_of(1000, 10, by_node);
    many = size_of(60000, 10, by_node);
    CU_ASSERT_EQUAL(many - few, 4u * 59000); /* and no more than a node for each rank where there are none */
}

static void cut(void)
{
    pack body = {0};
    size_t bytes = one(40, 4, by_slot, &body), taken = 0;

    for (size_t i = 0; i < bytes; i++) {
        ctrl_frame frame = {.kind = CTRL_START, .body = body.bytes.bytes + body.bytes.start, .bytes = i};
        job_desc unpacked;
        taken += job_desc_unpack(&frame, 3, &unpacked) == 0;
        job_desc_free(&unpacked);
    }
    CU_ASSERT_EQUAL(taken, 0);
    ctrl_frame whole = {.kind = CTRL_START, .body = body.bytes.bytes + body.bytes.start, .bytes = bytes};
    job_desc unpacked;
    for (uint32_t node = 1; node < 5; node += 3) { /* the head's node has no daemon, and there is no node 4 */
        CU_ASSERT_NOT_EQUAL(job_desc_unpack(&whole, node, &unpacked), 0);
        job_desc_free(&unpacked);
    }
    buffer_free(&body.bytes);
}

int main(void)
{
    environ = environment_made;
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("job_desc", NULL, NULL);
    CU_add_test(suite, "places", places);
    CU_add_test(suite, "short by slot", short_by_slot);
    CU_add_test(suite, "cut", cut);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
