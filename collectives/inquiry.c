/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inquiry: see inquiry.h.
 */
#include "collectives/inquiry.h"

#include "collectives/shmcoll_check.h"
#include "collectives/stop.h"
#include "core/worker.h"

/* Most members to which one schedule sends inquiries: a member that makes another call waits too, for fewer. */
#define MEMBERS_MAX 16

static bool is_finalized(const weft_team *team, uint32_t member)
{
    const weft_peer *peer = weft_peer_known(team->chan->worker, weft_group_process(team->chan->group, member));

    return peer && weft_chan_is_left(team->chan, peer);
}

/* Returns false if the team has stopped. */
static bool send_to(weft_team *team, uint32_t member, const weft_inquiry *msg)
{
    if (msg->code == WEFT_INQUIRY_MESSAGE && is_finalized(team, member))
        weft_calls_on_gone(team, member);
    else
        weft_chan_notify(team->chan, member, msg, sizeof *msg); /* an error is the peer's: it ends the job */
    return !team->stopped;
}

static bool send_for_sched(weft_team *team, const weft_sched *sched)
{
    weft_inquiry msg = {.code = WEFT_INQUIRY_MESSAGE, .tag = (uint32_t)sched->tag};
    uint32_t count = 0;

    if (sched->receiving && sched->receiving->is_posted)
        return send_to(team, (uint32_t)sched->receiving->rank, &msg);
    for (uint32_t i = 0; sched->pending && i < team->size && count < MEMBERS_MAX; i++) {
        if (!weft_shmcoll_awaits(sched->pending, i))
            continue;
        if (!send_to(team, i, &msg))
            return false;
        count++;
    }
    for (uint32_t i = 0; i < sched->req_count && count < MEMBERS_MAX; i++) {
        if (!sched->reqs[i] || !weft_calls_is_awaited(sched->reqs[i]))
            continue;
        if (!send_to(team, (uint32_t)sched->reqs[i]->rank, &msg))
            return false;
        count++;
    }
    return true;
}

static void send_for_area(weft_team *team)
{
    const weft_shmcoll *area = team->area;
    weft_inquiry msg = {.code = WEFT_INQUIRY_POST, .tag = team->sequence & WEFT_TAG_BITS, .op = area->awaited,
                        .call = weft_shmcoll_latest_call(area)};

    for (uint32_t i = 0; i < area->ranks; i++)
        if (i != area->rank && !weft_shmcoll_has_posted(area, i, area->awaited) && !send_to(team, weft_shmcoll_rank_of(area, i), &msg))
            return;
}

void weft_inquiry_send(weft_chan *chan)
{
    weft_team *team = chan->owner;

    if (team->stopped || !team->chan->is_connected)
        return;
    if (team->area && team->area->awaited && !team->area->current)
        send_for_area(team);
    if (team->is_making && team->awaits_remote) {
        weft_inquiry msg = {.code = WEFT_INQUIRY_MESSAGE, .tag = team->making_tag};
        if (!send_to(team, team->remote.first, &msg))
            return;
    }
    for (weft_list_link *link = team->active.next; link != &team->active; link = link->next)
        if (!send_for_sched(team, weft_container(link, weft_sched, active)))
            return;
}
