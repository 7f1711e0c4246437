/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_head: serves requests of the nodes' PMIx servers at the head: collectives (pmix_coll), data of a rank (modex), names (nameserver),
 * events.
 * It handles pmix_msg (pmix_msg.h); data are opaque, and it does not call libpmix. One thread.
 */
#ifndef WEFT_MPIRUN_PMIX_HEAD_H
#define WEFT_MPIRUN_PMIX_HEAD_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/pmix_msg.h"

typedef struct pmix_head pmix_head;

/* NULL: out of memory. */
pmix_head *pmix_head_open(const map *map, const pmix_msg_sender *up);
/* Handles a message of a node's server; takes over its body. May call back `send`. */
void pmix_head_handle(pmix_head *self, uint32_t node, const pmix_msg *what);
/* Handles expired deadlines. Returns the next one (weft_clock_ns), or 0. */
uint64_t pmix_head_deadlines(pmix_head *self);
void pmix_head_close(pmix_head *self);

#endif
