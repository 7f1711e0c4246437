/* np: 1 2 3 4 6 8 : grids: creation, coordinates, shifts, subgrids, more processes than positions, no dimensions, duplicates, dims */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

static void dims_create(void)
{
    static const struct {
        int nodes, count, before[4], after[4];
    } cases[] = {
        {6, 2, {0, 0}, {3, 2}}, /* the standard's examples */
        {7, 2, {0, 0}, {7, 1}},
        {6, 3, {0, 3, 0}, {2, 3, 1}},
        {1, 3, {0, 0, 0}, {1, 1, 1}},
        {24, 3, {0, 0, 0}, {4, 3, 2}},
        {64, 3, {0, 0, 0}, {4, 4, 4}},
        {12, 3, {3, 2, 2}, {3, 2, 2}},
        {36, 4, {0, 2, 0, 3}, {3, 2, 2, 3}},
        {2147483647, 2, {0, 0}, {2147483647, 1}},
        {2147395600, 2, {0, 0}, {46340, 46340}},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        int dims[4];
        memcpy(dims, cases[i].before, sizeof dims);
        OK(MPI_Dims_create(cases[i].nodes, cases[i].count, dims));
        for (int d = 0; d < cases[i].count; d++)
            CHECK(dims[d] == cases[i].after[d], "case %u: dims[%d] is %d", i, d, dims[d]);
    }
    OK(MPI_Dims_create(1, 0, NULL));
}

/* Ranks are row-major; MPI_Cart_rank and MPI_Cart_coords are inverse to each other; a periodic coordinate wraps. */
static void coordinates(MPI_Comm grid, int ndims, const int *dims, const int *periods)
{
    int got[4], wraps[4], own[4], coords[4], status, n, result, members = 1, me;
    OK(MPI_Topo_test(grid, &status));
    CHECK(status == MPI_CART);
    OK(MPI_Cartdim_get(grid, &n));
    CHECK(n == ndims);
    OK(MPI_Cart_get(grid, 4, got, wraps, own));
    OK(MPI_Comm_rank(grid, &me));
    for (int d = 0; d < ndims; d++) {
        CHECK(got[d] == dims[d] && wraps[d] == (periods[d] != 0));
        members *= dims[d];
    }
    for (int r = 0; r < members; r++) {
        int expected = r;
        OK(MPI_Cart_coords(grid, r, ndims, coords));
        for (int d = ndims - 1; d >= 0; d--) {
            CHECK(coords[d] == expected % dims[d]);
            expected /= dims[d];
        }
        CHECK(r != me || !memcmp(coords, own, (size_t)ndims * sizeof *own));
        for (int d = 0; d < ndims; d++)
            if (periods[d])
                coords[d] += dims[d] * (d % 2 ? -1 : 1) * (1 + r);
        OK(MPI_Cart_rank(grid, coords, &result));
        CHECK(result == r, "rank %d instead of %d", result, r);
    }
}

/* Each shift leads to the process whose coordinate differs by the displacement, and a message sent along it arrives. */
static void shifts(MPI_Comm grid, int ndims, const int *dims, const int *periods)
{
    int me, coords[4];
    OK(MPI_Comm_rank(grid, &me));
    OK(MPI_Cart_coords(grid, me, 4, coords));
    for (int d = 0; d < ndims; d++)
        for (int disp = -dims[d] - 2; disp <= dims[d] + 2; disp++) {
            int source, dest, value = -1, ends[2];
            OK(MPI_Cart_shift(grid, d, disp, &source, &dest));
            for (int side = 0; side < 2; side++) {
                int to[4];
                memcpy(to, coords, sizeof to);
                to[d] += side ? disp : -disp;
                if (!periods[d] && (to[d] < 0 || to[d] >= dims[d]))
                    ends[side] = MPI_PROC_NULL;
                else
                    OK(MPI_Cart_rank(grid, to, &ends[side]));
            }
            CHECK(source == ends[0] && dest == ends[1], "dimension %d, %d steps: %d and %d instead of %d and %d", d, disp, source, dest,
                  ends[0], ends[1]);
            OK(MPI_Sendrecv(&me, 1, MPI_INT, dest, 3, &value, 1, MPI_INT, source, 3, grid, MPI_STATUS_IGNORE));
            CHECK(value == (source == MPI_PROC_NULL ? -1 : source));
        }
    if (ndims && periods[0]) {
        int source, dest;
        OK(MPI_Cart_shift(grid, 0, 2147483647, &source, &dest));
        OK(MPI_Cart_shift(grid, 0, -2147483647 - 1, &source, &dest));
        CHECK(source >= 0 && dest >= 0);
    }
}

/* Every subset of the dimensions. */
static void subgrids(MPI_Comm grid, int ndims, const int *dims, const int *periods)
{
    int me, coords[4] = {0};
    OK(MPI_Comm_rank(grid, &me));
    OK(MPI_Cart_coords(grid, me, ndims, coords));
    for (int mask = 0; mask < 1 << ndims; mask++) {
        int keep[4], left[4] = {0}, wraps[4] = {0}, at[4] = {0}, kept = 0, members = 1, n, got, r, expected = 0;
        MPI_Comm sub;
        for (int d = 0; d < ndims; d++) {
            keep[d] = mask >> d & 1 ? 5 : 0; /* any value but 0 is true */
            if (keep[d]) {
                left[kept] = dims[d];
                wraps[kept] = periods[d];
                at[kept++] = coords[d];
                members *= dims[d];
                expected = expected * dims[d] + coords[d];
            }
        }
        OK(MPI_Cart_sub(grid, keep, &sub));
        OK(MPI_Comm_size(sub, &n));
        OK(MPI_Comm_rank(sub, &r));
        CHECK(n == members && r == expected, "%d of %d instead of %d of %d", r, n, expected, members);
        coordinates(sub, kept, left, wraps);
        OK(MPI_Cart_rank(sub, at, &got));
        CHECK(got == r);
        OK(MPI_Allreduce(&me, &got, 1, MPI_INT, MPI_MIN, sub));
        OK(MPI_Cart_coords(grid, got, ndims, at));
        for (int d = 0; d < ndims; d++)
            CHECK(at[d] == (keep[d] ? 0 : coords[d]));
        OK(MPI_Comm_free(&sub));
    }
}

