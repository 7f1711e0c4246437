/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cart: queries of grids (MPI 5.0 8.5.5, 8.5.6). Called by the generated entries without a lock: a grid never changes.
 * The entries have checked that no array of a positive length is NULL.
 */
#include <mpi.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/topo.h"

int weft_cart_rank(const weft_topo *topo, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < topo->cart.ndims; i++)
        rank = rank * topo->cart.dims[i] + coords[i];
    return rank;
}

void weft_cart_coords(const weft_topo *topo, int rank, int *coords)
{
    for (int i = topo->cart.ndims - 1; i >= 0; i--) {
        coords[i] = rank % topo->cart.dims[i];
        rank /= topo->cart.dims[i];
    }
}

/* Moves a coordinate of a periodic dimension into 0..size - 1. */
static int wrap(int64_t coord, int size)
{
    int64_t rest = coord % size;
    return (int)(rest < 0 ? rest + size : rest);
}

int weft_mpi_cartdim_get(weft_comm *comm, int *ndims)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_CART);
    if (!topo)
        return WEFT_E_TOPOLOGY;
    *ndims = topo->cart.ndims;
    return 0;
}

static int check_maxdims(const weft_topo *topo, int maxdims)
{
    return maxdims >= topo->cart.ndims || topo->cart.ndims == 0
               ? 0
               : weft_fail(WEFT_E_ARG, "maxdims is %d: the arrays must have room for the %d dimensions of the grid", maxdims,
                           topo->cart.ndims);
}

int weft_mpi_cart_get(weft_comm *comm, int maxdims, int *dims, int *periods, int *coords)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_CART);
    int rc = topo ? check_maxdims(topo, maxdims) : WEFT_E_TOPOLOGY;
    if (rc)
        return rc;
    for (int i = 0; i < topo->cart.ndims; i++) {
        dims[i] = topo->cart.dims[i];
        periods[i] = topo->cart.periods[i];
    }
    weft_cart_coords(topo, comm->rank, coords);
    return 0;
}

int weft_mpi_cart_rank(weft_comm *comm, const int *coords, int *rank)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_CART);
    int64_t at = 0;
    if (!topo)
        return WEFT_E_TOPOLOGY;
    if (!coords && topo->cart.ndims)
        return weft_fail(WEFT_E_ARG, "coords is NULL, for a grid of %d dimensions", topo->cart.ndims);
    for (int i = 0; i < topo->cart.ndims; i++) {
        int size = topo->cart.dims[i];
        if (!topo->cart.periods[i] && (coords[i] < 0 || coords[i] >= size))
            return weft_fail(WEFT_E_ARG, "coords[%d] is %d: it must be in 0..%d, as dimension %d is not periodic", i, coords[i],
                             size - 1, i);
        at = at * size + wrap(coords[i], size);
    }
    *rank = (int)at;
    return 0;
}

int weft_mpi_cart_coords(weft_comm *comm, int rank, int maxdims, int *coords)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_CART);
    int rc = topo ? check_maxdims(topo, maxdims) : WEFT_E_TOPOLOGY;
    if (rc)
        return rc;
    if (rank < 0 || rank >= comm->size)
        return weft_fail(WEFT_E_RANK, "rank is %d: it must be in 0..%d", rank, comm->size - 1);
    weft_cart_coords(topo, rank, coords);
    return 0;
}

/* Rank of the process `disp` steps from this member (coordinate `coord`, distance of neighbouring ranks `stride`) in a dimension. */
static int shifted(const weft_topo *topo, int rank, int direction, int64_t coord, int stride, int64_t disp)
{
    int size = topo->cart.dims[direction];
    int64_t to = coord + disp;
    if (topo->cart.periods[direction])
        to = wrap(to, size);
    return to < 0 || to >= size ? MPI_PROC_NULL : rank + (int)((to - coord) * stride);
}

void weft_cart_set_neighbors(weft_topo *topo, int rank)
{
    int stride = 1;
    for (int i = topo->cart.ndims - 1; i >= 0; i--) {
        int coord = rank / stride % topo->cart.dims[i];
        topo->cart.neighbors[2 * i] = shifted(topo, rank, i, coord, stride, -1);
        topo->cart.neighbors[2 * i + 1] = shifted(topo, rank, i, coord, stride, 1);
        stride *= topo->cart.dims[i];
    }
}

/* A displacement of 0 gives the caller's own rank twice: the standard's example of a skewed array uses it. */
int weft_mpi_cart_shift(weft_comm *comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_CART);
    int stride = 1, coord;
    if (!topo)
        return WEFT_E_TOPOLOGY;
    if (direction < 0 || direction >= topo->cart.ndims)
        return weft_fail(WEFT_E_DIMS, "direction is %d, in a grid of %d dimensions: they count from 0", direction, topo->cart.ndims);
    for (int i = topo->cart.ndims - 1; i > direction; i--)
        stride *= topo->cart.dims[i];
    coord = comm->rank / stride % topo->cart.dims[direction];
    *rank_source = shifted(topo, comm->rank, direction, coord, stride, -(int64_t)disp);
    *rank_dest = shifted(topo, comm->rank, direction, coord, stride, disp);
    return 0;
}
