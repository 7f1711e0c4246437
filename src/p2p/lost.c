/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lost: see lost.h. What a dead process has sent entirely stays to be received; announced and incomplete messages are dropped.
 * Invariant: chan->match.unexpected_count is not 0 while chan->lost_count is not, so that receives take the path that looks here.
 */
#include "p2p/lost.h"

#include <stdio.h>

#include "base/status.h"
#include "core/world.h"
#include "mem/segment.h"
#include "p2p/eager_frags.h"
#include "p2p/rndv.h"
#include "p2p/sendq.h"

static int dead(int member) { return weft_fail(WEFT_E_PEER, "the process of rank %d of the communicator has died", member); }

bool weft_lost_is_member(const weft_chan *chan, uint32_t rank)
{
    const weft_peer *peer = chan->lost_count ? weft_peer_known(chan->worker, weft_group_process(chan->group, rank)) : NULL;
    return peer && peer->state == WEFT_PEER_FAILED;
}

/* -- posted receives -- */

typedef struct search {
    int source;
    weft_req *found; /* oldest from this source */
} search;

static void consider(void *arg, const weft_req *req)
{
    search *self = arg;
    if (req->rank == self->source && (!self->found || req->order < self->found->order))
        self->found = (weft_req *)req;
}

/* Ends the oldest posted receive from `source` with rc; its status has `member` as the source. False: there is none. */
static bool end_posted(weft_chan *chan, int source, int member, int rc)
{
    search self = {.source = source};
    weft_match_each_posted(&chan->match, consider, &self);
    if (!self.found)
        return false;
    weft_match_unpost(&chan->match, self.found);
    self.found->recv_info = (weft_recv_info){.source = member, .tag = WEFT_ANY_TAG};
    weft_req_end(self.found, rc);
    return true;
}

/* The member of the next death that has not ended a receive from any source; -1: none. *number: deaths up to it. */
static int untold(const weft_chan *chan, uint32_t *number)
{
    const weft_worker *worker = chan->worker;
    int member = -1;
    for (*number = chan->deaths_told; *number < worker->deaths_seen && member < 0; ++*number)
        member = weft_group_rank_of(chan->group, (weft_process){worker->world->boot->job, worker->recovery->dead[*number]});
    return member;
}

static void tell(weft_chan *chan)
{
    uint32_t number;
    int member;
    while ((member = untold(chan, &number)) >= 0 && end_posted(chan, WEFT_ANY, member, dead(member)))
        chan->deaths_told = number;
}

void weft_lost_on_posted(weft_chan *chan, const weft_req *req)
{
    int source = req->rank;
    if (source == WEFT_ANY)
        tell(chan);
    else if (weft_lost_is_member(chan, (uint32_t)source))
        end_posted(chan, source, source, dead(source));
}

static void end_receives(weft_chan *chan, uint32_t member, int rc)
{
    while (end_posted(chan, (int)member, (int)member, rc))
        ;
}

void weft_lost_left(weft_chan *chan, uint32_t member, int rc)
{
    weft_peer *peer = weft_peer_known(chan->worker, weft_group_process(chan->group, member));
    char cause[512];
    snprintf(cause, sizeof cause, "%s", weft_fail_text(rc));
    end_receives(chan, member, rc);
    if (!peer)
        return;
    weft_rndv_left(peer, chan, weft_fail(rc, "%s", cause));
    weft_sendq_leave(peer, chan, weft_fail(rc, "%s", cause));
    weft_peer_withdraw(peer, weft_chan_id_at(chan, (int)member), weft_fail(rc, "%s", cause));
}

int weft_lost_probe(const weft_chan *chan, int src, weft_recv_info *info)
{
    uint32_t number;
    int member = src == WEFT_ANY ? untold(chan, &number) : weft_lost_is_member(chan, (uint32_t)src) ? src : -1;
    if (member < 0)
        return 0;
    *info = (weft_recv_info){.source = member, .tag = WEFT_ANY_TAG};
    return dead(member);
}

