/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll: collectives among ranks of one node through slots and flags in a shared memory area of the segment ("node area").
 * Called by coll.c and hier.c for blocking calls; requires worker->lock.
 * Invariant: every member performs the same sequence of operations on an area, numbered from 1 (shmcoll_area.h).
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_H
#define WEFT_COLLECTIVES_SHMCOLL_H

#include "collectives/calls.h"
#include "collectives/sched.h"
#include "collectives/shmcoll_area.h"

/* Blocking call through the area: publishes it for the check (shmcoll_check.h) and performs it. */
int weft_shmcoll_run(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args);
/* The same for an alltoallv or alltoallw. number: of its schedule, for the blocks that it leaves to messages (area->left, area->moved). */
int weft_shmcoll_run_alltoallv(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, uint32_t number);
/* Call by an algorithm of messages: only publishes it, before it begins. number: of its schedule. is_alone: no stage of it uses the area.
 * Returns 0, or the error that ended the use of the area. */
int weft_shmcoll_publish(weft_shmcoll *area, weft_call call, uint32_t number, bool is_alone);
/* Nonblocking calls (shmcoll_queue.c): opens area->exchange for the call. WEFT_E_NOMEM. */
int weft_shmcoll_open(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args);
/* The same. Then performs the rounds of a short call while the other members' posts for each come within so many looks at their flags.
 * WEFT_OK: the call has ended. WEFT_AGAIN: weft_shmcoll_try continues it. Else the call has ended by this error. */
int weft_shmcoll_open_and_try(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, uint32_t looks);
/* Performs at most one round of the open call, without waiting. WEFT_AGAIN: some is left, and *has_moved says whether some was done. Else
 * the call has ended, by an error or not, and is closed. */
int weft_shmcoll_try(weft_shmcoll *area, bool *has_moved);
/* Closes the open call before its end. area->rc is set. */
void weft_shmcoll_abandon(weft_shmcoll *area);
/* Performs one stage of such a call in the area (hier.c). Blocks. */
int weft_shmcoll_stage(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args);
/* Halves of an allreduce. Member i < parts owns block i of recvcount elements (weft_sched_block_start).
 * reduce_scatter: each owner gets its block, reduced over all members, in its recvbuf. allgather: every member gets all blocks in its
 * recvbuf. */
typedef int weft_shmcoll_half(weft_shmcoll *area, const weft_coll *args, uint32_t parts);
weft_shmcoll_half weft_shmcoll_reduce_scatter, weft_shmcoll_allgather;
/* Whether elements of this type fit a slot of so many parts: condition of both halves. */
bool weft_shmcoll_can_split(const weft_shmcoll *area, const weft_type *type, uint32_t parts);
/* Whether an alltoallv, or alltoallw, can go through slots. */
bool weft_shmcoll_has_cells(const weft_shmcoll *area);
/* Whether the call's elements fit the slots: a reduction does not split them. Condition of run and stage. */
static inline bool weft_shmcoll_can_hold(const weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    if (!args->op)
        return !weft_coll_is_alltoallv(kind) || weft_shmcoll_has_cells(area);
    if (kind == WEFT_COLL_REDUCE_SCATTER || kind == WEFT_COLL_REDUCE_SCATTER_BLOCK)
        return weft_shmcoll_can_split(area, args->recvtype, area->ranks);
    return args->recvtype->size <= (int64_t)area->slot_bytes;
}

#endif
