/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier: stages of hierarchical collectives. Called by the hier files only.
 */
#ifndef WEFT_COLLECTIVES_HIER_H
#define WEFT_COLLECTIVES_HIER_H

#include "collectives/sched.h"

typedef struct weft_hier_stage {
    enum weft_coll_kind kind;
    const uint32_t *members; /* ranks of the view */
    uint32_t count;
    bool is_in_node; /* among members of this node */
    uint32_t sharing; /* members of each node that perform this stage at the same time */
} weft_hier_stage;

/* Performs an operation among the members of a stage, this one included, by the algorithm that select.c chooses for so many. args->root is
 * an index in members. */
void weft_hier_perform(weft_sched *sched, const weft_hier_stage *at, const weft_coll *args);

#endif
