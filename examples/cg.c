/* SPDX-License-Identifier: BSD-3-Clause
 * cg: solves A x = b by conjugate gradients with Jacobi's preconditioner, the rows of A spread over the ranks. A is a Matrix
 * Market file (symmetric positive definite), or the 2-D Poisson problem; b = A * 1, so the answer is known: every x is 1.
 *     mpicc cg.c cg_matrix.c -lm -o cg && mpirun -n 4 ./cg data/bcsstk16.mtx.gz
 * Exit code on every rank alike: 0 solved, 1 not solved or a bad file, 2 bad usage.
 */
#include "cg_matrix.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    TAG_START = 1,
    TAG_COLUMN,
    TAG_VALUE,
    TAG_WANTED,
    TAG_HALO,
    PIECE = 1 << 24 /* elements of one message while the matrix is distributed: counts are int */
};

typedef struct options
{
    const char *file;
    long grid;
    double tolerance;
    long most_iterations;
    int even;
} options;

/* Each rank's rows. Columns are renumbered: 0..rows-1 are its own, followed by those received from others (the halo). */
typedef struct part
{
    int rank, ranks;
    int *first;    /* ranks + 1: first row of each rank */
    int rows;
    matrix own;
    int halo;      /* values received from others */
    int *halo_from; /* ranks + 1: where each rank's values begin, behind the own ones */
    int *send_from; /* ranks + 1: where each rank's list begins in send_row */
    int *send_row;  /* own rows that others need */
    double *send_value;
    MPI_Request *requests;
} part;