static void grid_of(int ndims, const int *dims, const int *periods, int reorder)
{
    int members = 1, relation, n, mapped;
    MPI_Comm grid, dup;
    for (int d = 0; d < ndims; d++)
        members *= dims[d];
    OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &mapped));
    CHECK(mapped == MPI_UNDEFINED || (mapped >= 0 && mapped < members));
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, reorder, &grid));
    if (!reorder)
        CHECK((grid == MPI_COMM_NULL) == (rank >= members));
    if (grid == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_size(grid, &n));
    CHECK(n == members);
    if (!reorder) {
        OK(MPI_Comm_rank(grid, &n));
        CHECK(n == rank);
    }
    coordinates(grid, ndims, dims, periods);
    shifts(grid, ndims, dims, periods);
    subgrids(grid, ndims, dims, periods);
    OK(MPI_Comm_dup(grid, &dup)); /* a duplicate has the grid too, also when the original is gone */
    OK(MPI_Comm_compare(grid, dup, &relation));
    CHECK(relation == MPI_CONGRUENT);
    OK(MPI_Comm_free(&grid));
    coordinates(dup, ndims, dims, periods);
    OK(MPI_Comm_split(dup, 0, 0, &grid)); /* split does not take it along */
    OK(MPI_Topo_test(grid, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&grid));
}

static void no_dimensions(void)
{
    MPI_Comm grid, sub;
    int n = -1, r = -1, dims[1] = {77}, periods[1] = {77}, coords[1] = {77};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &grid));
    CHECK((grid == MPI_COMM_NULL) == (rank != 0));
    if (grid == MPI_COMM_NULL)
        return;
    OK(MPI_Comm_size(grid, &n));
    CHECK(n == 1);
    OK(MPI_Topo_test(grid, &n));
    CHECK(n == MPI_CART);
    OK(MPI_Cartdim_get(grid, &n));
    CHECK(n == 0);
    OK(MPI_Cart_get(grid, 1, dims, periods, coords));
    OK(MPI_Cart_get(grid, 0, NULL, NULL, NULL));
    OK(MPI_Cart_coords(grid, 0, 1, coords));
    CHECK(dims[0] == 77 && periods[0] == 77 && coords[0] == 77);
    OK(MPI_Cart_rank(grid, NULL, &r));
    CHECK(r == 0);
    OK(MPI_Cart_sub(grid, NULL, &sub));
    OK(MPI_Cartdim_get(sub, &n));
    CHECK(n == 0);
    OK(MPI_Comm_free(&sub));
    OK(MPI_Comm_free(&grid));
}

/* The standard's example of a 2 x 3 x 4 grid, on as many processes as there are: subgrids of the first and last dimension. */
static void example_sub(void)
{
    int dims[3] = {1, 0, 1}, periods[3] = {0, 1, 0}, remain[3] = {1, 0, 1}, n, count;
    MPI_Comm grid, sub;
    dims[0] = size % 2 ? 1 : 2;
    OK(MPI_Dims_create(size, 3, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid));
    OK(MPI_Cart_sub(grid, remain, &sub));
    OK(MPI_Comm_size(sub, &n));
    OK(MPI_Cartdim_get(sub, &count));
    CHECK(n == dims[0] * dims[2] && count == 2);
    OK(MPI_Comm_free(&sub));
    OK(MPI_Comm_free(&grid));
}

/* The standard's example: column i of a periodic array of one element per process moves by i steps. */
static void example_skew(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 1}, coords[2], me, source, dest, from[2];
    float a;
    MPI_Comm grid;
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    OK(MPI_Comm_rank(grid, &me));
    OK(MPI_Cart_coords(grid, me, 2, coords));
    a = (float)me;
    OK(MPI_Cart_shift(grid, 0, coords[1], &source, &dest));
    OK(MPI_Sendrecv_replace(&a, 1, MPI_FLOAT, dest, 0, source, 0, grid, MPI_STATUS_IGNORE));
    from[0] = coords[0] - coords[1];
    from[1] = coords[1];
    OK(MPI_Cart_rank(grid, from, &source));
    CHECK(a == (float)source, "got %g instead of %d", (double)a, source);
    OK(MPI_Comm_free(&grid));
}

int main(int argc, char **argv)
{
    int status;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &status));
    CHECK(status == MPI_UNDEFINED);
    dims_create();
    for (int reorder = 0; reorder < 2; reorder++)
        for (int periodic = 0; periodic < 8; periodic++)
            for (int ndims = 1; ndims <= 3; ndims++) {
                int dims[3] = {0}, periods[3] = {periodic & 1, periodic & 2, periodic & 4};
                if (periodic >> ndims)
                    continue;
                OK(MPI_Dims_create(size, ndims, dims));
                grid_of(ndims, dims, periods, reorder);
                OK(MPI_Dims_create(size, ndims, (memset(dims, 0, sizeof dims), dims)));
                if (dims[0] > 1) { /* fewer positions than processes */
                    dims[0]--;
                    grid_of(ndims, dims, periods, reorder);
                }
            }
    no_dimensions();
    example_sub();
    example_skew();
    OK(MPI_Finalize());
    return 0;
}
