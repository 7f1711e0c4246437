/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll: collectives among ranks that share memory, through slots and flags in a node area of the segment. Called by coll.c for
 * blocking calls only. Every member performs the same sequence of operations on an area, numbered from 1.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_H
#define WEFT_COLLECTIVES_SHMCOLL_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/sched.h"
#include "mem/segment.h"

typedef struct weft_shmcoll weft_shmcoll;

/* Performs an algorithm on the team by messages (coll.c's). */
typedef int weft_shmcoll_performer(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args);

/* Collective: those members that stand on one node (all, or our mates of team->hosts) find out whether it has room for an area, and attach
 * it: team->node, NULL if not. Also settles team->latency_bytes and eager_bytes. Errors are those of messages; a lack of room is none. */
int weft_shmcoll_agree(weft_team *team, weft_shmcoll_performer *perform);
/* How members share an area; alike on all. */
enum weft_shmcoll_manner {
    WEFT_SHMCOLL_CROWDED = 1, /* more ranks than CPUs */
    WEFT_SHMCOLL_FENCE = 2,   /* somebody has no membarrier */
    WEFT_SHMCOLL_CSUM = 4,  /* somebody checks messages from end to end */
};
/* Attaches an area: `base` is zeroed memory that all `ranks` (2..64) members map, `bytes` long; pages[i] is member i's rank page.
 * NULL on lack of memory or room. */
weft_shmcoll *weft_shmcoll_attach(weft_worker *worker, void *base, uint64_t bytes, uint32_t rank, uint32_t ranks,
                            weft_rank_page *const *pages, unsigned flags);
/* NULL is allowed. The last member gives the area back. */
void weft_shmcoll_close(weft_shmcoll *node);
/* Payload of one rank in one operation. */
uint32_t weft_shmcoll_slot_bytes(const weft_shmcoll *node);
/* Did another member find first that calls differ? */
bool weft_shmcoll_is_second(const weft_shmcoll *node);
/* Does a call of ours wait in the area? */
bool weft_shmcoll_is_waiting(const weft_shmcoll *node);
/* We take no more part: members that wait for us, now or later, find that out. rc: why; an error before it counts. */
void weft_shmcoll_leave(weft_shmcoll *node, int rc) __attribute__((cold));
/* A blocking call, noted for the others (shmcoll_check.h) and performed. */
int weft_shmcoll_run(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args);
/* A blocking call that goes another way: only noted, before anything of it is done; bytes: weft_coll_select_bytes. is_alone: no part of it
 * goes through the area. An error: the area is of no more use. */
int weft_shmcoll_pass(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes, bool is_alone);
/* What such a call performs here. */
int weft_shmcoll_stage(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args);
/* What we write from now on is made of damaged data, or is not any more. */
void weft_shmcoll_mark(weft_shmcoll *node, bool is_tainted);

/* Halves of an allreduce (shmcoll_rsag.c): member i < parts is the owner of block i, as weft_sched_block_start cuts recvcount elements.
 * fold: each owner has folded its block of all members' vectors, in its recvbuf. spread: all have all blocks in their recvbufs. Only for
 * operators that commute. */
typedef int weft_shmcoll_rsag(weft_shmcoll *node, const weft_coll *args, uint32_t parts);
weft_shmcoll_rsag weft_shmcoll_reduce_scatter, weft_shmcoll_allgather;
bool weft_shmcoll_can_rsag(const weft_shmcoll *node, const weft_type *type, uint32_t parts);

#endif
