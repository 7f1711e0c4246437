/* np: 2 3 : wrong arguments of grids give the right class and a text with argument and value; one wrong member makes all fail */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static int rank, size;

static void dims_create(void)
{
    int dims[3] = {0, 0, 0}, fixed[3] = {0, 3, 0}, negative[2] = {0, -2}, full[2] = {2, 2}, huge[3] = {0, 2000000000, 2000000000};
    BAD(MPI_Dims_create(0, 2, dims), MPI_ERR_ARG, "nnodes is 0");
    BAD(MPI_Dims_create(-4, 2, dims), MPI_ERR_ARG, "nnodes is -4");
    BAD(MPI_Dims_create(4, -1, dims), MPI_ERR_DIMS, "ndims is -1");
    BAD(MPI_Dims_create(4, 0, dims), MPI_ERR_DIMS, "ndims is 0");
    BAD(MPI_Dims_create(4, 2, NULL), MPI_ERR_ARG, "dims is NULL");
    BAD(MPI_Dims_create(7, 3, fixed), MPI_ERR_DIMS, "nnodes is 7", "divide");
    BAD(MPI_Dims_create(4, 2, negative), MPI_ERR_DIMS, "dims[1] is -2");
    BAD(MPI_Dims_create(8, 2, full), MPI_ERR_DIMS, "nnodes is 8", "equal");
    BAD(MPI_Dims_create(8, 3, huge), MPI_ERR_DIMS, "divide");
    CHECK(fixed[0] == 0 && fixed[1] == 3 && fixed[2] == 0);
}

static void create(void)
{
    int dims[2] = {1, 2}, zero[2] = {0, 2}, large[2] = {2, 2}, overflow[3] = {2147483647, 2147483647, 2147483647}, periods[3] = {0}, r;
    int own[2] = {1, rank == 1 ? -1 : 2};
    MPI_Comm comm = MPI_COMM_WORLD;
    BAD(MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &comm), MPI_ERR_DIMS, "ndims is -1");
    CHECK(comm == MPI_COMM_NULL);
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, zero, periods, 0, &comm), MPI_ERR_DIMS, "dims[0] is 0");
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, large, periods, 1, &comm), MPI_ERR_DIMS, "larger than the communicator", "multiply to 4");
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 3, overflow, periods, 0, &comm), MPI_ERR_DIMS, "larger than the communicator");
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, NULL, periods, 0, &comm), MPI_ERR_ARG, "dims is NULL");
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, NULL, 0, &comm), MPI_ERR_ARG, "periods is NULL");
    BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, NULL), MPI_ERR_ARG, "comm_cart is NULL");
    BAD(MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &comm), MPI_ERR_COMM, "comm_old");
    BAD(MPI_Cart_map(MPI_COMM_WORLD, 2, large, periods, &r), MPI_ERR_DIMS, "larger than the communicator");
    BAD(MPI_Cart_map(MPI_COMM_WORLD, 2, NULL, periods, &r), MPI_ERR_ARG, "dims is NULL");
    if (rank == 1) /* only one member's argument is wrong */
        BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, own, periods, 0, &comm), MPI_ERR_DIMS, "dims[1] is -1");
    else
        BAD(MPI_Cart_create(MPI_COMM_WORLD, 2, own, periods, 0, &comm), MPI_ERR_OTHER, "another member");
}

