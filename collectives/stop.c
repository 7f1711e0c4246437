/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stop: see stop.h. The channel's handlers (on_notify, on_unexpected) run inside an iface's poll: they may send, but must not wait.
 */
#include "collectives/stop.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll_area.h"
#include "core/worker.h"
#include "core/world.h"

/* Body of a notification that the team has stopped. */
typedef struct stop_msg {
    int32_t code; /* enum weft_status of the member that failed */
    uint32_t tag; /* of its schedule; that one and all later ones are over */
    uint32_t origin; /* that member */
    uint32_t truncated; /* member whose receive is truncated; NONE: none */
    uint64_t calls; /* weft_team.stop_calls */
    char text[WEFT_NOTIFY_BYTES - 24]; /* sent up to its terminating 0; may be truncated */
} stop_msg;

/* Body of a notification that calls differ: the sender's call under the number of `tag`, which came from the receiver. */
typedef struct call_msg {
    int32_t code; /* DIFFERS */
    uint32_t tag;
    weft_call call;
} call_msg;

enum { DIFFERS = 1 };
#define NONE UINT32_MAX

/* Whether the schedule with this tag is that of `from` or later. Persistent tags have no order: always true. */
static bool is_covered(int32_t tag, uint32_t from)
{
    return ((uint32_t)tag & WEFT_TAG_PREPARED) || (((uint32_t)tag - from) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2;
}

/* ---- calls that differ ---- */

void weft_calls_differ(weft_team *team, uint32_t from, uint32_t tag, weft_call call)
{
    call_msg msg = {.code = DIFFERS, .tag = tag, .call = call};

    if (weft_team_is_over(team, tag) || !team->chan->is_connected)
        return;
    team->log.reported_to = from;
    team->log.has_reported = true;
    team->log.reported_tag = tag;
    team->log.reported_call = call;
    weft_chan_notify(team->chan, from, &msg, sizeof msg);
}

/* Stops the team if the member notified by weft_calls_differ() has freed the communicator or finalized MPI and will not reply. */
static void on_gone(weft_team *team, uint32_t from)
{
    bool is_bye = from == UINT32_MAX;
    const weft_chan *chan = team->chan;
    const weft_peer *peer = weft_peer_known(chan->worker, weft_group_process(chan->group, team->log.reported_to));
    char here[100];

    if (!team->log.has_reported || team->stopped || (is_bye ? !(peer && peer->bye_received) : from != team->log.reported_to))
        return;
    weft_call_describe(team, team->rank, team->log.reported_call, here, sizeof here);
    weft_team_stop(team,
                   weft_fail(WEFT_E_NOT_SAME,
                       "%s called %s; %s called another collective, and has freed the communicator or finalized MPI since.",
                       weft_member_name_of(team, team->rank).text, here, weft_member_name_of(team, team->log.reported_to).text),
                   (int)team->log.reported_tag);
}

bool weft_calls_has_passed(weft_team *team, uint32_t member, uint32_t *tag)
{
    for (uint32_t i = 0; i < WEFT_CALLS; i++) {
        *tag = team->log.ahead[i].tag;
        if (team->log.ahead[i].is_set && team->log.ahead[i].from == member && !(*tag & WEFT_TAG_PREPARED) &&
            ((*tag - team->sequence) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2) {
            team->log.ahead[i].is_set = 0; /* report it once */
            return true;
        }
    }
    return false;
}

static bool is_same_number(uint32_t a, uint32_t b) { return !((a ^ b) & (WEFT_TAG_BITS | WEFT_TAG_PREPARED)); }

/* This member's call under the number of `tag`; NULL: not made yet, or no longer logged. */
static const weft_call *find_call(const weft_team *team, uint32_t tag, uint32_t *own_tag)
{
    uint32_t i = weft_call_slot(tag);

    *own_tag = team->log.made[i].tag;
    if (team->log.made[i].is_set && is_same_number(*own_tag, tag))
        return &team->log.made[i].call;
    for (const weft_list_link *link = team->active.next; (tag & WEFT_TAG_PREPARED) && link != &team->active; link = link->next) {
        const weft_sched *sched = weft_container(link, weft_sched, active);
        *own_tag = (uint32_t)sched->tag;
        if (is_same_number(*own_tag, tag))
            return &sched->call;
    }
    return NULL;
}

void weft_calls_compare_ahead(weft_team *team, uint32_t tag, weft_call call)
{
    uint32_t i = weft_call_slot(tag);

    if (team->log.ahead[i].tag != tag)
        weft_calls_differ(team, team->log.ahead[i].from, team->log.ahead[i].tag, call);
    else if (team->log.other[i].is_set && is_same_number(team->log.other[i].tag, tag))
        weft_calls_differ(team, team->log.other[i].from, team->log.other[i].tag, call);
    team->log.ahead[i].is_set = team->log.other[i].is_set = 0; /* compared; a number comes again after WEFT_TAG_BITS calls */
}

void weft_calls_on_message(weft_team *team, uint32_t from, uint32_t tag)
{
    uint32_t own_tag, i = weft_call_slot(tag);
    const weft_call *call = find_call(team, tag, &own_tag);
    bool is_past = !(tag & WEFT_TAG_PREPARED) && ((tag - team->sequence) & WEFT_TAG_BITS) > WEFT_TAG_BITS / 2;

    if (!call && is_past)
        return; /* no longer logged */
    if (call && own_tag != tag) {
        weft_calls_differ(team, from, tag, *call);
    } else if (!call && team->log.ahead[i].is_set && team->log.ahead[i].tag != tag && is_same_number(team->log.ahead[i].tag, tag)) {
        team->log.other[i].tag = tag;
        team->log.other[i].from = from;
        team->log.other[i].is_set = 1;
    } else if (!call) {
        team->log.ahead[i].tag = tag;
        team->log.ahead[i].from = from;
        team->log.ahead[i].is_set = 1;
        if (!(tag & WEFT_TAG_PREPARED))
            team->log.newest = tag;
    }
}

static int rejects(const weft_chan *chan, int32_t tag)
{
    const weft_team *team = chan->owner;

    if (tag < 0) /* no collective: mpi/exchange */
        return WEFT_OK;
    return is_covered(tag, team->stop_tag) ? WEFT_E_REVOKED : WEFT_OK; /* the notification with the reason follows */
}

static void on_unexpected(weft_chan *chan, uint32_t from, int32_t tag)
{
    if (tag >= 0)
        weft_calls_on_message(chan->owner, from, (uint32_t)tag);
}

bool weft_team_is_over(const weft_team *team, uint32_t tag)
{
    return team->stopped && is_covered((int32_t)(tag & (WEFT_TAG_BITS | WEFT_TAG_PREPARED)), team->stop_tag);
}

/* The stop is at the number that this member's next schedule gets, and calls of the area may precede it. */
static bool depends_on_calls(const weft_team *team)
{
    return team->area && !team->topology && weft_team_is_over(team, team->sequence) && !weft_team_is_over(team, team->sequence - 1);
}

bool weft_team_call_is_over(const weft_team *team)
{
    return depends_on_calls(team) ? team->area->calls > team->stop_calls : weft_team_is_over(team, team->sequence - 1);
}

bool weft_team_next_call_is_over(const weft_team *team)
{
    return depends_on_calls(team) ? team->area->calls >= team->stop_calls : weft_team_is_over(team, team->sequence);
}

void weft_sched_cancel(weft_sched *sched)
{
    for (uint32_t i = 0; i < sched->req_count; i++)
        if (sched->reqs[i] && sched->reqs[i]->kind == WEFT_REQ_RECV && !sched->reqs[i]->is_done)
            weft_cancel(sched->reqs[i]);
}

/* Ends a schedule under way: no further step begins, posted receives are cancelled. */
static void halt(weft_sched *sched)
{
    if (!sched->rc || sched->rc == WEFT_E_REVOKED)
        sched->rc = weft_fail(sched->team->stopped, "%s", sched->team->stop_text);
    if (sched->pending && !sched->pending->rc)
        sched->pending->rc = sched->rc;
    if (sched->is_parked)
        sched->completion.open(&sched->completion);
    sched->is_parked = false;
    if (sched->receiving)
        weft_cancel(sched->receiving);
    weft_sched_cancel(sched);
}

static bool is_inside_call(const weft_team *team)
{
    for (const weft_list_link *link = team->active.next; link != &team->active; link = link->next)
        if (weft_container(link, weft_sched, active)->is_immediate)
            return true;
    return team->area && weft_shmcoll_is_waiting(team->area);
}

/* Ends the job: no memory is left for the frame that tells `to` of the failed call, for which that member would wait for ever. */
static void __attribute__((cold)) end_job(const weft_team *team, uint32_t to, const stop_msg *msg, int rc)
{
    weft_boot *boot = team->chan->worker->world->boot;
    char text[1000];

    snprintf(text, sizeof text, "%s cannot be told that a collective of its communicator failed, and would hang: %s\nThe collective: %s",
             weft_member_name_of(team, to).text, weft_fail_text(rc), msg->text);
    boot->ops->abort(boot, 1, text);
}

static void forward(weft_team *team, const stop_msg *msg)
{
    uint32_t bytes = (uint32_t)(offsetof(stop_msg, text) + strlen(msg->text) + 1);

    for (uint64_t distance = 1; distance < team->size; distance *= 2) {
        uint32_t to = (uint32_t)((team->rank + distance) % team->size);
        int rc = weft_chan_notify(team->chan, to, msg, bytes);
        if (rc && rc != WEFT_E_PEER) /* WEFT_E_PEER: the job ends, or the launcher reports the death to all */
            end_job(team, to, msg, rc);
    }
}

/* Stops teams created by a call that is over: other members may not have created them. */
static void stop_children(weft_team *team)
{
    for (weft_list_link *link = team->children.next; link != &team->children; link = link->next) {
        weft_team *child = weft_container(link, weft_team, sibling);
        if (is_covered((int32_t)child->created_by, team->stop_tag))
            weft_team_stop(child, weft_fail(weft_stop_code(team->stopped), "%s", team->stop_text), 0);
    }
}

/* The notification that a stopped team sends to its members. */
static stop_msg stop_msg_of(const weft_team *team)
{
    stop_msg msg = {.code = team->stopped, .tag = team->stop_tag, .origin = team->stop_origin, .truncated = NONE,
                    .calls = team->stop_calls};

    snprintf(msg.text, sizeof msg.text, "%.*s", (int)sizeof msg.text - 1, team->stop_text);
    return msg;
}

void weft_team_connected(weft_team *team)
{
    stop_msg msg;

    if (!team->stopped)
        return;
    msg = stop_msg_of(team);
    forward(team, &msg);
}

/* A member has freed the communicator before the notification of a stop reached it, so it forwards none: notifies all, once. */
static void notify_all(weft_team *team)
{
    stop_msg msg = stop_msg_of(team);
    uint32_t bytes = (uint32_t)(offsetof(stop_msg, text) + strlen(msg.text) + 1);

    team->has_notified_all = true;
    for (uint32_t i = 1; i < team->size; i++)
        weft_chan_notify(team->chan, (team->rank + i) % team->size, &msg, bytes);
}

void weft_team_adopt(weft_team *team, weft_team *child, uint32_t number)
{
    child->created_by = number;
    weft_list_remove(&child->sibling);
    weft_list_append(&team->children, &child->sibling);
    if (team->stopped)
        stop_children(team);
}

/* Number of the blocking call that this member is in, or makes next. */
static uint32_t current_number(const weft_team *team)
{
    for (const weft_list_link *link = team->active.next; link != &team->active; link = link->next)
        if (weft_container(link, weft_sched, active)->is_immediate)
            return (uint32_t)weft_container(link, weft_sched, active)->tag & WEFT_TAG_BITS;
    return team->sequence & WEFT_TAG_BITS;
}

static void apply_stop(weft_team *team, const stop_msg *msg)
{
    team->stop_tag = msg->tag;
    team->stop_calls = msg->calls;
    team->stop_origin = msg->origin;
    team->needs_setup = true;
    team->chan->refuses = rejects;
    for (weft_list_link *link = team->active.next, *next; link != &team->active; link = next) {
        weft_sched *sched = weft_container(link, weft_sched, active);
        next = link->next;
        if (is_covered(sched->tag, team->stop_tag))
            halt(sched);
    }
    weft_chan_drop_refused(team->chan);
    if (team->chan->is_connected)
        forward(team, msg);
    if (!is_inside_call(team) && !(team->area && weft_list_first(&team->area->pending))) /* else when these have ended */
        weft_team_leave_area(team);
    stop_children(team);
    if (weft_team_making_is_over(team))
        weft_team_stop(team->making_local, weft_fail(weft_stop_code(team->stopped), "%s", team->stop_text),
                       (int)current_number(team->making_local));
}

/* calls: that this member had made in its area, without the one that failed. */
static void stop_all(weft_team *team, int rc, int tag, uint64_t calls, uint32_t truncated)
{
    stop_msg msg = {.code = rc, .origin = team->rank, .truncated = truncated, .calls = calls};

    /* persistent tags have no order: the schedules started so far continue */
    msg.tag = (uint32_t)tag & WEFT_TAG_PREPARED ? team->sequence & WEFT_TAG_BITS : (uint32_t)tag;
    if (team->stopped && is_covered((int32_t)msg.tag, team->stop_tag))
        return;
    if (!team->stopped) {
        team->stopped = rc;
        team->is_origin = true;
        snprintf(team->stop_text, sizeof team->stop_text, "%.*s", (int)sizeof msg.text - 1, weft_fail_text(rc));
    }
    snprintf(msg.text, sizeof msg.text, "%.*s", (int)sizeof msg.text - 1, team->stop_text);
    apply_stop(team, &msg);
    weft_fail(rc, "%s", team->stop_text); /* restores the text, which notifying may have changed */
}

static uint64_t calls_made(const weft_team *team) { return team->area ? team->area->calls - is_inside_call(team) : 0; }

void weft_team_stop(weft_team *team, int rc, int tag) { stop_all(team, rc, tag, calls_made(team), NONE); }

/* Number of the schedule of a published call, or of the first one after it. */
static uint32_t number_of_call(const weft_team *team, uint64_t call)
{
    const weft_shmcoll *area = team->area;

    if (area->current && area->current->number == call)
        return area->current->tag;
    for (uint64_t n = call; n <= area->calls && n < call + WEFT_SHMCOLL_DEPTH; n++)
        if (area->numbered[n % WEFT_SHMCOLL_DEPTH].call == n)
            return area->numbered[n % WEFT_SHMCOLL_DEPTH].sequence;
    return team->sequence & WEFT_TAG_BITS;
}

void weft_team_stop_in_area(weft_team *team, int rc, uint64_t call)
{
    stop_all(team, rc, (int)number_of_call(team, call), call - 1, NONE);
}

void weft_calls_on_differ(weft_team *team, uint32_t from, uint32_t tag, weft_call remote)
{
    char here[100] = "another collective", there[100];
    uint32_t own_tag;
    const weft_call *local = find_call(team, tag, &own_tag);
    bool is_truncated = local && weft_call_is_truncated(*local, team->rank, remote, from),
         is_remote_truncated = local && weft_call_is_truncated(remote, from, *local, team->rank);

    if (local)
        weft_call_describe(team, team->rank, *local, here, sizeof here);
    weft_call_describe(team, from, remote, there, sizeof there);
    stop_all(team, weft_fail(is_truncated ? WEFT_E_TRUNCATE : WEFT_E_NOT_SAME,
                             "%s called %s; %s called %s.\n"
                             "  All members must call the same collectives in the same order, with equal counts, roots and operators.",
                             weft_member_name_of(team, team->rank).text, here, weft_member_name_of(team, from).text, there),
             (int)tag, calls_made(team), is_remote_truncated ? from : NONE);
}

/* Whether the schedule waits for a message of `member`, or its post in the node area. */
static bool awaits(const weft_sched *sched, uint32_t member)
{
    if (sched->pending)
        return weft_shmcoll_awaits(sched->pending, member);
    if (sched->receiving && sched->receiving->is_posted && sched->receiving->rank == (int)member)
        return true;
    for (uint32_t i = 0; i < sched->req_count; i++)
        if (sched->reqs[i] && weft_calls_is_awaited(sched->reqs[i]) && sched->reqs[i]->rank == (int)member)
            return true;
    return false;
}

void weft_calls_on_gone(weft_team *team, uint32_t member)
{
    for (weft_list_link *link = team->active.next; link != &team->active; link = link->next) {
        weft_sched *sched = weft_container(link, weft_sched, active);
        if (sched->rc || !awaits(sched, member))
            continue;
        weft_team_stop(team, weft_fail(WEFT_E_NOT_SAME, "%s waits for a message of %s, which has freed the communicator or finalized MPI.",
                                       weft_member_name_of(team, team->rank).text, weft_member_name_of(team, member).text), sched->tag);
        return; /* the list may have changed */
    }
}

/* ---- inquiries ---- */

/* `from` waits in the area for a post of this member, which has made a schedule that comes after that post: it made another call. An
 * inquiry that comes late finds the post begun. */
static void handle_post(weft_team *team, uint32_t from, const weft_inquiry *msg)
{
    bool is_begun = !team->area || team->area->op >= msg->op;
    bool is_ahead = ((team->sequence - 1 - msg->tag) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2;

    if (!is_begun && is_ahead)
        weft_calls_on_differ(team, from, msg->tag, msg->call);
}

/* False: the notification is no inquiry. */
static bool handle_inquiry(weft_team *team, uint32_t from, const void *body, uint32_t bytes)
{
    weft_inquiry msg;

    if (bytes != sizeof msg)
        return false;
    memcpy(&msg, body, sizeof msg);
    if (msg.code == WEFT_INQUIRY_MESSAGE)
        weft_calls_on_message(team, from, msg.tag);
    else if (msg.code == WEFT_INQUIRY_POST)
        handle_post(team, from, &msg);
    else
        return false;
    return true;
}

/* ---- notifications ---- */

/* Stops the calls under way and all later ones: the process of `member` has died. Each member does this by itself. */
static void stop_without(weft_team *team, uint32_t member)
{
    uint32_t first = current_number(team);

    for (const weft_list_link *link = team->active.next; link != &team->active; link = link->next) {
        const weft_sched *sched = weft_container(link, weft_sched, active);
        if (!((uint32_t)sched->tag & WEFT_TAG_PREPARED) && is_covered((int32_t)first, (uint32_t)sched->tag & WEFT_TAG_BITS))
            first = (uint32_t)sched->tag & WEFT_TAG_BITS;
    }
    weft_team_stop(team, weft_fail(WEFT_E_PEER, "the process of %s has died", weft_member_name_of(team, member).text), (int)first);
}

int weft_stop_code(int code)
{
    return code == WEFT_E_PEER ? code : code == WEFT_E_NOT_SAME || code == WEFT_E_TRUNCATE ? WEFT_E_NOT_SAME : WEFT_E_OTHER;
}

static void on_notify(weft_chan *chan, uint32_t from, const void *body, uint32_t bytes)
{
    weft_team *team = chan->owner;
    stop_msg msg = {.code = 0};
    call_msg differs;

    if (!bytes) {
        if (chan->lost_count && !team->stopped)
            stop_without(team, chan->lost);
        if (team->stopped && from != UINT32_MAX && !team->has_notified_all)
            notify_all(team);
        on_gone(team, from);
        if (from != UINT32_MAX && !team->stopped)
            weft_calls_on_gone(team, from);
        return;
    }
    if (bytes == sizeof differs) {
        memcpy(&differs, body, bytes);
        if (differs.code == DIFFERS) {
            weft_calls_on_differ(team, from, differs.tag, differs.call);
            return;
        }
    }
    if (handle_inquiry(team, from, body, bytes) || bytes <= offsetof(stop_msg, text) || bytes > sizeof msg)
        return;
    memcpy(&msg, body, bytes);
    msg.text[bytes - offsetof(stop_msg, text) - 1] = 0;
    if (msg.origin >= team->size) /* damaged: the name of no member */
        msg.origin = from;
    if (team->stopped && is_covered((int32_t)msg.tag, team->stop_tag))
        return;
    if (!team->stopped) {
        team->stopped = msg.truncated == team->rank ? WEFT_E_TRUNCATE : weft_stop_code(msg.code);
        if (team->stopped != WEFT_E_OTHER)
            snprintf(team->stop_text, sizeof team->stop_text, "%s", msg.text);
        else
            snprintf(team->stop_text, sizeof team->stop_text, "%s of this communicator failed in a collective: %s",
                     weft_member_name_of(team, msg.origin).text, msg.text);
    }
    apply_stop(team, &msg);
}

int weft_team_stop_error(weft_team *team)
{
    int rc = team->stopped == WEFT_E_TRUNCATE ? WEFT_E_NOT_SAME : team->stopped; /* the truncated member reports truncation itself, once */

    return weft_fail(rc, "%s", team->stop_text);
}

int weft_team_stop_error_of_call(weft_team *team, weft_call call)
{
    char own[80], here[100], why[sizeof team->stop_text];
    int rc = weft_team_stop_error(team);

    snprintf(own, sizeof own, "%s called ", weft_member_name_of(team, team->rank).text);
    if (!strncmp(team->stop_text, own, strlen(own)))
        return rc;
    memcpy(why, team->stop_text, sizeof why);
    weft_call_describe(team, team->rank, call, here, sizeof here);
    return weft_fail(rc, "%s%s; %s", own, here, why);
}

static void __attribute__((noreturn, cold)) abort_job(const weft_team *team, int rc)
{
    weft_boot *boot = team->chan->worker->world->boot;
    char text[800];

    snprintf(text, sizeof text,
             "a message by which the members of a communicator agree on their next steps was damaged: %s\n"
             "The job ends, since the members would hang. Likely failing memory or network: check the error counters of host and device.",
             weft_fail_text(rc));
    boot->ops->abort(boot, 1, text);
}

int weft_team_trust(const weft_team *team, int rc)
{
    if (weft_unlikely(weft_status_is_damage(rc)))
        abort_job(team, rc);
    return rc;
}

void weft_team_begin_making(weft_team *team, weft_team *local, enum weft_call_maker maker)
{
    weft_call call = {WEFT_CALL_MAKES | WEFT_CALL_INTER, maker};

    team->making_tag = weft_call_tag(call, team->sequence++ & WEFT_TAG_BITS, false);
    team->making_local = local;
    team->maker = maker;
    team->is_making = true;
    weft_calls_log(team, team->making_tag, call);
}

void weft_team_leave_area(weft_team *team)
{
    if (team->area && weft_team_next_call_is_over(team))
        weft_shmcoll_leave(team->area, weft_team_stop_error(team));
}

void weft_stop_open(weft_team *team)
{
    weft_list_init(&team->active);
    weft_list_init(&team->children);
    weft_list_init(&team->sibling);
    team->chan->owner = team;
    team->chan->on_notify = on_notify;
    team->chan->on_unexpected = on_unexpected;
    team->log.newest = UINT32_MAX;
}

void weft_stop_close(weft_team *team)
{
    if (!team->children.next) /* never opened */
        return;
    while (weft_list_take(&team->children))
        ;
    weft_list_remove(&team->sibling);
}