static void *take(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    if (!p) {
        fprintf(stderr, "cg: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* --- distribution of the rows ---------------------------------------------------------------------------------------- */

/* Computes the first rows: equal numbers of entries for each rank, or of rows. */
static void divide(part *p, const matrix *whole, long rows, int even)
{
    long row = 0;

    for (int r = 0; r <= p->ranks; r++) {
        if (even || !whole) {
            row = rows * r / p->ranks;
        } else {
            long goal = (long)((double)whole->start[rows] * r / p->ranks);
            while (row < rows && whole->start[row] < goal) {
                row++;
            }
        }
        p->first[r] = (int)row;
    }
    p->first[p->ranks] = (int)rows;
}

static void send_values(const void *from, size_t size, long count, MPI_Datatype type, int to, int tag)
{
    for (long at = 0; at < count; at += PIECE) {
        MPI_Send((const char *)from + (size_t)at * size, (int)(count - at < PIECE ? count - at : PIECE), type, to, tag,
                 MPI_COMM_WORLD);
    }
}

static void receive_values(void *to, size_t size, long count, MPI_Datatype type, int tag)
{
    for (long at = 0; at < count; at += PIECE) {
        MPI_Recv((char *)to + (size_t)at * size, (int)(count - at < PIECE ? count - at : PIECE), type, 0, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
}

/* Rank 0 sends each rank its rows, and copies its own. */
static void spread(part *p, const matrix *whole)
{
    long entries;

    p->rows = p->first[p->rank + 1] - p->first[p->rank];
    p->own.rows = p->rows;
    p->own.start = take((size_t)p->rows + 1, sizeof(long));
    for (int r = 1; r < p->ranks && !p->rank; r++) {
        const long *start = whole->start + p->first[r];
        long n = p->first[r + 1] - p->first[r];
        send_values(start, sizeof(long), n + 1, MPI_LONG, r, TAG_START);
        send_values(whole->column + start[0], sizeof(int), start[n] - start[0], MPI_INT, r, TAG_COLUMN);
        send_values(whole->value + start[0], sizeof(double), start[n] - start[0], MPI_DOUBLE, r, TAG_VALUE);
    }
    if (p->rank) {
        receive_values(p->own.start, sizeof(long), p->rows + 1, MPI_LONG, TAG_START);
    } else {
        memcpy(p->own.start, whole->start, ((size_t)p->rows + 1) * sizeof(long));
    }
    for (int i = p->rows; i >= 0; i--) {
        p->own.start[i] -= p->own.start[0];
    }
    entries = p->own.start[p->rows];
    p->own.column = take((size_t)entries, sizeof(int));
    p->own.value = take((size_t)entries, sizeof(double));
    if (p->rank) {
        receive_values(p->own.column, sizeof(int), entries, MPI_INT, TAG_COLUMN);
        receive_values(p->own.value, sizeof(double), entries, MPI_DOUBLE, TAG_VALUE);
    } else {
        memcpy(p->own.column, whole->column, (size_t)entries * sizeof(int));
        memcpy(p->own.value, whole->value, (size_t)entries * sizeof(double));
    }
}

/* The rows of the five-point Laplacian on an n by n grid: each rank makes its own. */
static void poisson(part *p, int n)
{
    int begin = p->first[p->rank];
    long at = 0;

    p->rows = p->first[p->rank + 1] - begin;
    p->own.rows = p->rows;
    p->own.start = take((size_t)p->rows + 1, sizeof(long));
    p->own.column = take(5 * (size_t)p->rows, sizeof(int));
    p->own.value = take(5 * (size_t)p->rows, sizeof(double));
    for (int i = 0; i < p->rows; i++) {
        int row = begin + i, x = row % n, y = row / n;
        const int there[5] = {y > 0, x > 0, 1, x < n - 1, y < n - 1}, step[5] = {-n, -1, 0, 1, n};
        for (int k = 0; k < 5; k++) {
            if (there[k]) {
                p->own.column[at] = row + step[k];
                p->own.value[at++] = k == 2 ? 4 : -1;
            }
        }
        p->own.start[i + 1] = at;
    }
}

/* --- the halo -------------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* Lists the columns of own rows that other ranks own, each once, ascending: so they are grouped by owner. */
static int *foreign_columns(part *p)
{
    int begin = p->first[p->rank], end = p->first[p->rank + 1], n = 0;
    long entries = p->own.start[p->rows];
    int *list;

    for (long i = 0; i < entries; i++) {
        n += p->own.column[i] < begin || p->own.column[i] >= end;
    }
    list = take((size_t)n, sizeof *list);
    n = 0;
    for (long i = 0; i < entries; i++) {
        if (p->own.column[i] < begin || p->own.column[i] >= end) {
            list[n++] = p->own.column[i];
        }
    }
    qsort(list, (size_t)n, sizeof *list, ascending);
    for (int i = 0; i < n; i++) {
        if (!p->halo || list[i] != list[p->halo - 1]) {
            list[p->halo++] = list[i];
        }
    }
    return list;
}

static void renumber(part *p, const int *list)
{
    int begin = p->first[p->rank], end = p->first[p->rank + 1];

    for (long i = 0; i < p->own.start[p->rows]; i++) {
        int *c = &p->own.column[i];
        if (*c >= begin && *c < end) {
            *c -= begin;
        } else {
            const int *found = bsearch(c, list, (size_t)p->halo, sizeof *list, ascending);
            *c = p->rows + (int)(found - list);
        }
    }
}

/* Finds once which rank needs which values, so that each rank knows what to send. */
static void exchange_counts(part *p)
{
    int *list = foreign_columns(p), *wanted = take((size_t)p->ranks, sizeof(int)), *asked = take((size_t)p->ranks, sizeof(int));
    int n = 0;

    p->halo_from = take((size_t)p->ranks + 1, sizeof(int));
    p->send_from = take((size_t)p->ranks + 1, sizeof(int));
    p->requests = take(2 * (size_t)p->ranks, sizeof *p->requests);
    for (int r = 0, at = 0; r < p->ranks; r++) {
        p->halo_from[r] = at;
        while (at < p->halo && list[at] < p->first[r + 1]) {
            at++;
        }
        wanted[r] = at - p->halo_from[r];
        p->halo_from[r + 1] = at;
    }
    MPI_Alltoall(wanted, 1, MPI_INT, asked, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < p->ranks; r++) {
        p->send_from[r + 1] = p->send_from[r] + asked[r];
    }
    p->send_row = take((size_t)p->send_from[p->ranks], sizeof(int));
    p->send_value = take((size_t)p->send_from[p->ranks], sizeof(double));
    for (int r = 0; r < p->ranks; r++) {
        if (asked[r]) {
            MPI_Irecv(p->send_row + p->send_from[r], asked[r], MPI_INT, r, TAG_WANTED, MPI_COMM_WORLD, &p->requests[n++]);
        }
        if (wanted[r]) {
            MPI_Isend(list + p->halo_from[r], wanted[r], MPI_INT, r, TAG_WANTED, MPI_COMM_WORLD, &p->requests[n++]);
        }
    }
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < p->send_from[p->ranks]; i++) {
        p->send_row[i] -= p->first[p->rank];
    }
    renumber(p, list);
    free(list);
    free(wanted);
    free(asked);
}

/* y = A x; x has space for the halo behind its own values. */
static void multiply(part *p, double *x, double *y)
{
    int n = 0;

    for (int r = 0; r < p->ranks; r++) {
        int count = p->halo_from[r + 1] - p->halo_from[r];
        if (count) {
            MPI_Irecv(x + p->rows + p->halo_from[r], count, MPI_DOUBLE, r, TAG_HALO, MPI_COMM_WORLD, &p->requests[n++]);
        }
    }
    for (int r = 0; r < p->ranks; r++) {
        int from = p->send_from[r], count = p->send_from[r + 1] - from;
        for (int i = 0; i < count; i++) {
            p->send_value[from + i] = x[p->send_row[from + i]];
        }
        if (count) {
            MPI_Isend(p->send_value + from, count, MPI_DOUBLE, r, TAG_HALO, MPI_COMM_WORLD, &p->requests[n++]);
        }
    }
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < p->rows; i++) {
        double sum = 0;
        for (long k = p->own.start[i]; k < p->own.start[i + 1]; k++) {
            sum += p->own.value[k] * x[p->own.column[k]];
        }
        y[i] = sum;
    }
}

/* --- conjugate gradients --------------------------------------------------------------------------------------------- */

/* Sums of a*b and of c*d over all ranks, by one Allreduce. */
static void dots(const part *p, const double *a, const double *b, const double *c, const double *d, double out[2])
{
    double local[2] = {0, 0};

    for (int i = 0; i < p->rows; i++) {
        local[0] += a[i] * b[i];
        local[1] += c[i] * d[i];
    }
    MPI_Allreduce(local, out, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void progress(const part *p, long iteration, double residual, int last)
{
    if (!p->rank && (last || iteration % 50 == 0)) {
        printf("iteration %6ld   relative residual %.3e\n", iteration, residual);
        fflush(stdout);
    }
}

/* Solves A x = b from x = 0. Returns the number of iterations, or -1 if the matrix is not positive definite. */
static long solve(part *p, const options *o, const double *b, double *x)
{
    size_t n = (size_t)p->rows;
    double *r = take(n, sizeof *r), *z = take(n, sizeof *z), *q = take(n, sizeof *q), *inverse = take(n, sizeof *inverse);
    double *d = take(n + (size_t)p->halo, sizeof *d), rho[2], old = 0, curve[2], norm;
    long k = 0;

    for (int i = 0; i < p->rows; i++) {
        for (long e = p->own.start[i]; e < p->own.start[i + 1]; e++) {
            inverse[i] += p->own.column[e] == i ? 1 / p->own.value[e] : 0;
        }
        r[i] = b[i];
        z[i] = r[i] * inverse[i];
    }
    dots(p, r, z, r, r, rho);
    norm = sqrt(rho[1]);
    progress(p, 0, 1, 0);
    while (sqrt(rho[1]) > o->tolerance * norm && k < o->most_iterations) {
        for (int i = 0; i < p->rows; i++) {
            d[i] = z[i] + (k ? rho[0] / old : 0) * d[i];
        }
        multiply(p, d, q);
        dots(p, d, q, d, q, curve);
        if (!(curve[0] > 0)) {
            k = -1;
            break;
        }
        for (int i = 0; i < p->rows; i++) {
            x[i] += rho[0] / curve[0] * d[i];
            r[i] -= rho[0] / curve[0] * q[i];
            z[i] = r[i] * inverse[i];
        }
        old = rho[0];
        dots(p, r, z, r, r, rho);
        k++;
        progress(p, k, sqrt(rho[1]) / norm, sqrt(rho[1]) <= o->tolerance * norm);
    }
    free(r);
    free(z);
    free(q);
    free(d);
    free(inverse);
    return k;
}

/* Makes b, solves, and verifies: the true residual b - A x, and the distance of x from 1. Returns the exit code. */
static int run(part *p, const options *o)
{
    size_t n = (size_t)p->rows;
    double *x = take(n + (size_t)p->halo, sizeof *x), *b = take(n, sizeof *b), *y = take(n, sizeof *y);
    double start, seconds, error = 0, worst = 0, norms[2], residual;
    long k;

    for (int i = 0; i < p->rows; i++) {
        x[i] = 1;
    }
    multiply(p, x, b);
    memset(x, 0, n * sizeof *x);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    k = solve(p, o, b, x);
    seconds = MPI_Wtime() - start;
    multiply(p, x, y);
    for (int i = 0; i < p->rows; i++) {
        y[i] = b[i] - y[i];
        error = fmax(error, fabs(x[i] - 1));
    }
    dots(p, y, y, b, b, norms);
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    residual = sqrt(norms[0] / norms[1]);
    if (!p->rank && k < 0) {
        fprintf(stderr, "cg: the matrix is not positive definite: conjugate gradients do not apply\n");
    } else if (!p->rank) {
        printf("%s: %ld iterations in %.3f s on %d rank%s, true relative residual %.2e, max |x-1| %.2e\n",
               residual <= 2 * o->tolerance ? "solved" : "NOT SOLVED", k, seconds, p->ranks, p->ranks == 1 ? "" : "s",
               residual, worst);
    }
    free(x);
    free(b);
    free(y);
    return k >= 0 && residual <= 2 * o->tolerance ? 0 : 1;
}

/* --- set-up ---------------------------------------------------------------------------------------------------------- */

/* Rank 0 reads the file and broadcasts the number of rows (0: it failed). */
static long load(part *p, matrix *whole, const char *path)
{
    char why[512];
    long rows = 0;

    if (!p->rank) {
        if (matrix_read(whole, path, why, sizeof why)) {
            fprintf(stderr, "cg: %s\n", why);
        } else {
            rows = whole->rows;
            printf("%s: %ld rows, %ld entries\n", path, rows, whole->start[rows]);
        }
    }
    MPI_Bcast(&rows, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return rows;
}

/* Fills this rank's part. 0, or -1 on all ranks if the file is bad. */
static int set_up(part *p, const options *o)
{
    matrix whole = {0};
    long rows = o->file ? load(p, &whole, o->file) : o->grid * o->grid;

    if (!rows) {
        return -1;
    }
    p->first = take((size_t)p->ranks + 1, sizeof *p->first);
    if (!o->file) {
        divide(p, NULL, rows, 1);
        poisson(p, (int)o->grid);
        if (!p->rank) {
            printf("Poisson's problem on a grid of %ld x %ld: %ld rows\n", o->grid, o->grid, rows);
        }
    } else {
        if (!p->rank) {
            divide(p, &whole, rows, o->even);
        }
        MPI_Bcast(p->first, p->ranks + 1, MPI_INT, 0, MPI_COMM_WORLD);
        spread(p, &whole);
        matrix_free(&whole);
    }
    exchange_counts(p);
    return 0;
}

static void take_down(part *p)
{
    matrix_free(&p->own);
    free(p->first);
    free(p->halo_from);
    free(p->send_from);
    free(p->send_row);
    free(p->send_value);
    free(p->requests);
}

/* 0, or -1 with the error in `why`. */
static int parse(options *o, int argc, char **argv, char *why, size_t why_bytes)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = "";
        if (!strcmp(name, "--even")) {
            o->even = 1;
        } else if (name[0] != '-' && !o->file) {
            o->file = name;
        } else if (!strcmp(name, "--n") && (o->grid = strtol(value, &end, 10)) >= 1 && o->grid <= 30000 && !*end && *value) {
            i++;
        } else if (!strcmp(name, "--tol") && (o->tolerance = strtod(value, &end)) > 0 && o->tolerance < 1 && !*end) {
            i++;
        } else if (!strcmp(name, "--most") && (o->most_iterations = strtol(value, &end, 10)) >= 1 && !*end && *value) {
            i++;
        } else {
            snprintf(why, why_bytes, "\"%.100s%s%.100s\" is not an option or has an invalid value; usage: cg [FILE.mtx[.gz] | --n GRID] "
                     "[--even] [--tol X] [--most ITERATIONS]", name, *value ? " " : "", value);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.grid = 200, .tolerance = 1e-10, .most_iterations = 100000};
    part p = {0};
    char why[400];
    int code;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    if (parse(&o, argc, argv, why, sizeof why)) {
        if (!p.rank) {
            fprintf(stderr, "cg: %s\n", why);
        }
        code = 2;
    } else {
        code = set_up(&p, &o) ? 1 : run(&p, &o);
        take_down(&p);
    }
    MPI_Finalize();
    return code;
}
