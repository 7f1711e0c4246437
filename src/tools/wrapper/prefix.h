/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prefix: paths of the installation, relative to the running program, so that an installation may be moved. Called by the wrapper and
 * weft-info.
 */
#ifndef WEFT_TOOLS_WRAPPER_PREFIX_H
#define WEFT_TOOLS_WRAPPER_PREFIX_H

#include <limits.h>

typedef struct prefix {
    char include[PATH_MAX]; /* directory of mpi.h, absolute */
    char lib[PATH_MAX];     /* directory of the library, absolute */
} prefix;

/* Fills in both: relative to the running program if mpi.h is there, else the paths of configure. */
void prefix_find(prefix *self);

#endif
