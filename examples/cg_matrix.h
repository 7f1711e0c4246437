/* SPDX-License-Identifier: BSD-3-Clause
 * cg_matrix: a sparse matrix in one process, read from a Matrix Market file, plain or gzipped. Used by cg.c on rank 0, without MPI.
 */
#ifndef CG_MATRIX_H
#define CG_MATRIX_H

#include <stddef.h>

typedef struct matrix
{
    int rows;       /* of a square matrix */
    long *start;    /* rows + 1: where each row's entries begin */
    int *column;    /* ascending within a row, from 0 */
    double *value;
} matrix;

/* Reads `path` into m, both triangles, sorted. 0; or -1 with one line in `why`, "file:line: error" if it concerns a line.
 * Accepted: "matrix coordinate", real or integer, symmetric or general; square, without duplicate entries, every diagonal entry present
 * and not zero, symmetric values (required by conjugate gradients). The caller frees with matrix_free. */
int matrix_read(matrix *m, const char *path, char *why, size_t why_bytes);

void matrix_free(matrix *m);

#endif