/* -- a peer that has called MPI_Finalize -- */

static void withdraw(weft_chan *chan, weft_peer *peer)
{
    int member = weft_group_rank_of(chan->group, (weft_process){peer->proc_id.job, peer->proc_id.rank});
    if (member < 0 || !chan->is_connected || !weft_chan_is_left(chan, peer))
        return;
    weft_peer_withdraw(peer, weft_chan_id_at(chan, member), 0);
}

void weft_lost_finalized(weft_peer *peer)
{
    weft_worker *worker = peer->worker;
    for (uint32_t i = 0; i < worker->chan_capacity && !weft_list_is_empty(&peer->waiting); i++) {
        weft_chan *chan = worker->chans[i].chan;
        for (uint32_t k = 0; chan && k < weft_count(chan->subs); k++)
            if (chan->subs[k])
                withdraw(chan->subs[k], peer);
        if (chan)
            withdraw(chan, peer);
    }
    weft_rndv_end_unmatched(peer);
    weft_sendq_give_up(peer, 0);
}

/* -- a peer that has died -- */

/* Announced messages, whose data are not here. */
static void drop_announced(weft_chan *chan, const weft_peer *peer)
{
    for (weft_list_link *link = chan->match.unexpected_all.next, *next; link != &chan->match.unexpected_all; link = next) {
        weft_unexpected *unexpected = weft_container(link, weft_unexpected, all);
        next = link->next;
        if (unexpected->peer != peer || unexpected->hdr.kind != WEFT_FRAME_RTS)
            continue;
        weft_unexpected_remove(&chan->match, chan->worker, unexpected);
        weft_unexpected_free(chan->worker, unexpected);
    }
}

static void lose_member(weft_chan *chan, const weft_peer *peer)
{
    int member = weft_group_rank_of(chan->group, (weft_process){peer->proc_id.job, peer->proc_id.rank});
    if (member < 0)
        return;
    chan->lost = (uint32_t)member;
    if (!chan->lost_count++)
        chan->match.unexpected_count++;
    if (chan->on_notify) /* it may end requests of the channel */
        chan->on_notify(chan, UINT32_MAX, NULL, 0);
    drop_announced(chan, peer);
    end_receives(chan, (uint32_t)member, dead(member));
}

void weft_lost_peer(weft_peer *peer, int rc)
{
    weft_worker *worker = peer->worker;
    char cause[512];
    snprintf(cause, sizeof cause, "%s", weft_fail_text(rc));
    peer->credit = 0; /* sends take the slow path, where they end */
    for (uint32_t i = 0; i < worker->chan_capacity; i++) {
        weft_chan *chan = worker->chans[i].chan;
        if (!chan)
            continue;
        for (uint32_t k = 0; k < weft_count(chan->subs); k++)
            if (chan->subs[k])
                lose_member(chan->subs[k], peer);
        lose_member(chan, peer);
    }
    weft_eager_frags_lost(peer, weft_fail(rc, "%s", cause));
    weft_rndv_lost(peer, weft_fail(rc, "%s", cause));
}

void weft_lost_on_death(weft_worker *worker, uint32_t rank)
{
    const weft_boot *boot = worker->world->boot;
    weft_peer *peer = rank == boot->rank ? NULL : weft_peer_find_dead(worker, (weft_process){boot->job, rank});
    char text[100];
    if (peer) {
        worker->callbacks->peer_failed(worker, peer, weft_fail(WEFT_E_PEER, "the process of rank %u has died", rank));
        for (uint32_t i = 0; i < worker->chan_capacity; i++)
            if (worker->chans[i].chan && worker->chans[i].chan->lost_count)
                tell(worker->chans[i].chan);
    } else if (rank != boot->rank) {
        snprintf(text, sizeof text, "no memory to take note of the death of rank %u", rank);
        worker->world->boot->ops->abort(worker->world->boot, 1, text);
    }
}
