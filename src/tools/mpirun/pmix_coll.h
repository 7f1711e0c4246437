/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_coll: collectives of PMIx servers at the head: each node that holds members comes once with its data, and when all have come each is
 * given everybody's. Which collective a node means is told by kind and members, and by who has come to it already: so two in a row
 * do not mix, not even after one that ended badly, which is kept until the last has heard of it.
 */
#ifndef WEFT_MPIRUN_GATHER_H
#define WEFT_MPIRUN_GATHER_H

#include "tools/mpirun/pmix_head.h"

typedef struct pmix_colls {
    const map *map;
    pmix_head_callbacks up;
    struct gather *first, **end;
    unsigned char *is_gone; /* [ranks] */
    uint64_t soonest_ns;    /* no deadline is earlier; 0: there is none */
} pmix_colls;

/* 0 or -1: no memory. */
int pmix_colls_open(pmix_colls *self, const map *map, const pmix_head_callbacks *up);
/* A node has come; the body stays the caller's. */
void pmix_colls_come(pmix_colls *self, uint32_t node, const pmix_msg *what);
/* A rank has ended: a node of which no member is left is not waited for. */
void pmix_colls_gone(pmix_colls *self, uint32_t rank);
uint64_t pmix_colls_deadlines(pmix_colls *self, uint64_t now);
void pmix_colls_close(pmix_colls *self);

#endif
