/* SPDX-License-Identifier: BSD-3-Clause
 *
 * argv: arrays of texts for C (MPI 5.0 11.8: MPI_Comm_spawn). Texts are `length` bytes each; trailing blanks do not count.
 */
#ifndef WEFT_FORTRAN_ARGV_H
#define WEFT_FORTRAN_ARGV_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The first `count` texts, each `step` texts after the one before. The caller frees the result, by free. NULL: no memory. */
char **weft_f_texts_in(const char *given, size_t length, size_t step, size_t count);
/* Sets *made to the texts up to the first that is blank, then NULL; to NULL (MPI_ARGV_NULL) if given is a sentinel. false: no memory. */
bool weft_f_argv_in(const char *given, size_t length, size_t step, char ***made);
/* The same of `count` commands, whose arguments are the rows of an array (count, *). free: of a NULL too. */
bool weft_f_argvs_in(const char *given, size_t length, int count, char ****made);
void weft_f_argvs_free(char ***made, int count);
/* An array of infos; as weft_f_texts_in. */
MPI_Info *weft_f_infos_in(const int *given, int count);

#endif
