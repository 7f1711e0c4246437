/* SPDX-License-Identifier: BSD-3-Clause
 *
 * intercomm: intercommunicators (MPI 5.0 7.6). Beside the channel to the remote group each has an intracommunicator of its local group
 * (weft_comm.local) and a collective channel of both groups (weft_comm.team), so it needs no other communicator to make others.
 * Called by comm_create.c, comm_dup.c and comm_from_group.c; requires the worker's lock.
 */
#ifndef WEFT_MPI_INTERCOMM_H
#define WEFT_MPI_INTERCOMM_H

#include "collectives/calls.h"
#include "mpi/exchange.h"

/* Splits an intercommunicator: members of both groups with the same color make a new one, ordered by key and old rank in each group. color
 * MPI_UNDEFINED: no member. Collective over both groups. rc: an earlier error of this member; then all fail. *out NULL: no member, or no
 * process of the other group has this color. */
int weft_intercomm_split(weft_comm *comm, int color, int key, int rc, weft_comm **out);

/* The same for a call of the program on this intercommunicator: other calls of members there are found (weft_team_begin_making). */
int weft_intercomm_make_of(weft_comm *comm, enum weft_call_maker maker, int color, int key, int rc, weft_comm **out);

/* Local: as weft_comm_open, an intercommunicator of the groups of another one. */
int weft_intercomm_open(weft_comm *from, weft_comm **out);

/* An intercommunicator of the two groups of a bridge. Collective over both. rc: an earlier error of this member; then all fail, but where
 * the leader has no channel (bridge.chan is NULL) the other group waits, as for any member that does not call. */
int weft_intercomm_make(weft_bridge bridge, int rc, weft_comm **out);

#endif
