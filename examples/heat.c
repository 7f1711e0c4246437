/* SPDX-License-Identifier: BSD-3-Clause
 * heat: a plate with hot edges on a grid of processes (MPI_Cart_create); each exchanges the border of its part with four neighbors.
 * mpicc heat.c -o heat && mpirun -n 4 ./heat [N [STEPS]]        Exit code: 0 the result is right, 1 it is not, 2 bad usage.
 *
 * The temperature x + y is a solution: the plate starts at 0 inside and must come near to it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Part of one process: rows x columns points inside, and a border of one point around. */
typedef struct part {
    int rows, columns, first_row, first_column;
    double *now, *next;
} part;

static double *at(const part *p, double *of, int row, int column) { return &of[row * (p->columns + 2) + column]; }

/* Points first .. first + count - 1 of n are those of position i of many. */
static void share(int n, int many, int i, int *first, int *count)
{
    *first = (int)((long)n * i / many);
    *count = (int)((long)n * (i + 1) / many) - *first;
}

/* A part of n x n points; outside of the plate the border has the edge's temperature for good. */
static part part_new(MPI_Comm grid, int n)
{
    part p;
    int dims[2], periods[2], coords[2];
    MPI_Cart_get(grid, 2, dims, periods, coords);
    share(n, dims[0], coords[0], &p.first_row, &p.rows);
    share(n, dims[1], coords[1], &p.first_column, &p.columns);
    p.now = calloc((size_t)(p.rows + 2) * (size_t)(p.columns + 2), sizeof(double));
    p.next = calloc((size_t)(p.rows + 2) * (size_t)(p.columns + 2), sizeof(double));
    if (!p.now || !p.next) {
        fprintf(stderr, "heat: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int r = 0; r < p.rows + 2; r++)
        for (int c = 0; c < p.columns + 2; c++) {
            int row = p.first_row + r, column = p.first_column + c;
            if (row == 0 || row == n + 1 || column == 0 || column == n + 1)
                *at(&p, p.now, r, c) = *at(&p, p.next, r, c) = row + column;
        }
    return p;
}

/* Rows are contiguous; a column is a vector with one element in each row. At the plate's edge the neighbor is MPI_PROC_NULL, and nothing is
 * sent or changed. */
static void exchange(part *p, MPI_Comm grid, MPI_Datatype column)
{
    int up, down, left, right;
    double *t = p->now;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Sendrecv(at(p, t, 1, 1), p->columns, MPI_DOUBLE, up, 0, at(p, t, p->rows + 1, 1), p->columns, MPI_DOUBLE, down, 0, grid,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(at(p, t, p->rows, 1), p->columns, MPI_DOUBLE, down, 0, at(p, t, 0, 1), p->columns, MPI_DOUBLE, up, 0, grid,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(at(p, t, 1, 1), 1, column, left, 0, at(p, t, 1, p->columns + 1), 1, column, right, 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(at(p, t, 1, p->columns), 1, column, right, 0, at(p, t, 1, 0), 1, column, left, 0, grid, MPI_STATUS_IGNORE);
}

/* Each point becomes the mean of its neighbors. */
static void step(part *p)
{
    double *swap = p->now;
    for (int r = 1; r <= p->rows; r++)
        for (int c = 1; c <= p->columns; c++)
            *at(p, p->next, r, c) =
                (*at(p, p->now, r - 1, c) + *at(p, p->now, r + 1, c) + *at(p, p->now, r, c - 1) + *at(p, p->now, r, c + 1)) / 4;
    p->now = p->next;
    p->next = swap;
}

static double error_of(const part *p, MPI_Comm grid)
{
    double most_here = 0, most;
    for (int r = 1; r <= p->rows; r++)
        for (int c = 1; c <= p->columns; c++) {
            double off = *at(p, p->now, r, c) - (p->first_row + r + p->first_column + c);
            most_here = off * off > most_here ? off * off : most_here;
        }
    MPI_Allreduce(&most_here, &most, 1, MPI_DOUBLE, MPI_MAX, grid);
    return most;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 40, steps = argc > 2 ? atoi(argv[2]) : 8000;
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm grid;
    MPI_Datatype column;
    part p;
    double error;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid); /* 1: ranks may be reordered so that neighbors are near */
    MPI_Comm_rank(grid, &rank);
    if (n < dims[0] || n > 10000 || steps < 0) {
        if (!rank)
            fprintf(stderr, "usage: heat [N [STEPS]]: N from %d to 10000 points a side\n", dims[0]);
        MPI_Finalize();
        return 2;
    }
    p = part_new(grid, n);
    MPI_Type_vector(p.rows, 1, p.columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < steps; i++) {
        exchange(&p, grid, column);
        step(&p);
    }
    error = error_of(&p, grid);
    if (!rank)
        printf("heat: %d x %d points on %d x %d processes, %d steps, square of the largest error %.1e%s\n", n, n, dims[0], dims[1], steps,
               error, error < 1e-6 ? "" : ", NOT REACHED");
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    free(p.now);
    free(p.next);
    MPI_Finalize();
    return error < 1e-6 ? 0 : 1;
}
