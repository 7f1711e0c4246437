/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub: the head's part in what the PMIx servers of a job ask of each other: fences, what a rank has put, what ranks publish, events. It
 * knows nodes and notes (haul.h) and nothing of PMIx: data are bytes to it.
 */
#ifndef WEFT_MPIRUN_HUB_H
#define WEFT_MPIRUN_HUB_H

#include "tools/mpirun/haul.h"
#include "tools/mpirun/map.h"

typedef struct hub hub;

typedef struct hub_up {
    void (*send)(void *owner, uint32_t node, const note *what); /* takes the body over */
    void *owner;
} hub_up;

/* NULL: no memory. */
hub *hub_open(const map *map, const hub_up *up);
/* A note of a node's server; takes its body over. */
void hub_take(hub *self, uint32_t node, const note *what);
/* Deadlines that have passed. Returns the next one (weft_clock_ns), or 0. */
uint64_t hub_deadlines(hub *self);
void hub_close(hub *self);

#endif
