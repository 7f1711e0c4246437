/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_reorder: see topo_reorder.h. Distributes the vertices over the nodes first, then those of each node over its sockets, and numbers
 * them so that a vertex and its process ascend together.
 */
#include "mpi/topo_reorder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int no_memory(uint64_t count)
{
    return weft_fail(WEFT_E_NOMEM, "no memory to place %llu processes", (unsigned long long)count);
}

/* -- graphs -- */

/* Allocates the arrays for so many entries, each edge counted at both ends. */
static int alloc_graph(weft_topo_graph *graph, uint64_t entries)
{
    *graph = (weft_topo_graph){.count = graph->count};
    if (entries > UINT32_MAX)
        return weft_fail(WEFT_E_TOOLARGE, "a graph of %llu edges is too large to be placed", (unsigned long long)entries / 2);
    graph->first = calloc((size_t)graph->count + 1, sizeof *graph->first);
    graph->to = malloc((entries + 1) * sizeof *graph->to);
    graph->weight = malloc((entries + 1) * sizeof *graph->weight);
    return graph->first && graph->to && graph->weight ? 0 : no_memory(graph->count);
}

void weft_topo_graph_free(weft_topo_graph *graph)
{
    free(graph->first);
    free(graph->to);
    free(graph->weight);
}

int weft_topo_graph_of_grid(int ndims, const int *dims, const int *periods, weft_topo_graph *graph)
{
    uint32_t at = 0;
    int rc;
    graph->count = 1;
    for (int d = 0; d < ndims; d++)
        graph->count *= (uint32_t)dims[d];
    rc = alloc_graph(graph, 2 * (uint64_t)ndims * graph->count);
    if (rc)
        return rc;
    graph->ndims = ndims;
    graph->dims = dims;
    graph->periods = periods;
    for (uint32_t v = 0; v < graph->count; v++) {
        uint32_t rest = v, stride = 1;
        graph->first[v] = at;
        for (int d = ndims - 1; d >= 0; d--) {
            uint32_t size = (uint32_t)dims[d], x = rest % size, last = size - 1;
            if (size > 1 && (x || periods[d]))
                graph->to[at++] = x ? v - stride : v + last * stride;
            if (size > 1 && (x < last || periods[d]))
                graph->to[at++] = x < last ? v + stride : v - last * stride;
            rest /= size;
            stride *= size;
        }
    }
    graph->first[graph->count] = at;
    for (uint32_t e = 0; e < at; e++)
        graph->weight[e] = 1;
    return 0;
}

int weft_topo_graph_of_edges(uint32_t count, const int *edges, uint64_t edge_count, weft_topo_graph *graph)
{
    int rc;
    graph->count = count;
    rc = alloc_graph(graph, 2 * edge_count);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < edge_count; i++)
        if (edges[3 * i] != edges[3 * i + 1]) {
            graph->first[edges[3 * i]]++;
            graph->first[edges[3 * i + 1]]++;
        }
    for (uint32_t v = 0, at = 0; v <= count; v++) { /* first[v]: end of v's range, then filled from its end to its begin */
        at += v < count ? graph->first[v] : 0;
        graph->first[v] = at;
    }
    for (uint64_t i = edge_count; i-- > 0;)
        for (int end = 0; end < 2 && edges[3 * i] != edges[3 * i + 1]; end++) {
            uint32_t place = --graph->first[edges[3 * i + (uint64_t)end]];
            graph->to[place] = (uint32_t)edges[3 * i + 1 - (uint64_t)end];
            graph->weight[place] = (uint32_t)edges[3 * i + 2];
        }
    return 0;
}

void weft_reorder_cost(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, const uint32_t *order, uint64_t cost[2])
{
    cost[0] = cost[1] = 0;
    for (uint32_t v = 0; v < graph->count; v++)
        for (uint32_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
            uint32_t a = order ? order[v] : v, b = order ? order[graph->to[e]] : graph->to[e];
            if (node[a] != node[b])
                cost[0] += graph->weight[e];
            else if (socket[a] != socket[b])
                cost[1] += graph->weight[e];
        }
}

/* -- levels -- */

/* Processes of one level, grouped by where they run. */
typedef struct groups {
    uint32_t parts;
    uint32_t *part;  /* [n] part of the i-th process, numbered by first appearance */
    uint32_t *sizes; /* [parts] */
} groups;

typedef struct label {
    uint32_t value, index;
} label;

static int by_value(const void *a, const void *b)
{
    const label *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? -1 : 1) : x->index < y->index ? -1 : x->index > y->index;
}

/* Groups n processes by values[members[i]]. Free with free_groups, also on error. */
static int make_groups(const uint32_t *values, const uint32_t *members, uint32_t n, groups *out)
{
    label *labels = malloc(n * sizeof *labels);
    uint32_t last = 0;
    *out = (groups){0, malloc(n * sizeof *out->part), calloc(n, sizeof *out->sizes)};
    if (!(labels && out->part && out->sizes)) {
        free(labels);
        return no_memory(n);
    }
    for (uint32_t i = 0; i < n; i++)
        labels[i] = (label){values[members[i]], i};
    qsort(labels, n, sizeof *labels, by_value);
    for (uint32_t i = 0, first = 0; i < n; i++) { /* value: index of the first process there */
        first = i && labels[i].value == last ? first : labels[i].index;
        last = labels[i].value;
        out->part[labels[i].index] = first;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = out->part[i];
        out->part[i] = first == i ? out->parts++ : out->part[first];
        out->sizes[out->part[i]]++;
    }
    free(labels);
    return 0;
}

