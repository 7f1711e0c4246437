/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stop: see stop.h.
 */
#include "collectives/stop.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "collectives/node.h"
#include "core/lane.h"

/* The body of a notification. */
typedef struct stop_note {
    int32_t code; /* enum weft_status of the member that failed */
    uint32_t tag; /* of its plan: this one and all later ones are over */
    uint32_t origin;
    char text[WEFT_NOTIFY_BYTES - 12]; /* sent up to its end only; may be cut */
} stop_note;

/* Is the plan with this tag the one with `from`, or a later one? A persistent plan's tag tells no order: it is. */
static bool is_covered(int32_t tag, uint32_t from)
{
    return ((uint32_t)tag & WEFT_TAG_PREPARED) || (((uint32_t)tag - from) & WEFT_TAG_BITS) <= WEFT_TAG_BITS / 2;
}

static int refuses(const weft_chan *chan, int32_t tag)
{
    const weft_team *team = chan->owner;

    return is_covered(tag, team->stop_tag) ? weft_stop_code(team->stopped) : WEFT_OK;
}

bool weft_team_is_over(const weft_team *team, uint32_t tag)
{
    return team->stopped && is_covered((int32_t)(tag & (WEFT_TAG_BITS | WEFT_TAG_PREPARED)), team->stop_tag);
}

/* Ends a plan: it begins nothing more; receives that will never be served are cancelled. */
static void halt(weft_plan *plan)
{
    if (!plan->rc)
        plan->rc = weft_team_refuse(plan->team);
    if (plan->receiving)
        weft_cancel(plan->receiving);
    weft_plan_cancel(plan);
}

static bool is_inside_call(const weft_team *team)
{
    for (const weft_link *link = team->active.next; link != &team->active; link = link->next)
        if (weft_container(link, weft_plan, active)->is_live)
            return true;
    return team->node && weft_node_is_waiting(team->node);
}

static void forward(weft_team *team, const stop_note *note)
{
    uint32_t bytes = (uint32_t)(offsetof(stop_note, text) + strlen(note->text) + 1);

    for (uint64_t far = 1; far < team->size; far *= 2)
        weft_chan_notify(team->chan, (uint32_t)((team->rank + far) % team->size), note, bytes); /* who cannot be reached is lost: its job ends */
}

/* Those that were made in a call that is over: its other members may not have made them. */
static void stop_children(weft_team *team)
{
    for (weft_link *link = team->children.next; link != &team->children; link = link->next) {
        weft_team *child = weft_container(link, weft_team, sibling);
        if (is_covered((int32_t)child->made_by, team->stop_tag))
            weft_team_stop(child, weft_fail(weft_stop_code(team->stopped), "%s", team->stop_text), 0);
    }
}

void weft_team_adopt(weft_team *team, weft_team *child)
{
    child->made_by = (team->sequence - 1) & WEFT_TAG_BITS;
    weft_list_append(&team->children, &child->sibling);
    if (child->stopped) { /* by a member that was ready sooner */
        stop_note note = {.code = child->stopped, .tag = child->stop_tag, .origin = child->stop_origin};
        snprintf(note.text, sizeof note.text, "%.*s", (int)sizeof note.text - 1, child->stop_text);
        forward(child, &note);
    }
    if (team->stopped)
        stop_children(team);
}

static void spread(weft_team *team, const stop_note *note)
{
    team->stop_tag = note->tag;
    team->stop_origin = note->origin;
    team->is_unsettled = true;
    team->chan->refuses = refuses;
    for (weft_link *link = team->active.next, *next; link != &team->active; link = next) {
        weft_plan *plan = weft_container(link, weft_plan, active);
        next = link->next;
        if (is_covered(plan->tag, team->stop_tag))
            halt(plan);
    }
    weft_chan_drop_refused(team->chan);
    if (team->chan->is_connected)
        forward(team, note);
    if (!is_inside_call(team) && weft_team_is_over(team, team->sequence))
        weft_team_leave_node(team);
    stop_children(team);
}

void weft_team_stop(weft_team *team, int rc, int tag)
{
    stop_note note = {.code = rc, .origin = team->rank};

    if (team->stopped)
        return;
    note.tag = (uint32_t)tag & WEFT_TAG_PREPARED ? team->sequence & WEFT_TAG_BITS : (uint32_t)tag; /* those before it go on here, too */
    snprintf(note.text, sizeof note.text, "%s", weft_fail_text(rc));
    team->stopped = rc;
    team->is_origin = true;
    snprintf(team->stop_text, sizeof team->stop_text, "%s", note.text);
    spread(team, &note);
    weft_fail(rc, "%s", team->stop_text); /* what notifying others may have said is no reason */
}

int weft_stop_code(int code) { return code == WEFT_E_NOT_SAME || code == WEFT_E_TRUNCATE ? WEFT_E_NOT_SAME : WEFT_E_OTHER; }

static void on_notify(weft_chan *chan, uint32_t from, const void *body, uint32_t bytes)
{
    weft_team *team = chan->owner;
    stop_note note = {.code = 0};

    (void)from;
    if (bytes <= offsetof(stop_note, text) || bytes > sizeof note)
        return;
    memcpy(&note, body, bytes);
    note.text[bytes - offsetof(stop_note, text) - 1] = 0;
    if (team->stopped && is_covered((int32_t)note.tag, team->stop_tag))
        return;
    if (!team->stopped) {
        team->stopped = weft_stop_code(note.code);
        if (team->stopped == WEFT_E_NOT_SAME)
            snprintf(team->stop_text, sizeof team->stop_text, "%s", note.text);
        else
            snprintf(team->stop_text, sizeof team->stop_text, "rank %u of this communicator failed in a collective: %s", note.origin,
                     note.text);
    }
    spread(team, &note);
}

int weft_team_refuse(weft_team *team)
{
    int rc = team->stopped == WEFT_E_TRUNCATE ? WEFT_E_NOT_SAME : team->stopped; /* who was cut said so once */

    return weft_fail(rc, "%s", team->stop_text);
}

int weft_team_refuse_call(weft_team *team, weft_call call)
{
    char own[40], here[100], why[sizeof team->stop_text];
    int rc = weft_team_refuse(team);

    snprintf(own, sizeof own, "rank %u called ", team->rank);
    if (!strncmp(team->stop_text, own, strlen(own)))
        return rc;
    memcpy(why, team->stop_text, sizeof why);
    weft_call_describe(call, here, sizeof here);
    return weft_fail(rc, "%s%s; %s", own, here, why);
}

void weft_team_leave_node(weft_team *team)
{
    if (team->node && weft_team_is_over(team, team->sequence))
        weft_node_leave(team->node, weft_team_refuse(team));
}

void weft_stop_open(weft_team *team)
{
    weft_list_init(&team->active);
    weft_list_init(&team->children);
    weft_list_init(&team->sibling);
    team->chan->owner = team;
    team->chan->on_notify = on_notify;
}

void weft_stop_close(weft_team *team)
{
    if (!team->children.next) /* never opened */
        return;
    while (weft_list_take(&team->children))
        ;
    weft_list_remove(&team->sibling);
}
