/* np: 1 2 3 4 6 : relaxation on a torus of processes (MPI 5.0, 8.9): halos by MPI_Neighbor_alltoall of packed edges, by
 * MPI_Neighbor_alltoallw of types in place, by its persistent form, and by messages of which each receive is paired with the send of the
 * same direction */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { N = 8, STEPS = 25, WIDTH = N + 2, AT_MOST = 6 };
typedef double field[WIDTH][WIDTH];
static int dims[2], coords[2], around[4];
static MPI_Comm grid;
static MPI_Datatype row, column;

static double start(int x, int y) { return (double)((x * 37 + y * 101) % 97); }

static void relax(field u)
{
    static field next;
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++)
            next[i][j] = (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) / 4;
    for (int i = 1; i <= N; i++)
        memcpy(&u[i][1], &next[i][1], N * sizeof u[i][1]);
}

/* -- the ways; edges in the order of MPI_Cart_shift: upper, lower, left, right -- */

static void by_blocks(field u)
{
    double out[4][N], in[4][N];
    for (int k = 0; k < N; k++) {
        out[0][k] = u[1][k + 1];
        out[1][k] = u[N][k + 1];
        out[2][k] = u[k + 1][1];
        out[3][k] = u[k + 1][N];
    }
    OK(MPI_Neighbor_alltoall(out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, grid));
    for (int k = 0; k < N; k++) {
        u[0][k + 1] = in[0][k];
        u[N + 1][k + 1] = in[1][k];
        u[k + 1][0] = in[2][k];
        u[k + 1][N + 1] = in[3][k];
    }
}

static const int places[2][4][2] = {{{1, 1}, {N, 1}, {1, 1}, {1, N}}, {{0, 1}, {N + 1, 1}, {1, 0}, {1, N + 1}}}; /* sent, received */

static void describe(int counts[4], MPI_Datatype types[4], MPI_Aint at[2][4])
{
    for (int k = 0; k < 4; k++) {
        counts[k] = 1;
        types[k] = k < 2 ? row : column;
        for (int way = 0; way < 2; way++)
            at[way][k] = (MPI_Aint)sizeof(double) * (places[way][k][0] * WIDTH + places[way][k][1]);
    }
}

static void by_types(field u)
{
    int counts[4];
    MPI_Datatype types[4];
    MPI_Aint at[2][4];
    describe(counts, types, at);
    OK(MPI_Neighbor_alltoallw(u, counts, at[0], types, u, counts, at[1], types, grid));
}

static MPI_Request persistent = MPI_REQUEST_NULL;

static void by_persistent(field u)
{
    static int counts[4];
    static MPI_Datatype types[4];
    static MPI_Aint at[2][4];
    if (persistent == MPI_REQUEST_NULL) {
        describe(counts, types, at);
        OK(MPI_Neighbor_alltoallw_init(u, counts, at[0], types, u, counts, at[1], types, grid, MPI_INFO_NULL, &persistent));
    }
    OK(MPI_Start(&persistent));
    OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
}

/* What comes from one side was sent towards the other: with one or two processes in a dimension only this order pairs them rightly. */
static void by_messages(field u)
{
    MPI_Request requests[8];
    for (int k = 0; k < 4; k++) {
        int back = k ^ 1;
        MPI_Datatype type = k < 2 ? row : column;
        OK(MPI_Irecv(&u[places[1][k][0]][places[1][k][1]], 1, type, around[k], 3, grid, &requests[2 * k]));
        OK(MPI_Isend(&u[places[0][back][0]][places[0][back][1]], 1, type, around[back], 3, grid, &requests[2 * k + 1]));
    }
    OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
}

/* -- the whole torus on each process -- */

static void check_alone(field u, const char *way)
{
    static double all[AT_MOST * N][AT_MOST * N], next[AT_MOST * N][AT_MOST * N];
    int height = dims[0] * N, width = dims[1] * N;
    for (int x = 0; x < height; x++)
        for (int y = 0; y < width; y++)
            all[x][y] = start(x, y);
    for (int step = 0; step < STEPS; step++) {
        for (int x = 0; x < height; x++)
            for (int y = 0; y < width; y++)
                next[x][y] = (all[(x + height - 1) % height][y] + all[(x + 1) % height][y] + all[x][(y + width - 1) % width] +
                              all[x][(y + 1) % width]) / 4;
        memcpy(all, next, sizeof all);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            CHECK(u[i + 1][j + 1] == all[coords[0] * N + i][coords[1] * N + j], "%s: %d %d", way, i, j);
}

static void solve(void (*exchange)(field), const char *way)
{
    static field u;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i + 1][j + 1] = start(coords[0] * N + i, coords[1] * N + j);
    for (int step = 0; step < STEPS; step++) {
        exchange(u);
        relax(u);
    }
    check_alone(u, way);
}

int main(int argc, char **argv)
{
    int rank, size, periods[2] = {1, 1};
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    OK(MPI_Cart_get(grid, 2, dims, periods, coords));
    for (int d = 0; d < 2; d++)
        OK(MPI_Cart_shift(grid, d, 1, &around[2 * d], &around[2 * d + 1]));
    OK(MPI_Type_contiguous(N, MPI_DOUBLE, &row));
    OK(MPI_Type_vector(N, 1, WIDTH, MPI_DOUBLE, &column));
    OK(MPI_Type_commit(&row));
    OK(MPI_Type_commit(&column));
    solve(by_blocks, "blocks");
    solve(by_types, "types");
    solve(by_persistent, "persistent");
    solve(by_messages, "messages");
    OK(MPI_Request_free(&persistent));
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&column));
    OK(MPI_Comm_free(&grid));
    OK(MPI_Finalize());
    return 0;
}
