/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chan_close: the end of a channel: drops what waits in its queues, in both directions. See chan.h.
 */
#include <stdlib.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/chan.h"
#include "p2p/deliver.h"
#include "p2p/rndv_pool.h"
#include "p2p/sendq.h"
#include "p2p/stall.h"

static void drop_one(weft_chan *chan, weft_unexpected *unexpected, int rc)
{
    weft_unexpected_remove(&chan->match, chan->worker, unexpected);
    weft_deliver_drop(unexpected->peer, &unexpected->hdr, unexpected->body, rc);
    weft_unexpected_free(chan->worker, unexpected);
}

static void drop_unexpected(weft_chan *chan)
{
    weft_list_link *link;
    while ((link = weft_list_first(&chan->match.unexpected_all)))
        drop_one(chan, weft_container(link, weft_unexpected, all), WEFT_E_COMM);
}

void weft_chan_drop_refused(weft_chan *chan)
{
    weft_list_link *next;
    weft_stall_ask_all(chan);
    for (weft_list_link *link = chan->match.unexpected_all.next; link != &chan->match.unexpected_all; link = next) {
        weft_unexpected *unexpected = weft_container(link, weft_unexpected, all);
        int rc = chan->refuses(chan, unexpected->hdr.tag);
        next = link->next;
        if (rc)
            drop_one(chan, unexpected, rc);
    }
}

void weft_chan_drop_message(weft_chan *chan, int src, int tag)
{
    weft_unexpected *unexpected = weft_match_find(&chan->match, chan->worker, src, tag);
    if (unexpected)
        drop_one(chan, unexpected, WEFT_E_COMM);
}

/* A program may leave receives by rendezvous incomplete in MPI_Finalize. They end after the channel is freed. Verifying a checksum needs
 * the channel's id, so it is skipped for them. */
static void forget_csums(const weft_chan *chan)
{
    weft_rndv *rndv;
    for (uint32_t i = 0; (rndv = weft_rndv_next_used(chan->worker, i, &i)); i++)
        if (rndv->req->chan == chan)
            rndv->has_csum = false;
}

static void close_context(weft_chan *chan)
{
    if (weft_unlikely(weft_knob.checksum))
        forget_csums(chan);
    weft_sendq_close(chan);
    weft_stall_close(chan);
    drop_unexpected(chan);
    weft_match_close(&chan->match);
    free((void *)chan->ids_out);
}

void weft_chan_close(weft_chan *chan)
{
    weft_worker *worker = chan->worker;
    uint32_t index = chan->id & WEFT_CHAN_INDEX_MASK;
    for (uint32_t i = 0; i < weft_count(chan->subs); i++) {
        if (chan->subs[i])
            close_context(chan->subs[i]);
        free(chan->subs[i]);
    }
    close_context(chan);
    worker->chans[index].chan = NULL;
    worker->chans[index].generation = (worker->chans[index].generation + 1) & 0xfff;
    if (index < worker->chan_lowest && index >= WEFT_CHAN_FIRST_FREE)
        worker->chan_lowest = index;
    weft_group_drop(chan->group);
    free(chan);
}
