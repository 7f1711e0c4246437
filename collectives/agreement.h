/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement: the first collective of a team, of any form, begins with an agreement of its members (shmcoll_setup.h). A blocking call
 * waits for it. A nonblocking call starts it as a recorded schedule; this call and those made until it has ended here are *deferred*: they
 * have their numbers, and begin in the order of the calls when it ends. So each takes the same choice on all members, whenever it was made.
 * Called by coll.c; requires worker->lock.
 * Invariant: a call is deferred only while team->agreement is set; it is performed after all deferred calls before it have begun.
 */
#ifndef WEFT_COLLECTIVES_AGREEMENT_H
#define WEFT_COLLECTIVES_AGREEMENT_H

#include "collectives/sched.h"

/* Begins a deferred schedule. */
typedef void weft_agreement_begin(weft_sched *sched);

/* Blocks: performs the agreement under this tag. Returns 0 or an error, by which the team has stopped; damage ends the job. */
int weft_agreement_run(weft_team *team, int tag);
/* Records it, and does not start it: team->agreement. `begin` serves the deferred schedules. An error: the team has stopped. */
int weft_agreement_record(weft_team *team, int tag, weft_agreement_begin *begin);
/* Instead of weft_agreement_defer: the call that recorded it failed by rc. Stops the team at the agreement, which is not performed. */
void weft_agreement_discard(weft_team *team, int rc) __attribute__((cold));
/* Defers a recorded schedule that is not started, and starts the agreement if this is the first. May begin the schedule before the
 * return. */
void weft_agreement_defer(weft_team *team, weft_sched *sched);
/* Waits until the agreement has ended and all deferred schedules have begun. */
void weft_agreement_await(weft_team *team);

#endif
