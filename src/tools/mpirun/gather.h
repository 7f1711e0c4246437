/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gather: collectives of PMIx servers at the head: each node that holds members comes once with its data, and when all have come each is
 * given everybody's. Which collective a node means is told by kind and members, and by who has come to it already: so two in a row
 * do not mix, not even after one that ended badly, which is kept until the last has heard of it.
 */
#ifndef WEFT_MPIRUN_GATHER_H
#define WEFT_MPIRUN_GATHER_H

#include "tools/mpirun/hub.h"

typedef struct gathers {
    const map *map;
    hub_up up;
    struct gather *first, **end;
    unsigned char *is_gone; /* [ranks] */
    uint64_t soonest_ns;    /* no deadline is earlier; 0: there is none */
} gathers;

/* 0 or -1: no memory. */
int gathers_open(gathers *self, const map *map, const hub_up *up);
/* A node has come; the body stays the caller's. */
void gathers_come(gathers *self, uint32_t node, const note *what);
/* A rank has ended: a node of which no member is left is not waited for. */
void gathers_gone(gathers *self, uint32_t rank);
uint64_t gathers_deadlines(gathers *self, uint64_t now);
void gathers_close(gathers *self);

#endif
