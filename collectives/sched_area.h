/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_area: schedules whose only step is a call through the node area (shmcoll_queue.h), in place of messages. Called by coll.c and
 * sched_progress.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SCHED_AREA_H
#define WEFT_COLLECTIVES_SCHED_AREA_H

#include "collectives/sched.h"

/* The same as weft_sched_record for a call through `area`: team->area, or a lane, which the schedule owns then. On an error the caller owns
 * it. area NULL: weft_sched_decide follows. rest: the algorithm for blocks that the slots leave to messages; NULL: they take all. */
int weft_sched_record_in_area(weft_team *team, struct weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call,
                              int tag, weft_sched_algorithm *rest, weft_req **req);
/* Before a schedule recorded without an area starts: its call goes through `area`, or, if that is NULL, by the steps of `algorithm`. An
 * error is the schedule's, and the team has stopped. */
void weft_sched_decide(weft_sched *sched, struct weft_shmcoll *area, weft_sched_algorithm *algorithm);
/* The schedule starts. It may end before the return. */
void weft_sched_begin_in_area(weft_sched *sched);
/* A wait for the request of a schedule begins: may end it. */
void weft_sched_spin(weft_req *req);

#endif