static void queries(void)
{
    int dims[2] = {2, 1}, periods[2] = {0, 1}, coords[2] = {0, 0}, wraps[2], r, s;
    MPI_Comm grid, sub;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
    if (grid == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN));
    BAD(MPI_Cart_get(grid, 1, dims, wraps, coords), MPI_ERR_ARG, "maxdims is 1", "2 dimensions");
    BAD(MPI_Cart_get(grid, 2, dims, NULL, coords), MPI_ERR_ARG, "periods is NULL");
    BAD(MPI_Cart_coords(grid, 0, 0, coords), MPI_ERR_ARG, "maxdims is 0");
    BAD(MPI_Cart_coords(grid, 0, 2, NULL), MPI_ERR_ARG, "coords is NULL");
    BAD(MPI_Cart_coords(grid, 2, 2, coords), MPI_ERR_RANK, "rank is 2", "0..1");
    BAD(MPI_Cart_coords(grid, -1, 2, coords), MPI_ERR_RANK, "rank is -1");
    coords[0] = 2;
    BAD(MPI_Cart_rank(grid, coords, &r), MPI_ERR_ARG, "coords[0] is 2", "0..1");
    coords[0] = -1;
    BAD(MPI_Cart_rank(grid, coords, &r), MPI_ERR_ARG, "coords[0] is -1");
    BAD(MPI_Cart_rank(grid, NULL, &r), MPI_ERR_ARG, "coords is NULL");
    BAD(MPI_Cart_rank(grid, coords, NULL), MPI_ERR_ARG, "rank is NULL");
    BAD(MPI_Cart_shift(grid, 2, 1, &r, &s), MPI_ERR_DIMS, "direction is 2");
    BAD(MPI_Cart_shift(grid, -1, 1, &r, &s), MPI_ERR_DIMS, "direction is -1");
    BAD(MPI_Cart_shift(grid, 0, 1, NULL, &s), MPI_ERR_ARG, "rank_source is NULL");
    BAD(MPI_Cart_sub(grid, NULL, &sub), MPI_ERR_ARG, "remain_dims is NULL");
    BAD(MPI_Cartdim_get(grid, NULL), MPI_ERR_ARG, "ndims is NULL");
    BAD(MPI_Topo_test(grid, NULL), MPI_ERR_ARG, "status is NULL");
    OK(MPI_Comm_free(&grid));
}

static void without_a_grid(void)
{
    int x[2] = {0, 0}, y[2], z[2];
    MPI_Comm sub;
    BAD(MPI_Cart_get(MPI_COMM_WORLD, 2, x, y, z), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD", "MPI_CART", "none");
    BAD(MPI_Cartdim_get(MPI_COMM_WORLD, x), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    BAD(MPI_Cart_coords(MPI_COMM_WORLD, 0, 2, x), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    BAD(MPI_Cart_rank(MPI_COMM_WORLD, x, y), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    BAD(MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, x, y), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    BAD(MPI_Cart_sub(MPI_COMM_WORLD, x, &sub), MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    CHECK(sub == MPI_COMM_NULL);
    BAD(MPI_Topo_test(MPI_COMM_NULL, x), MPI_ERR_COMM, "MPI_Topo_test");
}

/* Virtual topologies are for intracommunicators (8.1). */
static void intercommunicators(void)
{
    int one = 1, zero = 0, r;
    MPI_Comm half, inter, made;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 3, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    for (int reorder = 0; reorder < 2; reorder++) {
        BAD(MPI_Cart_create(inter, 1, &one, &zero, reorder, &made), MPI_ERR_COMM, "intercommunicator");
        CHECK(made == MPI_COMM_NULL);
        BAD(MPI_Graph_create(inter, 1, &zero, NULL, reorder, &made), MPI_ERR_COMM, "intercommunicator");
        BAD(MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &made), MPI_ERR_COMM,
            "intercommunicator");
        BAD(MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &made),
            MPI_ERR_COMM, "intercommunicator");
    }
    BAD(MPI_Cart_map(inter, 1, &one, &zero, &r), MPI_ERR_COMM, "intercommunicator");
    BAD(MPI_Graph_map(inter, 1, &zero, NULL, &r), MPI_ERR_COMM, "intercommunicator");
    BAD(MPI_Cart_sub(inter, &one, &made), MPI_ERR_TOPOLOGY, "MPI_CART");
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Topo_test(inter, &r));
    CHECK(r == MPI_UNDEFINED);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    dims_create();
    create();
    queries();
    without_a_grid();
    intercommunicators();
    OK(MPI_Finalize());
    return 0;
}
