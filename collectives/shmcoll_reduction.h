/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_reduction: reduces vectors from the slots of a node area. Used by shmcoll.c; requires worker->lock.
 * Invariant: the last member's elements come first (in op inout), then those of the lower ones, so results are bitwise equal on all members
 * and in rank order.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_REDUCTION_H
#define WEFT_COLLECTIVES_SHMCOLL_REDUCTION_H

#include "collectives/shmcoll_area.h"
#include "collectives/sched.h"

typedef struct weft_shmcoll_reduction {
    const weft_coll *args;
    bool has_own;        /* this member's vector is at own, which may be MPI_BOTTOM; false: it is in its slot */
    const char *own;
    void *scratch;       /* unpacked elements; address of element 0; NULL: the type is dense */
    void *scratch_block; /* allocation of scratch */
} weft_shmcoll_reduction;

/* Elements of the members' vectors in their slots. */
typedef struct weft_shmcoll_part {
    uint64_t s;            /* operation in which they were written */
    uint64_t chunk;        /* most bytes that a member wrote in s (weft_shmcoll_place) */
    uint32_t index;        /* fragment in each member's data of s */
    uint64_t offset;       /* of the fragment in each member's chunk, bytes */
    uint64_t first, count; /* elements of the vectors */
} weft_shmcoll_part;

/* max: most elements of a part. WEFT_E_NOMEM. */
int weft_shmcoll_reduction_open(weft_shmcoll_reduction *reduction, const weft_coll *args, uint64_t max);
void weft_shmcoll_reduction_close(weft_shmcoll_reduction *reduction);
/* Reduces all members' parts into out, the address of the first element. */
void weft_shmcoll_reduce(const weft_shmcoll_reduction *reduction, weft_shmcoll *area, const weft_shmcoll_part *part, void *out);

#endif
