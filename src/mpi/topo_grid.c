/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_grid: distributes the cells of a grid over parts: as equal boxes, or by bisection. Called by topo_part.c; any thread.
 */
#include <stdlib.h>

#include "base/status.h"
#include "mpi/topo_reorder.h"

/* -- equal boxes -- */

typedef struct tiling {
    const weft_topo_graph *graph;
    uint64_t cost; /* of best */
    int *box, *best; /* [ndims] sides */
} tiling;

/* Cells in which a cut across dimension d ends. */
static uint64_t faces(const weft_topo_graph *graph, int d)
{
    uint64_t blocks = (uint64_t)graph->dims[d];
    return graph->count / blocks;
}

/* Sets the sides of dimensions d.. so that their product is `cells`; keeps the best box. */
static void try_sides(tiling *t, int d, uint32_t cells, uint64_t cost)
{
    const weft_topo_graph *graph = t->graph;
    if (cost >= t->cost)
        return;
    if (d == graph->ndims) {
        if (cells != 1)
            return;
        t->cost = cost;
        for (int i = 0; i < graph->ndims; i++)
            t->best[i] = t->box[i];
        return;
    }
    for (int side = 1; side <= graph->dims[d] && (uint32_t)side <= cells; side++)
        if (graph->dims[d] % side == 0 && cells % (uint32_t)side == 0) {
            uint64_t blocks = (uint64_t)(graph->dims[d] / side);
            uint64_t cuts = blocks == 1 ? 0 : blocks - 1 + (graph->periods[d] != 0);
            t->box[d] = side;
            try_sides(t, d + 1, cells / (uint32_t)side, cost + cuts * faces(graph, d));
        }
}

int weft_part_tile(const weft_part_job *job, uint32_t *part)
{
    const weft_topo_graph *graph = job->graph;
    tiling t = {.graph = graph, .cost = UINT64_MAX};
    for (uint32_t i = 1; i < job->parts; i++)
        if (job->sizes[i] != job->sizes[0])
            return 0;
    if (job->count != graph->count)
        return 0;
    t.box = malloc(2 * (size_t)graph->ndims * sizeof *t.box);
    if (!t.box)
        return weft_fail(WEFT_E_NOMEM, "no memory to place %u processes", job->count);
    t.best = t.box + graph->ndims;
    try_sides(&t, 0, job->sizes[0], 0);
    for (uint32_t v = 0; v < graph->count && t.cost != UINT64_MAX; v++) {
        uint32_t rest = v, block = 0, stride = 1;
        for (int d = graph->ndims - 1; d >= 0; d--) {
            uint32_t size = (uint32_t)graph->dims[d], side = (uint32_t)t.best[d];
            block += rest % size / side * stride;
            stride *= size / side;
            rest /= size;
        }
        part[v] = block;
    }
    free(t.box);
    return t.cost != UINT64_MAX;
}

/* -- bisection -- */

typedef struct cell {
    uint64_t key;
    uint32_t vertex;
} cell;

static int by_key(const void *a, const void *b)
{
    const cell *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static uint32_t coordinate(const weft_topo_graph *graph, uint32_t v, int d)
{
    for (int i = graph->ndims - 1; i > d; i--)
        v /= (uint32_t)graph->dims[i];
    return v % (uint32_t)graph->dims[d];
}

/* The dimension in which the cells extend farthest. */
static int longest(const weft_topo_graph *graph, const cell *cells, uint32_t count)
{
    int best = 0;
    uint32_t extent = 0;
    for (int d = 0; d < graph->ndims; d++) {
        uint32_t low = UINT32_MAX, high = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t x = coordinate(graph, cells[i].vertex, d);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (high - low + 1 > extent) {
            extent = high - low + 1;
            best = d;
        }
    }
    return best;
}

static void split(const weft_part_job *job, cell *cells, uint32_t count, uint32_t begin, uint32_t end, uint32_t *part)
{
    uint32_t middle = (begin + end) / 2, left = 0;
    int d;
    if (end - begin == 1) {
        for (uint32_t i = 0; i < count; i++)
            part[cells[i].vertex] = begin;
        return;
    }
    d = longest(job->graph, cells, count);
    for (uint32_t i = 0; i < count; i++)
        cells[i].key = (uint64_t)coordinate(job->graph, cells[i].vertex, d) << 32 | cells[i].vertex;
    qsort(cells, count, sizeof *cells, by_key);
    for (uint32_t i = begin; i < middle; i++)
        left += job->sizes[i];
    split(job, cells, left, begin, middle, part);
    split(job, cells + left, count - left, middle, end, part);
}

int weft_part_bisect(const weft_part_job *job, uint32_t *part)
{
    cell *cells = malloc(job->count * sizeof *cells);
    if (!cells)
        return weft_fail(WEFT_E_NOMEM, "no memory to place %u processes", job->count);
    for (uint32_t i = 0; i < job->count; i++)
        cells[i].vertex = job->cells[i];
    split(job, cells, job->count, 0, job->parts, part);
    free(cells);
    return 0;
}
