/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll_sparse: poll(2) without the absent descriptors (-1) of a set. The kernel counts them too and refuses a set with more entries than
 * RLIMIT_NOFILE (EINVAL), which the entries reserved for daemons can exceed.
 */
#ifndef WEFT_MPIRUN_POLL_SPARSE_H
#define WEFT_MPIRUN_POLL_SPARSE_H

#include <poll.h>
#include <stdint.h>

/* As poll(2), EINVAL by size excepted. Blocks up to wait_ms. */
int poll_sparse_wait(struct pollfd *set, uint32_t count, int wait_ms);

#endif
