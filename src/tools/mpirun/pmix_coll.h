/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_coll: collective operations of PMIx and PMI servers, at the head (pmix_head). Each node with members contributes once; when all
 * have contributed, each gets the joined data.
 * A node's contribution belongs to the oldest operation of the same kind and members that still waits for this node. A failed operation is
 * kept until all nodes have got its status, so that later ones do not mix with it.
 */
#ifndef WEFT_MPIRUN_PMIX_COLL_H
#define WEFT_MPIRUN_PMIX_COLL_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/pmix_msg.h"

typedef struct pmix_colls {
    const map *map;
    pmix_msg_sender up;
    struct pmix_coll *first, **end;
    unsigned char *has_ended; /* [ranks]: the rank has ended */
    uint64_t deadline_min_ns; /* lower bound of all deadlines; 0: none */
} pmix_colls;

/* 0 or -1: out of memory. */
int pmix_colls_open(pmix_colls *self, const map *map, const pmix_msg_sender *up);
/* A node's contribution (PMIX_MSG_COLL); the body stays the caller's. */
void pmix_colls_contribute(pmix_colls *self, uint32_t node, const pmix_msg *what);
/* A rank has ended: nodes without a living member are not awaited. */
void pmix_colls_rank_ended(pmix_colls *self, uint32_t rank);
uint64_t pmix_colls_deadlines(pmix_colls *self, uint64_t now);
void pmix_colls_close(pmix_colls *self);

#endif
