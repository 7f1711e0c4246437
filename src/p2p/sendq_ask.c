/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq_ask: what a queue of messages without credit and its receiver tell each other: STALLED and DRAINED go to the receiver, ASK comes
 * from it (docs/wire.md, "Credits"). Called by sendq.c and dispatch.c.
 */
#include "p2p/sendq_internal.h"

#include "base/status.h"

void weft_sendq_send_frame(weft_sendq *queue, enum weft_frame_kind kind, int32_t tag)
{
    bool is_stalled = kind == WEFT_FRAME_STALLED;
    weft_peer *peer = queue->peer;
    weft_frame frame = {.hdr = {.kind = (uint8_t)kind, .chan = queue->chan_out, .src = (int32_t)queue->src, .tag = tag,
                                 .bytes = is_stalled ? sizeof queue->stall_id : 0}, .body = &queue->stall_id};
    int rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_abort_job(peer, rc);
}

void weft_sendq_send_stalled(weft_sendq *queue)
{
    queue->stalled_sent = true;
    weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, WEFT_ANY_TAG);
}

void weft_sendq_answer(weft_sendq *queue, int32_t tag)
{
    if (!weft_bag_remove(&queue->wanted, tag))
        return;
    queue->peer->overdrafts -= !weft_sendq_overdraws(queue);
    if (weft_sendq_has_records(queue))
        weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, tag);
}

/* Records an ASK for a tag that no record has. */
static void record_ask(weft_sendq *queue, int32_t tag)
{
    if (!weft_bag_has(&queue->asked, tag) && !weft_bag_add(&queue->asked, tag))
        weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, tag); /* out of memory: makes the receiver ask again */
}

static bool has_tag(const weft_sendq *queue, int32_t tag) { return tag < 0 || weft_bag_has(&queue->tags, tag); }

void weft_sendq_offer_stale(weft_peer *peer)
{
    for (weft_list_link *link = peer->sendqs.next; link != &peer->sendqs && peer->offers; link = link->next) {
        weft_sendq *queue = weft_container(link, weft_sendq, link);
        uint32_t at = 0;
        int32_t tag;
        peer->offers -= queue->stale.keys != 0;
        while (weft_bag_next(&queue->stale, &at, &tag)) {
            if (has_tag(queue, tag))
                weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, tag);
            else
                record_ask(queue, tag);
        }
        weft_bag_clear(&queue->stale);
    }
}

static weft_sendq *find(const weft_peer *peer, const weft_hdr *hdr)
{
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    if (chan)
        return weft_sendq_at(chan, hdr->src);
    for (weft_list_link *link = peer->sendqs.next; link != &peer->sendqs; link = link->next) {
        weft_sendq *queue = weft_container(link, weft_sendq, link);
        if (!queue->chan && queue->stall_id.chan == hdr->chan && queue->stall_id.dst == (uint32_t)hdr->src)
            return queue;
    }
    return NULL;
}

/* Was a message of the channel sent that the receiver had not handled when it asked? It may be the requested one. */
static bool is_stale(weft_sendq *queue, uint32_t seq)
{
    weft_peer *peer = queue->peer;
    if (!weft_list_is_empty(&peer->waiting))
        return true;
    if (queue->is_seq_late) {
        queue->is_seq_late = false;
        queue->seq = peer->seq_out;
    }
    return (int32_t)(seq - queue->seq) < 0;
}

static void overdraw(weft_sendq *queue, int32_t tag)
{
    bool did = weft_sendq_overdraws(queue);
    if (tag == WEFT_ASK_ALL || (!weft_bag_has(&queue->wanted, tag) && !weft_bag_add(&queue->wanted, tag)))
        queue->sends_all = true;
    queue->peer->overdrafts += !did;
}

/* Defers a stale ASK: the messages in flight usually satisfy it. */
static void postpone(weft_sendq *queue, int32_t tag)
{
    bool had = queue->stale.keys != 0;
    if (weft_bag_has(&queue->stale, tag))
        return;
    if (weft_bag_add(&queue->stale, tag))
        queue->peer->offers += !had;
    else
        weft_sendq_send_frame(queue, WEFT_FRAME_STALLED, tag);
}

void weft_sendq_on_ask(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_sendq *queue = find(peer, hdr);
    const weft_ask *ask = body;
    if (!queue || !weft_sendq_has_records(queue)) /* drained meanwhile; the receiver gets DRAINED */
        return;
    if (hdr->tag != WEFT_ASK_ALL && is_stale(queue, ask->seq))
        postpone(queue, hdr->tag);
    else if (has_tag(queue, hdr->tag))
        overdraw(queue, hdr->tag);
    else
        record_ask(queue, hdr->tag);
}
