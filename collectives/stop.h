/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stop: the end of a team's collectives after an error that leaves messages unsent. The member that fails stops: it takes no more
 * collective calls on this team, cancels its receives, refuses what is sent to it, and notifies log2(size) other members (rank + 2^k), which do the
 * same; so every member, in whatever stage it waits, returns an error with the reason in bounded time. Called by sched.c, coll.c and shmcoll_check.c,
 * under the worker's lock.
 * Invariant: a member forwards when it stops, whatever stopped it: so the notification reaches all, wherever it starts and however often.
 * Plans that are older than the one that failed go on: all members perform them.
 */
#ifndef WEFT_COLLECTIVES_STOP_H
#define WEFT_COLLECTIVES_STOP_H

#include "collectives/calls.h"
#include "collectives/sched.h"

/* Member `from` calls something else than we do under the number of its tag: tells it our call, so that it stops with both in its text. */
void weft_calls_differ(weft_team *team, uint32_t from, uint32_t tag, weft_call call) __attribute__((cold));
void weft_calls_compare_ahead(weft_team *team, uint32_t tag, weft_call call);
/* Do messages that were here before our call belong to another one? */
static inline void weft_calls_check_ahead(weft_team *team, uint32_t tag, weft_call call)
{
    uint32_t i = tag % WEFT_CALLS;

    if (weft_unlikely(team->log.ahead[i].is_set && !((team->log.ahead[i].tag ^ tag) & (WEFT_TAG_BITS | WEFT_TAG_PREPARED))))
        weft_calls_compare_ahead(team, tag, call);
}

/* Notes a call of ours. */
static inline void weft_calls_note(weft_team *team, uint32_t tag, weft_call call)
{
    uint32_t i = tag % WEFT_CALLS;

    team->log.made[i].tag = tag;
    team->log.made[i].is_set = 1;
    team->log.made[i].call = call;
    weft_calls_check_ahead(team, tag, call);
}

/* For a wait in shared slots: `member` has sent messages of a later call, so it never takes part in this one. */
static inline bool weft_calls_has_ahead(const weft_team *team)
{
    return ((team->log.newest - team->sequence) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2;
}
bool weft_calls_has_passed(weft_team *team, uint32_t member, uint32_t *tag);

/* Takes part: notifications for team->chan are answered from now on. */
void weft_stop_open(weft_team *team);
void weft_stop_close(weft_team *team);
/* An error of ours (weft_fail said why) in the schedule with this tag: stops the team, all members, and every schedule from this one on. */
void weft_team_stop(weft_team *team, int rc, int tag) __attribute__((cold));
/* Is the schedule with this number or tag over, because the team has stopped? */
bool weft_team_is_over(const weft_team *team, uint32_t tag);
/* What another member's error is here. */
int weft_stop_code(int code);
/* A call on a stopped team: its error, with the reason. */
int weft_team_refuse(weft_team *team) __attribute__((cold));
/* The same, and what is refused. */
int weft_team_refuse_call(weft_team *team, weft_call call) __attribute__((cold));
/* Our part of the call is over: node-local ranks that wait for us in shared slots find that we stopped. */
void weft_team_leave_node(weft_team *team) __attribute__((cold));

#endif
