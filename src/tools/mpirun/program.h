/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program: finds the executable of a part and the MPI, PMIx and sanitizer libraries that it is linked with.
 */
#ifndef WEFT_MPIRUN_PROGRAM_H
#define WEFT_MPIRUN_PROGRAM_H

#include "tools/mpirun/options.h"

/* Sets part->path and the is_ flags. 0, or 127/126/2 after a message. */
int program_find(app *part);
/* For a job on several hosts: checks that the part's MPI library can be served with PMIx mode `mode`. 0, or an exit code after a
 * message. */
int program_check(const app *part, enum pmix_mode mode);

#endif
