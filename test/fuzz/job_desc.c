/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_desc: the description of a job that a daemon receives, and the tree that it computes from it. The first byte is the daemon's node.
 */
#include "test/fuzz/fuzz.h"
#include "tools/mpirun/job_desc.h"
#include "tools/mpirun/tree.h"

static void texts_check(char *const *items)
{
    size_t bytes = 0;

    for (; *items; items++)
        bytes += strlen(*items);
    if (bytes > (size_t)1 << 30)
        abort();
}

/* What a daemon does with a description that it takes: each rank has an app, each node a name and a place in the tree. */
static void description_use(const job_desc *job)
{
    const map *map = &job->map;
    tree all = tree_of_head(map, job->head, job->opts.fanout), below = tree_of_node(&all, job->node);
    uint32_t ranks = 0;

    if (tree_child_towards(&all, job->node) == UINT32_MAX || tree_parent(&all, job->node) == job->node)
        abort();
    for (uint32_t i = 0; below.count && i < tree_children(&below); i++)
        if (!*map->nodes[tree_child(&below, i)].name)
            abort();
    for (uint32_t a = 0; a < job->opts.app_count; a++) {
        const app *one = &job->opts.apps[a];
        if (one->first != ranks || one->count > map->ranks - ranks)
            abort();
        ranks += one->count;
        texts_check(one->argv);
        for (uint32_t e = 0; e < one->edit_count; e++)
            texts_check((char *[]){one->edits[e].text, NULL});
    }
    for (uint32_t r = 0; r < map->ranks; r++)
        if (map->local_of[r] >= map->nodes[map->node_of[r]].count)
            abort();
    texts_check(job->environment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t node;
    job_desc job;

    fuzz_take(&in, &node, 1);
    ctrl_frame frame = {.kind = CTRL_START, .bytes = in.left};
    char *body = fuzz_take_copy(&in, in.left, &frame.bytes);
    frame.body = body;
    if (!job_desc_unpack(&frame, node, &job))
        description_use(&job);
    free(body);
    job_desc_free(&job);
    return 0;
}
