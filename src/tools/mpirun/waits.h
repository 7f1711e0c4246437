/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits: what the ranks of a node wait for, read from their status pages without their help.
 */
#ifndef WEFT_MPIRUN_WAITS_H
#define WEFT_MPIRUN_WAITS_H

#include "tools/mpirun/node.h"

/* Says on stderr what each rank waits for, four lines at most; ranks that wait for nothing in MPI are counted. */
void waits_tell(const node *node);

#endif
