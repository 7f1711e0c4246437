/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prefix: where this Weft stands. The wrapper finds itself, and from there the headers and the library, so that a whole installation
 * may be moved or unpacked elsewhere.
 */
#ifndef WEFT_TOOLS_WRAPPER_PREFIX_H
#define WEFT_TOOLS_WRAPPER_PREFIX_H

#include <limits.h>

typedef struct house {
    char include[PATH_MAX];
    char lib[PATH_MAX];
} house;

/* Fills in both: beside the running program if mpi.h is there, else where configure was told to install. */
void house_find(house *self);

#endif
