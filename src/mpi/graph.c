/* SPDX-License-Identifier: BSD-3-Clause
 *
 * graph: graphs that each member stores completely (MPI 5.0 8.5.3, 8.5.5, 8.5.8). Called by the generated entries: creation with the
 * worker's lock, queries without. Distributed graphs: dist_graph.c.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/topo.h"
#include "mpi/topo_create.h"

/* The entries have checked that index is not NULL if nnodes is positive. */
static int check_graph(const weft_comm *comm, int nnodes, const int *index, const int *edges)
{
    if (nnodes < 0)
        return weft_fail(WEFT_E_ARG, "nnodes is %d: it must not be negative", nnodes);
    if (nnodes > comm->size)
        return weft_fail(WEFT_E_ARG, "nnodes is %d: the graph is larger than the communicator, which has %d processes", nnodes, comm->size);
    for (int i = 0; i < nnodes; i++)
        if (index[i] < (i ? index[i - 1] : 0))
            return weft_fail(WEFT_E_ARG, "index[%d] is %d, less than %d: it counts the neighbors of nodes 0 to %d together", i, index[i],
                             i ? index[i - 1] : 0, i);
    if (nnodes && index[nnodes - 1] && !edges)
        return weft_fail(WEFT_E_ARG, "edges is NULL, but index has %d edges", index[nnodes - 1]);
    for (int i = 0; nnodes && i < index[nnodes - 1]; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return weft_fail(WEFT_E_RANK, "edges[%d] is %d: it must be in 0..%d, as nnodes is %d", i, edges[i], nnodes - 1, nnodes);
    return 0;
}

static weft_topo *new_graph(int nnodes, const int *index, const int *edges)
{
    int nedges = nnodes ? index[nnodes - 1] : 0;
    weft_topo *topo = weft_topo_new_graph(nnodes, nedges);
    if (topo && nnodes)
        memcpy(topo->graph.index, index, (size_t)nnodes * sizeof *index);
    if (topo && nedges)
        memcpy(topo->graph.edges, edges, (size_t)nedges * sizeof *edges);
    return topo;
}

int weft_mpi_graph_create(weft_comm *comm_old, int nnodes, const int *indx, const int *edges, int reorder, MPI_Comm *comm_graph, int failed)
{
    weft_topo *topo = NULL;
    uint32_t *order = NULL;
    int rc = weft_topo_check_comm(comm_old);
    *comm_graph = MPI_COMM_NULL;
    if (rc)
        return rc; /* on all members */
    rc = failed ? failed : check_graph(comm_old, nnodes, indx, edges);
    if (!rc && !(topo = new_graph(nnodes, indx, edges)))
        rc = WEFT_E_NOMEM;
    if (reorder && (rc = weft_topo_agree(comm_old, rc))) {
        weft_topo_drop(topo);
        return rc;
    }
    if (reorder)
        rc = weft_topo_order(comm_old, topo, &order);
    rc = weft_topo_create(comm_old, rc ? 0 : (uint32_t)nnodes, order, topo, rc, comm_graph);
    free(order);
    return rc;
}

int weft_mpi_graph_map(weft_comm *comm, int nnodes, const int *indx, const int *edges, int *newrank)
{
    weft_topo *topo = NULL;
    int rc = weft_topo_check_comm(comm);
    if (!rc)
        rc = check_graph(comm, nnodes, indx, edges);
    if (!rc && !(topo = new_graph(nnodes, indx, edges)))
        rc = WEFT_E_NOMEM;
    if (!rc)
        rc = weft_topo_map(comm, topo, newrank);
    weft_topo_drop(topo);
    return rc;
}

int weft_mpi_graphdims_get(weft_comm *comm, int *nnodes, int *nedges)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_GRAPH);
    if (!topo)
        return WEFT_E_TOPOLOGY;
    *nnodes = topo->graph.nnodes;
    *nedges = topo->graph.nedges;
    return 0;
}

int weft_mpi_graph_get(weft_comm *comm, int maxindex, int maxedges, int *indx, int *edges)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_GRAPH);
    if (!topo)
        return WEFT_E_TOPOLOGY;
    if (maxindex < topo->graph.nnodes)
        return weft_fail(WEFT_E_ARG, "maxindex is %d: the graph has %d nodes", maxindex, topo->graph.nnodes);
    if (maxedges < topo->graph.nedges)
        return weft_fail(WEFT_E_ARG, "maxedges is %d: the graph has %d edges", maxedges, topo->graph.nedges);
    memcpy(indx, topo->graph.index, (size_t)topo->graph.nnodes * sizeof *indx);
    if (topo->graph.nedges)
        memcpy(edges, topo->graph.edges, (size_t)topo->graph.nedges * sizeof *edges);
    return 0;
}

/* The neighbors of a node: *first in edges, their number in *count. */
static int find_neighbors(const weft_comm *comm, int rank, const int **first, int *count)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_GRAPH);
    int begin;
    if (!topo)
        return WEFT_E_TOPOLOGY;
    if (rank < 0 || rank >= topo->graph.nnodes)
        return weft_fail(WEFT_E_RANK, "rank is %d: it must be in 0..%d", rank, topo->graph.nnodes - 1);
    begin = rank ? topo->graph.index[rank - 1] : 0;
    *first = topo->graph.edges + begin;
    *count = topo->graph.index[rank] - begin;
    return 0;
}

int weft_mpi_graph_neighbors_count(weft_comm *comm, int rank, int *nneighbors)
{
    const int *first = NULL;
    return find_neighbors(comm, rank, &first, nneighbors);
}

int weft_mpi_graph_neighbors(weft_comm *comm, int rank, int maxneighbors, int *neighbors)
{
    const int *first = NULL;
    int count = 0, rc = find_neighbors(comm, rank, &first, &count);
    if (rc)
        return rc;
    if (maxneighbors < count)
        return weft_fail(WEFT_E_ARG, "maxneighbors is %d: node %d has %d neighbors", maxneighbors, rank, count);
    if (count)
        memcpy(neighbors, first, (size_t)count * sizeof *neighbors);
    return 0;
}
