/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program: finds what a part is to execute, and looks which libraries it is linked with.
 */
#ifndef WEFT_MPIRUN_PROGRAM_H
#define WEFT_MPIRUN_PROGRAM_H

#include "tools/mpirun/options.h"

/* Fills part->path, is_ours and has_asan. 0, or 127/126 after a line that says why. */
int program_find(app *part);
/* May it run on several hosts? 0, or an exit code, said. */
int program_judge(const app *part, enum pmix_mode mode);

#endif
