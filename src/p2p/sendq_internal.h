/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq_internal: one queue of sendq.h, for sendq.c (what enters and leaves it) and sendq_ask.c (what it and the receiver tell each other).
 */
#ifndef WEFT_P2P_SENDQ_INTERNAL_H
#define WEFT_P2P_SENDQ_INTERNAL_H

#include "base/bag.h"
#include "base/fifomap.h"
#include "p2p/sendq.h"
#include "p2p/sendq_records.h"
#include "p2p/stall.h"

typedef struct weft_sendq {
    weft_list_link link;    /* in peer->sendqs while it has records */
    weft_fifo_entry entry;  /* in chan->sendqs, by destination */
    weft_list_link all;     /* in chan->sendqs */
    weft_peer *peer;        /* destination */
    weft_chan *chan;        /* NULL: closed; copies are still sent */
    weft_stalled stall_id;     /* identifies the queue in frames of the receiver */
    uint32_t chan_out;      /* the receiver's id of the channel */
    uint32_t src;           /* own rank in the channel */
    weft_records records;
    uint64_t put, left;     /* records ever written; records sent or dropped */
    uint32_t seq;           /* of the last frame with a message of this channel; invalid while is_seq_late */
    bool is_seq_late;       /* that frame, or one before the queue, still waits for the iface (peer->waiting) */
    bool sends_all;         /* overdraft for all records */
    bool is_lasting;           /* as the channel's */
    bool is_helped;         /* while it has records: counts in worker->helped */
    bool stalled_sent;           /* STALLED was sent since the queue was empty */
    weft_bag tags;          /* tags of the records; copies and requests */
    weft_bag asked;         /* tags of ASKs that no record has */
    weft_bag wanted;        /* tags of ASKs that a record has: overdraft until the first such record has left */
    weft_bag stale;         /* tags of ASKs that arrived while messages left; answered by STALLED once none leaves */
    weft_list_link batches; /* shared requests not ended, oldest first; req->order: index of the first record, counted like put */
} weft_sendq;

typedef struct weft_sendqs { /* of a channel */
    weft_fifomap map; /* by destination */
    weft_list_link all;
} weft_sendqs;

static inline bool weft_sendq_has_records(const weft_sendq *queue) { return queue->records.first; }

static inline bool weft_sendq_overdraws(const weft_sendq *queue) { return queue->sends_all || queue->wanted.keys; }

static inline weft_sendq *weft_sendq_at(const weft_chan *chan, int dst)
{
    weft_fifo_entry *entry = chan->sendqs ? weft_fifomap_find(&chan->sendqs->map, (uint32_t)dst) : NULL;
    return entry ? weft_container(entry, weft_sendq, entry) : NULL;
}

/* sendq_ask.c. STALLED for a tag, or DRAINED. */
void weft_sendq_send_frame(weft_sendq *queue, enum weft_frame_kind kind, int32_t tag);
/* STALLED: the queue waits for credit. */
void weft_sendq_send_stalled(weft_sendq *queue);
/* A requested message has left: ends the overdraft for the tag and sends STALLED, so that the receiver may ask for the next one. */
void weft_sendq_answer(weft_sendq *queue, int32_t tag);
/* Called when no queue can send: sends STALLED for the stale ASKs whose tags are still queued, so that the receiver asks again. */
void weft_sendq_offer_stale(weft_peer *peer);

#endif
