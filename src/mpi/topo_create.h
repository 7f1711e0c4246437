/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_create: creates communicators with a virtual topology. Called by cart_create.c, graph.c and dist_graph.c. Collective over the
 * parent; requires worker->lock.
 */
#ifndef WEFT_MPI_TOPO_CREATE_H
#define WEFT_MPI_TOPO_CREATE_H

#include <mpi.h>

#include "mpi/comm.h"
#include "mpi/topo.h"

/* WEFT_E_COMM for an intercommunicator: it cannot have a virtual topology (MPI 5.0 8.1). */
int weft_topo_check_comm(const weft_comm *parent);
/* The first step of a call that exchanges something before it creates: rc if it is not 0, else an error if another member has one. */
int weft_topo_agree(weft_comm *parent, int rc);
/* Creates a communicator of `count` members of the parent, each with `topo`. order[i] is the parent's rank of the member with rank i; NULL:
 * i. Takes ownership of topo, also on error. rc: an earlier error of this member; then all members fail.
 * *newcomm: MPI_COMM_NULL for non-members and on error. */
int weft_topo_create(weft_comm *parent, uint32_t count, const uint32_t *order, weft_topo *topo, int rc, MPI_Comm *newcomm);
/* The same with the arguments of weft_comm_create: disjoint sets of members may make one communicator each. */
int weft_topo_create_from(weft_comm *parent, uint32_t count, uint32_t rank, const uint32_t *ranks, weft_topo *topo, int rc,
                          MPI_Comm *newcomm);

/* topo_order.c: the placement of a communicator's members, for reorder. Collective. *order becomes an array [count], to be freed: the
 * parent's rank of the process for each rank of the new communicator; NULL: the identity, or an error. Equal on all members. */
/* A grid or graph of the first members. Members may fail apart: weft_topo_create then makes all fail. */
int weft_topo_order(weft_comm *parent, const weft_topo *topo, uint32_t **order);
/* A graph of all members whose edges are spread: this member has edges[count], triples of source, destination, weight; count_max: the
 * largest count. A graph of more than WEFT_TOPO_EDGES_MAX edges keeps its order. */
#define WEFT_TOPO_EDGES_MAX (1u << 22)
int weft_topo_order_edges(weft_comm *parent, const int *edges, uint32_t count, uint32_t count_max, uint32_t **order);
/* The same as weft_topo_order, but local: nodes count, sockets are not known. Sets *newrank, to MPI_UNDEFINED for members left out. */
int weft_topo_map(const weft_comm *parent, const weft_topo *topo, int *newrank);

#endif
