/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node: collectives among ranks that share memory, through slots and flags in a node area of the segment. Called by coll.c for
 * blocking calls only. Every member performs the same sequence of operations on an area, numbered from 1.
 */
#ifndef WEFT_COLLECTIVES_NODE_H
#define WEFT_COLLECTIVES_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/plan.h"
#include "mem/segment.h"

typedef struct weft_node weft_node;

/* Performs an algorithm on the team by messages (coll.c's). */
typedef int weft_node_performer(weft_team *team, weft_plan_algorithm *algorithm, const weft_coll *args);

/* Collective: those members that stand on one node (all, or our mates of team->hosts) find out whether it has room for an area, and attach
 * it: team->node, NULL if not. Also settles team->latency_bytes and eager_bytes. Errors are those of messages; a lack of room is none. */
int weft_node_agree(weft_team *team, weft_node_performer *perform);
/* How members share an area; alike on all. */
enum weft_node_manner {
    WEFT_NODE_CROWDED = 1, /* more ranks than CPUs */
    WEFT_NODE_FENCE = 2,   /* somebody has no membarrier */
    WEFT_NODE_SUMMED = 4,  /* somebody checks messages from end to end */
};
/* Attaches an area: `base` is zeroed memory that all `ranks` (2..64) members map, `bytes` long; pages[i] is member i's rank page.
 * NULL on lack of memory or room. */
weft_node *weft_node_attach(weft_worker *worker, void *base, uint64_t bytes, uint32_t rank, uint32_t ranks,
                            weft_rank_page *const *pages, unsigned manner);
/* NULL is allowed. The last member gives the area back. */
void weft_node_close(weft_node *node);
/* Payload of one rank in one operation. */
uint32_t weft_node_slot_bytes(const weft_node *node);
/* Did another member find first that calls differ? */
bool weft_node_is_second(const weft_node *node);
/* Does a call of ours wait in the area? */
bool weft_node_is_waiting(const weft_node *node);
/* We take no more part: members that wait for us, now or later, find that out. rc: why; an error before it counts. */
void weft_node_leave(weft_node *node, int rc) __attribute__((cold));
/* A blocking call, noted for the others (node_calls.h) and performed. */
int weft_node_run(weft_node *node, enum weft_coll_kind kind, const weft_coll *args);
/* A blocking call that goes another way: only noted, before anything of it is done; bytes: weft_choose_bytes. is_alone: no part of it
 * goes through the area. An error: the area is of no more use. */
int weft_node_pass(weft_node *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes, bool is_alone);
/* What such a call performs here. */
int weft_node_stage(weft_node *node, enum weft_coll_kind kind, const weft_coll *args);
/* What we write from now on is made of damaged data, or is not any more. */
void weft_node_mark(weft_node *node, bool is_tainted);

/* Halves of an allreduce (node_parts.c): member i < parts is the owner of block i, as weft_plan_block_start cuts recvcount elements.
 * fold: each owner has folded its block of all members' vectors, in its recvbuf. spread: all have all blocks in their recvbufs. Only for
 * operators that commute. */
typedef int weft_node_parts(weft_node *node, const weft_coll *args, uint32_t parts);
weft_node_parts weft_node_fold_parts, weft_node_spread_parts;
bool weft_node_takes_parts(const weft_node *node, const weft_type *type, uint32_t parts);

#endif
