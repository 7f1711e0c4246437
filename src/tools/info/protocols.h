/* SPDX-License-Identifier: BSD-3-Clause
 *
 * protocols: which protocol a message of each size takes here, by trying: two ranks that exchange messages and then read the ladder.
 */
#ifndef WEFT_TOOLS_INFO_PROTOCOLS_H
#define WEFT_TOOLS_INFO_PROTOCOLS_H

/* What `weft-info --protocols` does: starts this program again as two ranks under the mpirun beside it. Returns only on failure, with
 * the exit code. */
int protocols_start(void);
/* What each of the two ranks does; rank 0 prints. The exit code. */
int protocols_rank(void);

#endif
