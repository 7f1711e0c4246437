/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cart_create: makes grids (MPI 5.0 8.5.1), takes them apart (8.5.7) and computes a placement (8.5.8). Called by the generated entries.
 * Invariant: a member with a wrong argument takes part in the creation all the same, so that all members fail and none hangs.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/topo.h"
#include "mpi/topo_create.h"

/* Checks the shape of a grid for comm; *count: its processes. */
static int check_grid(const weft_comm *comm, int ndims, const int *dims, uint32_t *count)
{
    int64_t product = 1;
    if (ndims < 0)
        return weft_fail(WEFT_E_DIMS, "ndims is %d: it must not be negative", ndims);
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 1)
            return weft_fail(WEFT_E_DIMS, "dims[%d] is %d: it must be positive (MPI_Dims_create sets zeros)", i, dims[i]);
        product *= dims[i];
        if (product > comm->size)
            return weft_fail(WEFT_E_DIMS, "the grid is larger than the communicator: dims[0] to dims[%d] multiply to %lld%s, comm has %d"
                             " processes", i, (long long)product, i + 1 < ndims ? " already" : "", comm->size);
    }
    *count = (uint32_t)product;
    return 0;
}

static weft_topo *new_grid(int ndims, const int *dims, const int *periods)
{
    weft_topo *topo = weft_topo_new_cart(ndims);
    for (int i = 0; i < ndims && topo; i++) {
        topo->cart.dims[i] = dims[i];
        topo->cart.periods[i] = periods[i] != 0;
    }
    return topo;
}

int weft_mpi_cart_create(weft_comm *comm_old, int ndims, const int *dims, const int *periods, int reorder, MPI_Comm *comm_cart, int failed)
{
    uint32_t count = 0, *order = NULL;
    weft_topo *topo = NULL;
    int rc = weft_topo_check_comm(comm_old);
    *comm_cart = MPI_COMM_NULL;
    if (rc)
        return rc; /* on all members */
    rc = failed ? failed : check_grid(comm_old, ndims, dims, &count);
    if (!rc && !(topo = new_grid(ndims, dims, periods)))
        rc = WEFT_E_NOMEM;
    if (reorder && (rc = weft_topo_agree(comm_old, rc))) {
        weft_topo_drop(topo);
        return rc;
    }
    if (reorder)
        rc = weft_topo_order(comm_old, topo, &order);
    rc = weft_topo_create(comm_old, rc ? 0 : count, order, topo, rc, comm_cart);
    free(order);
    return rc;
}

int weft_mpi_cart_map(weft_comm *comm, int ndims, const int *dims, const int *periods, int *newrank)
{
    uint32_t count;
    weft_topo *topo = NULL;
    int rc = weft_topo_check_comm(comm);
    if (!rc)
        rc = check_grid(comm, ndims, dims, &count);
    if (!rc && !(topo = new_grid(ndims, dims, periods)))
        rc = WEFT_E_NOMEM;
    if (!rc)
        rc = weft_topo_map(comm, topo, newrank);
    weft_topo_drop(topo);
    return rc;
}

/* The subgrid of this member: its shape, and ranks[] in comm of its members. Returns this member's rank in it. */
static uint32_t find_subgrid(const weft_topo *topo, int rank, const int *remain_dims, weft_topo *sub, uint32_t count, uint32_t *ranks)
{
    uint32_t local_rank = 0;
    for (uint32_t i = 0; i < count; i++) { /* coordinates of i in the subgrid and of this member in the other dimensions */
        int64_t at = 0, stride = 1;
        uint32_t rest = i;
        int own = rank;
        for (int d = topo->cart.ndims - 1; d >= 0; d--) {
            int size = topo->cart.dims[d];
            at += stride * (remain_dims[d] ? (int)(rest % (uint32_t)size) : own % size);
            rest = remain_dims[d] ? rest / (uint32_t)size : rest;
            own /= size;
            stride *= size;
        }
        ranks[i] = (uint32_t)at;
        if (at == rank)
            local_rank = i;
    }
    for (int d = 0, k = 0; d < topo->cart.ndims; d++)
        if (remain_dims[d]) {
            sub->cart.dims[k] = topo->cart.dims[d];
            sub->cart.periods[k++] = topo->cart.periods[d];
        }
    return local_rank;
}

int weft_mpi_cart_sub(weft_comm *comm, const int *remain_dims, MPI_Comm *newcomm, int failed)
{
    const weft_topo *topo = failed ? NULL : weft_topo_of(comm, MPI_CART);
    weft_topo *sub = NULL;
    uint32_t count = 1, rank = 0, *ranks = NULL;
    int kept = 0, rc = failed ? failed : topo ? 0 : WEFT_E_TOPOLOGY;
    if (!rc && !remain_dims && topo->cart.ndims)
        rc = weft_fail(WEFT_E_ARG, "remain_dims is NULL, for a grid of %d dimensions", topo->cart.ndims);
    for (int d = 0; !rc && d < topo->cart.ndims; d++)
        if (remain_dims[d]) {
            count *= (uint32_t)topo->cart.dims[d];
            kept++;
        }
    if (!rc) {
        sub = weft_topo_new_cart(kept);
        ranks = malloc(count * sizeof *ranks);
        if (!(sub && ranks))
            rc = weft_fail(WEFT_E_NOMEM, "no memory for the %u ranks of a subgrid", count);
    }
    if (!rc)
        rank = find_subgrid(topo, comm->rank, remain_dims, sub, count, ranks);
    rc = weft_topo_create_from(comm, rc ? 0 : count, rank, ranks, sub, rc, newcomm);
    free(ranks);
    return rc;
}
