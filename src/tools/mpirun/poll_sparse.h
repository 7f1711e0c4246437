/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll_sparse: poll(2) of a set in which absent descriptors (-1) stand too. The kernel refuses a set of more entries than a process may have
 * descriptors (EINVAL), and counts the absent ones: under a small ulimit -n the places that are kept for daemons to come would be too many.
 */
#ifndef WEFT_MPIRUN_READY_H
#define WEFT_MPIRUN_READY_H

#include <poll.h>
#include <stdint.h>

/* As poll(2). */
int poll_sparse_wait(struct pollfd *set, uint32_t count, int wait_ms);

#endif
