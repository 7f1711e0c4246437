/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_head: the head's part in what the PMIx servers of a job ask of each other: fences, what a rank has put, what ranks publish, events. It
 * knows nodes and notes (haul.h) and nothing of PMIx: data are bytes to it.
 */
#ifndef WEFT_MPIRUN_HUB_H
#define WEFT_MPIRUN_HUB_H

#include "tools/mpirun/haul.h"
#include "tools/mpirun/map.h"

typedef struct pmix_head pmix_head;

typedef struct pmix_head_callbacks {
    void (*send)(void *owner, uint32_t node, const pmix_msg *what); /* takes the body over */
    void *owner;
} pmix_head_callbacks;

/* NULL: no memory. */
pmix_head *pmix_head_open(const map *map, const pmix_head_callbacks *up);
/* A note of a node's server; takes its body over. */
void pmix_head_take(pmix_head *self, uint32_t node, const pmix_msg *what);
/* Deadlines that have passed. Returns the next one (weft_clock_ns), or 0. */
uint64_t pmix_head_deadlines(pmix_head *self);
void pmix_head_close(pmix_head *self);

#endif
