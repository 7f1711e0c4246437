/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stop: ends a team's collectives after an error. The failed member rejects later collective calls, cancels receives, rejects messages and
 * notifies members rank + 2^k, which do the same. So every member returns an error with the reason in bounded time.
 * Called by sched.c, coll.c, agreement.c, shmcoll_check.c and shmcoll_area.c; requires worker->lock.
 * Invariants: a member that stops notifies, whatever the cause. Schedules older than the failed one continue on all members.
 */
#ifndef WEFT_COLLECTIVES_STOP_H
#define WEFT_COLLECTIVES_STOP_H

#include "collectives/calls.h"
#include "collectives/team.h"

/* The message with `tag` of member `from` belongs to another call than `call`, this member's under that number: sends it `call`, so that it
 * stops the team and names both. */
void weft_calls_differ(weft_team *team, uint32_t from, uint32_t tag, weft_call call) __attribute__((cold));
/* An unexpected message with `tag`, or an inquiry about one: weft_calls_differ if this member's call under that number is another one. A
 * call that is not made yet is checked when it is made. */
void weft_calls_on_message(weft_team *team, uint32_t from, uint32_t tag) __attribute__((cold));
/* Member `from` called `remote` under the number of `tag`, this member another one: stops the team with both in the text. */
void weft_calls_on_differ(weft_team *team, uint32_t from, uint32_t tag, weft_call remote) __attribute__((cold));

/* Sent by inquiry.c to a member that has long been waited for. POST: the sender waits in a node area. MESSAGE: its schedule waits for a
 * message. */
enum weft_inquiry_code { WEFT_INQUIRY_POST = 2, WEFT_INQUIRY_MESSAGE };
typedef struct weft_inquiry {
    int32_t code;   /* enum weft_inquiry_code */
    uint32_t tag;   /* MESSAGE: of the schedule. POST: number of the sender's next schedule */
    uint64_t op;    /* POST: operation that the sender waits for */
    weft_call call; /* POST: the sender's call */
} weft_inquiry;
/* Whether this request of a schedule waits for its message. */
static inline bool weft_calls_is_awaited(const weft_req *req) { return req->kind == WEFT_REQ_RECV && req->is_posted; }
/* A member has freed the communicator or finalized MPI: stops the team if a schedule waits for a message of it. */
void weft_calls_on_gone(weft_team *team, uint32_t member) __attribute__((cold));

/* Where messages of a call are logged. Persistent ones have numbers of their own. */
static inline uint32_t weft_call_slot(uint32_t tag) { return tag % WEFT_CALLS + (tag & WEFT_TAG_PREPARED ? WEFT_CALLS : 0); }
void weft_calls_compare_ahead(weft_team *team, uint32_t tag, weft_call call);
/* Checks messages that preceded this member's call: weft_calls_differ if they belong to another one. */
static inline void weft_calls_check_ahead(weft_team *team, uint32_t tag, weft_call call)
{
    uint32_t i = weft_call_slot(tag);

    if (weft_unlikely(team->log.ahead[i].is_set && !((team->log.ahead[i].tag ^ tag) & (WEFT_TAG_BITS | WEFT_TAG_PREPARED))))
        weft_calls_compare_ahead(team, tag, call);
}

/* Logs a persistent call of this member when it is made; weft_calls_check_ahead follows at each start. */
static inline void weft_calls_log_prepared(weft_team *team, uint32_t tag, weft_call call)
{
    uint32_t i = weft_call_slot(tag);

    team->log.made[i].tag = tag;
    team->log.made[i].is_set = 1;
    team->log.made[i].call = call;
}

/* Logs another call of this member. */
static inline void weft_calls_log(weft_team *team, uint32_t tag, weft_call call)
{
    weft_calls_log_prepared(team, tag, call);
    weft_calls_check_ahead(team, tag, call);
}

/* Cheap test before weft_calls_has_passed: some member has sent a message of a later call. */
static inline bool weft_calls_has_ahead(const weft_team *team)
{
    return ((team->log.newest - team->sequence) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2;
}
/* For waits in a node area: `member` sent a message (*tag) of a later call, so it skipped this one. Returns true once for each message. */
bool weft_calls_has_passed(weft_team *team, uint32_t member, uint32_t *tag);

/* Whether the team has stopped at or before the schedule with this number or tag. */
bool weft_team_is_over(const weft_team *team, uint32_t tag);
/* A call that makes a communicator of this intercommunicator begins and ends. It takes a number like a schedule, so other calls under that
 * number are found. Then the team and `local`, that of its group, stop; a wait for the other group ends by weft_team_making_is_over. */
void weft_team_begin_making(weft_team *team, weft_team *local, enum weft_call_maker maker);
static inline void weft_team_end_making(weft_team *team) { team->is_making = false; }
static inline bool weft_team_making_is_over(const weft_team *team) { return team->is_making && weft_team_is_over(team, team->making_tag); }

/* Registers the handlers of team->chan. */
void weft_stop_open(weft_team *team);
void weft_stop_close(weft_team *team);
/* The channel of a new team is connected: forwards a stop by a member that was faster. */
void weft_team_connected(weft_team *team);
/* Number of the last blocking or nonblocking schedule on the team. */
static inline uint32_t weft_team_latest(const weft_team *team) { return (team->sequence - 1) & WEFT_TAG_BITS; }
/* The collective on `team` with this number created `child`. If it turns out to have failed elsewhere, child stops. */
void weft_team_adopt(weft_team *team, weft_team *child, uint32_t number);
/* Cancels the schedule's posted receives; those that matched a message continue. */
void weft_sched_cancel(weft_sched *sched);
/* The schedule with this tag failed here by rc (its text: weft_fail). Stops it and every later one, on all members. Does not block. */
void weft_team_stop(weft_team *team, int rc, int tag) __attribute__((cold));
/* The call of the node area with this number among this member's published calls failed: the same for it and all later calls. */
void weft_team_stop_in_area(weft_team *team, int rc, uint64_t call) __attribute__((cold));
/* Whether the team has stopped at or before this member's current blocking call, its next one. Calls of a node area have no number of a
 * schedule: their own count distinguishes them. */
bool weft_team_call_is_over(const weft_team *team);
bool weft_team_next_call_is_over(const weft_team *team);
/* Returns rc, the result of a collective whose data decides the later steps of the members. Aborts the job on damage: members would decide
 * differently and hang. */
int weft_team_trust(const weft_team *team, int rc);
/* The error that this member returns for another member's error. */
int weft_stop_code(int code);
/* Error of a call on a stopped team; sets the text. */
int weft_team_stop_error(weft_team *team) __attribute__((cold));
/* The same; the text also names the call. */
int weft_team_stop_error_of_call(weft_team *team, weft_call call) __attribute__((cold));
/* Leaves the node area if the team has stopped and this member has made the calls that go on: node-local ranks that wait there for it
 * return an error. */
void weft_team_leave_area(weft_team *team) __attribute__((cold));

#endif