static void free_groups(groups *of)
{
    free(of->part);
    free(of->sizes);
}

/* Distributes cells over the groups of the processes members[n], starting from cells[i] on members[i]. part[graph->count]: WEFT_PART_NONE
 * before, the cells' parts after. */
static int distribute(const weft_topo_graph *graph, const uint32_t *cells, uint32_t n, const groups *of, uint64_t *work, uint32_t *part)
{
    weft_part_job job = {graph, cells, n, of->parts, of->sizes, *work};
    int rc = 0;
    for (uint32_t i = 0; i < n; i++)
        part[cells[i]] = of->part[i];
    if (of->parts > 1 && of->parts < n)
        rc = weft_part_improve(&job, part);
    *work = job.work;
    return rc;
}

/* Gives the cells of each part the processes of the group with the same number, both ascending. */
static int assign(const uint32_t *cells, const uint32_t *members, uint32_t n, const groups *of, const uint32_t *part, uint32_t *order)
{
    uint32_t *next = malloc((of->parts + 1) * sizeof *next), *sorted = malloc(n * sizeof *sorted);
    if (next && sorted) {
        next[0] = 0;
        for (uint32_t p = 0; p < of->parts; p++)
            next[p + 1] = next[p] + of->sizes[p];
        for (uint32_t i = 0; i < n; i++)
            sorted[next[of->part[i]]++] = members[i];
        for (uint32_t p = of->parts; p > 0; p--)
            next[p] = next[p - 1];
        next[0] = 0;
        for (uint32_t i = 0; i < n; i++)
            order[cells[i]] = sorted[next[part[cells[i]]]++];
    }
    free(next);
    free(sorted);
    return next && sorted ? 0 : no_memory(n);
}

/* One level: vertices cells[n], which processes members[n] have, are distributed by where these run. order[cells[i]] is set. */
static int place(const weft_topo_graph *graph, const uint32_t *where, const uint32_t *cells, const uint32_t *members, uint32_t n,
                 uint64_t *work, uint32_t *part, uint32_t *order)
{
    groups of;
    int rc = make_groups(where, members, n, &of);
    if (!rc)
        rc = distribute(graph, cells, n, &of, work, part);
    if (!rc)
        rc = assign(cells, members, n, &of, part, order);
    for (uint32_t i = 0; i < n; i++)
        part[cells[i]] = WEFT_PART_NONE;
    free_groups(&of);
    return rc;
}

typedef struct work_area {
    uint32_t *part, *cells, *members; /* [count] each */
    label *labels;
} work_area;

/* The second level: for each node the vertices that the first has given to its processes, over its sockets. */
static int place_in_nodes(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, uint64_t *work, work_area *area,
                          uint32_t *order)
{
    uint32_t count = graph->count;
    int rc = 0;
    for (uint32_t v = 0; v < count; v++)
        area->labels[v] = (label){node[order[v]], v};
    qsort(area->labels, count, sizeof *area->labels, by_value);
    for (uint32_t begin = 0, n; begin < count && !rc; begin += n) {
        for (n = 0; begin + n < count && area->labels[begin + n].value == area->labels[begin].value; n++) {
            area->cells[n] = area->labels[begin + n].index;
            area->members[n] = order[area->cells[n]];
        }
        rc = place(graph, socket, area->cells, area->members, n, work, area->part, order);
    }
    return rc;
}

static int place_all(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, work_area *area, uint32_t *order)
{
    uint64_t work = WEFT_REORDER_WORK / 2, rest;
    int rc;
    for (uint32_t v = 0; v < graph->count; v++) {
        area->part[v] = WEFT_PART_NONE;
        area->cells[v] = area->members[v] = v;
    }
    rc = place(graph, node, area->cells, area->members, graph->count, &work, area->part, order);
    rest = work + WEFT_REORDER_WORK / 2;
    return rc ? rc : place_in_nodes(graph, node, socket, &rest, area, order);
}

static bool are_equal(const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

int weft_reorder_compute(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, uint32_t *order)
{
    size_t count = graph->count;
    uint64_t before[2], after[2];
    work_area area;
    int rc = 0;
    for (uint32_t v = 0; v < count; v++)
        order[v] = v;
    weft_reorder_cost(graph, node, socket, NULL, before);
    if (!(before[0] | before[1]) || (are_equal(node, graph->count) && are_equal(socket, graph->count)))
        return 0;
    area = (work_area){malloc(count * sizeof *area.part), malloc(count * sizeof *area.cells), malloc(count * sizeof *area.members),
                       malloc(count * sizeof *area.labels)};
    rc = area.part && area.cells && area.members && area.labels ? place_all(graph, node, socket, &area, order) : no_memory(count);
    free(area.part);
    free(area.cells);
    free(area.members);
    free(area.labels);
    if (rc)
        return rc;
    weft_reorder_cost(graph, node, socket, order, after);
    for (uint32_t v = 0; v < count && (after[0] > before[0] || (after[0] == before[0] && after[1] >= before[1])); v++)
        order[v] = v;
    return 0;
}
