/* SPDX-License-Identifier: BSD-3-Clause
 *
 * error_class: names and texts of MPI error classes and codes, those that the program adds included (MPI 5.0 9.4, 9.5). Used by errors.c
 * and by the attribute MPI_LASTUSEDCODE. Any thread, any time.
 */
#ifndef WEFT_MPI_ERROR_CLASS_H
#define WEFT_MPI_ERROR_CLASS_H

#include <mpi.h>
#include <stdbool.h>

typedef struct weft_error_text {
    char name[48];                       /* "MPI_ERR_TAG", "user's error code 16385" */
    char sentence[MPI_MAX_ERROR_STRING]; /* the program's string, "" if it set none */
} weft_error_text;

/* Fills *text for any int. */
void weft_error_text_of(int mpi_code, weft_error_text *text);

/* Value of MPI_LASTUSEDCODE: the largest class or code in use, at least MPI_ERR_LASTCODE. Atomic. */
extern int weft_error_last_code;

#endif
