/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_reorder: places the vertices of a graph on the processes of a job so that little is sent between nodes, and then between sockets.
 * Pure functions without messages, called by topo_order.c and by tests.
 * Invariant: the result depends on the arguments only, so that all members of a communicator find the same. It is never worse than the
 * identity. docs/topologies.md describes the method.
 */
#ifndef WEFT_MPI_TOPO_REORDER_H
#define WEFT_MPI_TOPO_REORDER_H

#include <stdint.h>

#define WEFT_PART_NONE UINT32_MAX
#define WEFT_REORDER_WORK 20000000 /* steps that one weft_reorder_compute may spend, about 50 ms */

/* A graph of vertices 0..count - 1. Both ends list each edge; edges from a vertex to itself are left out. */
typedef struct weft_topo_graph {
    uint32_t count;
    uint32_t *first; /* [count + 1] owned */
    uint32_t *to, *weight; /* [first[count]] owned; to[first[v]..first[v + 1] - 1] are the neighbors of v */
    int ndims; /* the graph is a grid in row-major order; 0: any graph */
    const int *dims, *periods; /* borrowed */
} weft_topo_graph;

/* 0, WEFT_E_NOMEM, or WEFT_E_TOOLARGE for 2^32 edges. Free with weft_topo_graph_free, also on error. */
int weft_topo_graph_of_grid(int ndims, const int *dims, const int *periods, weft_topo_graph *graph);
/* edges: `edge_count` triples of source, destination, weight, which are in range. */
int weft_topo_graph_of_edges(uint32_t count, const int *edges, uint64_t edge_count, weft_topo_graph *graph);
void weft_topo_graph_free(weft_topo_graph *graph);

/* order[v]: the process of vertex v, of processes 0..graph->count - 1. Process i is on node[i], and there on socket[i] (any numbers; a
 * socket's number means something on its node only). 0 or WEFT_E_NOMEM. */
int weft_reorder_compute(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, uint32_t *order);
/* cost[0]: the weights of the edges between nodes, cost[1]: of those between sockets of a node. Each edge counts in both directions. order
 * NULL: vertex v is process v. */
void weft_reorder_cost(const weft_topo_graph *graph, const uint32_t *node, const uint32_t *socket, const uint32_t *order, uint64_t cost[2]);

/* topo_part.c: a set of vertices to be distributed over parts of fixed sizes. */
typedef struct weft_part_job {
    const weft_topo_graph *graph;
    const uint32_t *cells; /* [count] the vertices, ascending */
    uint32_t count, parts;
    const uint32_t *sizes; /* [parts] their sum is count */
    uint64_t work;         /* steps left */
} weft_part_job;

/* part[graph->count] in: a distribution of the cells, WEFT_PART_NONE for other vertices; out: the best one found, with the least weight
 * between parts. 0 or WEFT_E_NOMEM. */
int weft_part_improve(weft_part_job *job, uint32_t *part);

/* topo_grid.c: distributions of a grid's cells. Each sets part[] of all cells. */
/* Equal boxes, if all parts are equal and the cells are the whole grid; else nothing. 1 if it set part, 0, or WEFT_E_NOMEM. */
int weft_part_tile(const weft_part_job *job, uint32_t *part);
/* Cuts boxes across their longest side, again and again. 0 or WEFT_E_NOMEM. */
int weft_part_bisect(const weft_part_job *job, uint32_t *part);

#endif
