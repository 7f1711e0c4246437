/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll: teams, and collective calls on them. Called by src/mpi; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_COLL_H
#define WEFT_COLLECTIVES_COLL_H

#include "collectives/team.h"

/* Local. If `share`, the members agree on a node area in their first blocking collective; the channel must be connected by then.
 * Returns 0 or WEFT_E_NOMEM. */
int weft_team_open(weft_chan *chan, bool share, weft_team *team);
/* The same for an intercommunicator. The group of `chan` is one group, then the other, in the same order on all members; `local` is this
 * member's. */
int weft_team_open_inter(weft_chan *chan, weft_members local, weft_team *team);
/* Local. No collective of this member may be under way. The last member to close frees the node area. */
void weft_team_close(weft_team *team);
/* Of reductions that begin or are prepared from now on; equal on all members. Initially WEFT_REPRODUCIBLE. */
void weft_team_set_reproducible(weft_team *team, bool value);

/* The error by which this member stopped the team. 0: not stopped, stopped by another member, or a node-local rank found the same first. */
int weft_team_stopped(const weft_team *team);

/* Blocking call. Returns 0 or an error. May run user code (operators) with the lock released. */
int weft_coll_run(weft_team *team, enum weft_coll_kind kind, const weft_coll *args);
/* Nonblocking call: records and starts. The request owns the schedule. */
int weft_coll_start(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
/* The same among all members of the team, also if it is of two groups: as on an intracommunicator. For the library itself. */
int weft_coll_start_all(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
/* Persistent call: records only. Start it by weft_sched_restart(req). */
int weft_coll_prepare(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);

#endif
