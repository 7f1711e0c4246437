/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits: what the ranks wait for, read from their status pages without their help.
 */
#ifndef WEFT_MPIRUN_WAITS_H
#define WEFT_MPIRUN_WAITS_H

#include <stdint.h>

#include "mem/segment.h"

/* Says on stderr what each rank waits for, four lines at most; ranks that wait for nothing in MPI are counted. */
void waits_tell(const weft_segment *segment, uint32_t ranks);

#endif
