/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo: allocates and shares virtual topologies, and names the kind that a communicator has (MPI 5.0 8.5.5). Any thread.
 */
#include "mpi/topo.h"

#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/calls.h"

static weft_topo *topo_new(int kind, size_t count)
{
    weft_topo *topo = malloc(sizeof *topo + count * sizeof *topo->values);
    if (!topo) {
        weft_fail(WEFT_E_NOMEM, "no memory for a virtual topology (%zu numbers)", count);
        return NULL;
    }
    atomic_init(&topo->refs, 1);
    topo->kind = kind;
    return topo;
}

weft_topo *weft_topo_new_cart(int ndims)
{
    weft_topo *topo = topo_new(MPI_CART, 4 * (size_t)ndims);
    if (topo) {
        topo->cart.ndims = ndims;
        topo->cart.dims = topo->values;
        topo->cart.periods = topo->values + ndims;
        topo->cart.neighbors = topo->values + 2 * ndims;
    }
    return topo;
}

weft_topo *weft_topo_new_graph(int nnodes, int nedges)
{
    weft_topo *topo = topo_new(MPI_GRAPH, (size_t)nnodes + (size_t)nedges);
    if (topo) {
        topo->graph.nnodes = nnodes;
        topo->graph.nedges = nedges;
        topo->graph.index = topo->values;
        topo->graph.edges = topo->values + nnodes;
    }
    return topo;
}

weft_topo *weft_topo_new_dist(int indegree, int outdegree)
{
    weft_topo *topo = topo_new(MPI_DIST_GRAPH, 2 * ((size_t)indegree + (size_t)outdegree));
    if (topo) {
        topo->dist.indegree = indegree;
        topo->dist.outdegree = outdegree;
        topo->dist.is_weighted = 0;
        topo->dist.sources = topo->values;
        topo->dist.source_weights = topo->dist.sources + indegree;
        topo->dist.destinations = topo->dist.source_weights + indegree;
        topo->dist.dest_weights = topo->dist.destinations + outdegree;
    }
    return topo;
}

weft_topo *weft_topo_share(weft_topo *topo)
{
    if (topo)
        atomic_fetch_add_explicit(&topo->refs, 1, memory_order_relaxed);
    return topo;
}

void weft_topo_drop(weft_topo *topo)
{
    if (topo && atomic_fetch_sub_explicit(&topo->refs, 1, memory_order_acq_rel) == 1)
        free(topo);
}

static const char *kind_name(int kind)
{
    return kind == MPI_CART ? "a grid (MPI_CART)"
           : kind == MPI_GRAPH ? "a graph (MPI_GRAPH)"
           : kind == MPI_DIST_GRAPH ? "a distributed graph (MPI_DIST_GRAPH)"
                                    : "none";
}

const weft_topo *weft_topo_of(const weft_comm *comm, int kind)
{
    if (comm->topo && comm->topo->kind == kind)
        return comm->topo;
    weft_fail(WEFT_E_TOPOLOGY, "%s must have the virtual topology %s, but it has %s", comm->traits.name[0] ? comm->traits.name : "comm",
              kind_name(kind), kind_name(comm->topo ? comm->topo->kind : MPI_UNDEFINED));
    return NULL;
}

/* MPI 5.0 8.5.5. */
int weft_mpi_topo_test(weft_comm *comm, int *status)
{
    *status = comm->topo ? comm->topo->kind : MPI_UNDEFINED;
    return 0;
}

int weft_topo_neighbors(const weft_comm *comm, weft_neighbors *neighbors)
{
    const weft_topo *topo = comm->topo;
    int begin;
    *neighbors = (weft_neighbors){0};
    switch (topo ? topo->kind : MPI_UNDEFINED) {
    case MPI_CART:
        *neighbors = (weft_neighbors){topo->cart.neighbors, topo->cart.neighbors, 2 * (uint32_t)topo->cart.ndims,
                                      2 * (uint32_t)topo->cart.ndims, true};
        return 0;
    case MPI_GRAPH:
        begin = comm->rank ? topo->graph.index[comm->rank - 1] : 0;
        neighbors->sources = neighbors->destinations = topo->graph.edges + begin;
        neighbors->source_count = neighbors->destination_count = (uint32_t)(topo->graph.index[comm->rank] - begin);
        return 0;
    case MPI_DIST_GRAPH:
        *neighbors = (weft_neighbors){topo->dist.sources, topo->dist.destinations, (uint32_t)topo->dist.indegree,
                                      (uint32_t)topo->dist.outdegree, false};
        return 0;
    default:
        return weft_fail(WEFT_E_TOPOLOGY, "%s has no virtual topology, so no neighbors: create it by MPI_Cart_create, MPI_Graph_create or "
                         "MPI_Dist_graph_create(_adjacent)", comm->traits.name[0] ? comm->traits.name : "comm");
    }
}

uint32_t weft_topo_degree(const weft_comm *comm, bool out)
{
    weft_neighbors neighbors = {0};
    if (comm->topo)
        weft_topo_neighbors(comm, &neighbors);
    return out ? neighbors.destination_count : neighbors.source_count;
}
