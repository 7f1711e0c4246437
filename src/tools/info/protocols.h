/* SPDX-License-Identifier: BSD-3-Clause
 *
 * protocols: measures which rendezvous protocol each message size uses: two ranks exchange messages, then print weft_rndv_stats.
 */
#ifndef WEFT_TOOLS_INFO_PROTOCOLS_H
#define WEFT_TOOLS_INFO_PROTOCOLS_H

/* weft-info --protocols: executes mpirun of the same directory with two ranks of this program. Returns on failure only: the exit code. */
int protocols_start(void);
/* weft-info --protocols-rank: body of each rank; rank 0 prints. Returns the exit code. */
int protocols_rank(void);

#endif
