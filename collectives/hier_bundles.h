/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier_bundles: the members of a team in groups by leader and node, for multi-leader gather, scatter and allgather. The first
 * topology->leaders_per_node members of each node are its leaders; leader i has the group of the members with index i, i + leaders .. on
 * its node. The blocks of leader i's groups on all nodes are a bundle, which the leaders i exchange. If there is a root, it leads its
 * group, and its own block belongs to none.
 */
#ifndef WEFT_COLLECTIVES_HIER_BUNDLES_H
#define WEFT_COLLECTIVES_HIER_BUNDLES_H

#include "collectives/blocks.h"
#include "collectives/topology.h"

#define WEFT_BUNDLES_NO_ROOT UINT32_MAX

/* Group (i, node) is number i * nodes + node. Values; the arrays are temporary memory of the schedule. */
typedef struct weft_bundles {
    uint32_t leaders, nodes;
    uint32_t root, root_leader, root_node; /* root_leader: the group of the root on its node; valid if there is a root */
    uint32_t own;                          /* this member's leader i; its node is topology->node */
    const uint32_t *members;               /* group g: members[firsts[g]] .. members[firsts[g + 1] - 1], ascending */
    const uint32_t *firsts;
    const uint64_t *starts;                /* bytes: where group g begins, if all blocks are packed in this order; and the end */
} weft_bundles;

/* A part of the packed blocks in memory: from byte `origin` on. */
typedef struct weft_bundles_room {
    char *buf;
    uint64_t origin;
} weft_bundles_room;

static inline char *weft_bundles_at(weft_bundles_room room, uint64_t offset) { return room.buf + (offset - room.origin); }

/* Groups for blocks of these lengths. starts is NULL: out of memory. */
weft_bundles weft_bundles_make(weft_sched *sched, const weft_blocks *blocks, uint32_t root);
/* The member that leads a group. */
uint32_t weft_bundles_leader(const weft_bundles *bundles, uint32_t leader, uint32_t node);
/* Memory for groups first .. end - 1. */
weft_bundles_room weft_bundles_room_of(weft_sched *sched, const weft_bundles *bundles, uint32_t first, uint32_t end);
/* Within this member's group: the leader receives the others' blocks (gather), or sends them (else); the others send or receive `own`. The
 * leader copies its own block, unless it is the root. */
void weft_bundles_hand(weft_sched *sched, const weft_bundles *bundles, const weft_blocks *blocks, weft_bundles_room room,
                       const weft_block *own, bool is_gather);
/* Copies the blocks of groups first .. end - 1, but this member's own, from the room to `blocks`, or back. */
void weft_bundles_unpack(weft_sched *sched, const weft_bundles *bundles, const weft_blocks *blocks, weft_bundles_room room);
void weft_bundles_pack(weft_sched *sched, const weft_bundles *bundles, const weft_blocks *blocks, weft_bundles_room room);
/* Arguments of a gather, scatter or allgather of n consecutive blocks of bytes in `room`, in place; v or not: *is_v. root: index of the
 * rank that has them all, not read in an allgather. */
weft_coll weft_bundles_call(weft_sched *sched, weft_bundles_room room, const uint64_t *starts, uint32_t n, weft_layout *layout);

#endif
