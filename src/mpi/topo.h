/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo: virtual topologies of communicators (MPI 5.0 chapter 8): grids, graphs, distributed graphs. Made by cart_create.c, graph.c and
 * dist_graph.c; read by cart.c, graph.c and dist_graph.c without a lock.
 * Invariant: a weft_topo does not change once a communicator has it. Duplicates of the communicator share it (refs).
 */
#ifndef WEFT_MPI_TOPO_H
#define WEFT_MPI_TOPO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/team.h"

struct MPI_ABI_Comm;

typedef struct weft_topo {
    _Atomic uint32_t refs; /* communicators */
    int kind;              /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH: says which member below is valid */
    /* All arrays are in values[]. */
    union {
        struct {
            int ndims, *dims, *periods; /* [ndims] periods: 0 or 1 */
            int *neighbors;             /* [2 * ndims] weft_cart_set_neighbors */
        } cart;
        struct {
            int nnodes, nedges, *index, *edges; /* [nnodes], [nedges] as MPI_Graph_create got them */
        } graph;
        struct { /* of this member */
            int indegree, outdegree, is_weighted;
            int *sources, *source_weights, *destinations, *dest_weights; /* [indegree], [outdegree]; weights 1 if not weighted */
        } dist;
    };
    int values[];
} weft_topo;

/* A grid or graph with one reference and room for its arrays, which are not set. NULL: out of memory (weft_fail). */
weft_topo *weft_topo_new_cart(int ndims);
weft_topo *weft_topo_new_graph(int nnodes, int nedges);
weft_topo *weft_topo_new_dist(int indegree, int outdegree);
/* Another reference to topo; NULL gives NULL. */
weft_topo *weft_topo_share(weft_topo *topo);
void weft_topo_drop(weft_topo *topo); /* NULL: no effect */
/* The communicator's topology if it is of this kind, else NULL and the text of WEFT_E_TOPOLOGY. */
const weft_topo *weft_topo_of(const struct MPI_ABI_Comm *comm, int kind);

/* cart_dims.c: writes the most balanced factors of n to dims[count], in nonincreasing order: the difference of the largest and the smallest
 * is minimal, and among such factors they are the first in lexicographic order. n and count are positive. */
void weft_dims_balance(uint32_t n, int count, int *dims);

/* cart.c: rank of the position in row-major order, and back. Coordinates are in range. */
int weft_cart_rank(const weft_topo *topo, const int *coords);
void weft_cart_coords(const weft_topo *topo, int rank, int *coords);
/* Sets neighbors: for each dimension the ranks one step down and one step up from this rank, or MPI_PROC_NULL. */
void weft_cart_set_neighbors(weft_topo *topo, int rank);

/* This member's edges, in the order of the blocks of neighborhood collectives (MPI 5.0 8.6); valid as long as the communicator.
 * WEFT_E_TOPOLOGY: it has no topology. */
int weft_topo_neighbors(const struct MPI_ABI_Comm *comm, weft_neighbors *neighbors);

/* Edges that leave (out) or enter this member; 0 without a topology. */
uint32_t weft_topo_degree(const struct MPI_ABI_Comm *comm, bool out);

#endif
