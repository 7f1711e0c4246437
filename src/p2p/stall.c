/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stall: see stall.h. A stall counts in match.unexpected_count, so that receives without stalls need no extra check.
 */
#include "p2p/stall.h"

#include <stdlib.h>

#include "base/bag.h"
#include "base/fifomap.h"
#include "core/world.h"

typedef struct weft_stall {
    weft_list_link link; /* in chan->stalls */
    weft_fifo_entry entry; /* in chan->stalls, by source */
    weft_peer *peer;     /* the stalled sender */
    int32_t src;         /* its rank in the channel */
    weft_stalled from;   /* identifies its queue */
    weft_bag asked;      /* tags of ASKs sent, without a STALLED since */
} weft_stall;

typedef struct weft_stalls { /* of a channel */
    weft_fifomap map; /* by source */
    weft_list_link all;
} weft_stalls;

static weft_stall *stall_at(const weft_chan *chan, int32_t src)
{
    weft_fifo_entry *entry = chan->stalls ? weft_fifomap_find(&chan->stalls->map, (uint32_t)src) : NULL;
    return entry ? weft_container(entry, weft_stall, entry) : NULL;
}

/* Sends nothing after BYE of either side: a peer that has sent BYE holds no messages back. */
static void send_ask(weft_peer *peer, weft_stalled to, int32_t tag)
{
    weft_ask body = {.seq = peer->seq_in};
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_ASK, .chan = to.chan, .src = (int32_t)to.dst, .tag = tag, .bytes = sizeof body},
                        .body = &body};
    int rc;
    if (peer->bye_sent || peer->bye_received)
        return;
    rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_abort_job(peer, rc);
    peer->worker->counters[WEFT_COUNT_ASKS]++;
}

static void ask_one(weft_stall *stall, int32_t tag)
{
    if (weft_bag_has(&stall->asked, tag))
        return;
    weft_bag_add(&stall->asked, tag); /* out of memory: costs a duplicate ASK */
    send_ask(stall->peer, stall->from, tag);
}

void weft_stall_ask(weft_chan *chan, int32_t src, int32_t tag)
{
    if (!chan->stalls)
        return;
    if (src != WEFT_ANY) {
        weft_stall *stall = stall_at(chan, src);
        if (stall)
            ask_one(stall, tag);
        return;
    }
    for (weft_list_link *link = chan->stalls->all.next; link != &chan->stalls->all; link = link->next)
        ask_one(weft_container(link, weft_stall, link), tag);
}

static void ask_posted(void *arg, const weft_req *req)
{
    weft_stall *stall = arg;
    if (req->rank == stall->src || req->rank == WEFT_ANY)
        ask_one(stall, req->tag);
}

static weft_stall *begin(weft_chan *chan, weft_peer *peer, int32_t src)
{
    weft_stall *stall = NULL;
    if (!chan->stalls && (chan->stalls = malloc(sizeof *chan->stalls))) {
        weft_fifomap_open(&chan->stalls->map);
        weft_list_init(&chan->stalls->all);
    }
    if (!chan->stalls || !(stall = calloc(1, sizeof *stall)))
        return NULL;
    stall->peer = peer;
    stall->src = src;
    weft_fifomap_insert(&chan->stalls->map, &stall->entry, (uint32_t)src);
    weft_list_append(&chan->stalls->all, &stall->link);
    chan->match.unexpected_count++;
    return stall;
}

/* Wakes sleeping threads: one that probes looks again and sends its ASK. */
static void rouse(weft_worker *worker)
{
    if (weft_unlikely(worker->is_asleep))
        worker->world->sleep_ops->wake(worker);
}

void weft_stall_on_stalled(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    const weft_stalled *from = body;
    weft_stall *stall = chan ? stall_at(chan, hdr->src) : NULL;
    if (!chan || chan->refuses) {
        send_ask(peer, *from, WEFT_ASK_ALL);
        return;
    }
    if (stall) {
        weft_bag_remove(&stall->asked, hdr->tag);
        if (weft_match_is_posted(&chan->match, hdr->src, hdr->tag))
            ask_one(stall, hdr->tag);
    } else if ((stall = begin(chan, peer, hdr->src))) {
        stall->from = *from;
        weft_match_each_posted(&chan->match, ask_posted, stall);
    } else { /* out of memory: the sender must not wait for ASKs */
        send_ask(peer, *from, WEFT_ASK_ALL);
    }
    if (chan->on_unexpected && (uint32_t)hdr->src < chan->size)
        chan->on_unexpected(chan, (uint32_t)hdr->src, hdr->tag);
    rouse(peer->worker);
}

static void end(weft_chan *chan, weft_stall *stall)
{
    chan->match.unexpected_count--;
    weft_fifomap_remove(&chan->stalls->map, &stall->entry);
    weft_list_remove(&stall->link);
    weft_bag_clear(&stall->asked);
    free(stall);
}

void weft_stall_on_drained(weft_peer *peer, const weft_hdr *hdr)
{
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    weft_stall *stall = chan ? stall_at(chan, hdr->src) : NULL;
    if (stall)
        end(chan, stall);
}

void weft_stall_ask_all(weft_chan *chan)
{
    if (!chan->stalls)
        return;
    for (weft_list_link *link = chan->stalls->all.next; link != &chan->stalls->all; link = link->next) {
        weft_stall *stall = weft_container(link, weft_stall, link);
        send_ask(stall->peer, stall->from, WEFT_ASK_ALL);
    }
}

void weft_stall_close(weft_chan *chan)
{
    if (!chan->stalls)
        return;
    while (!weft_list_is_empty(&chan->stalls->all)) {
        weft_stall *stall = weft_container(chan->stalls->all.next, weft_stall, link);
        send_ask(stall->peer, stall->from, WEFT_ASK_ALL);
        end(chan, stall);
    }
    weft_fifomap_close(&chan->stalls->map);
    free(chan->stalls);
}
