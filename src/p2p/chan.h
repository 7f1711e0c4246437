/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chan: a private message space. Knows ranks, peers and matching; nothing of communicators. A frame travels with the id that its
 * *receiver* gave the channel, so a frame never comes before its channel exists. Communicators, windows and files are tenants
 * that own one or two channels.
 */
#ifndef WEFT_P2P_CHAN_H
#define WEFT_P2P_CHAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/worker.h"
#include "p2p/match.h"

typedef struct weft_chan weft_chan;

/* The owner's side of a channel: frames that are no messages. No bytes: `from` has freed its channel, or some peer (UINT32_MAX) says goodbye. Called inside an iface's poll: may send, must not wait. */
typedef void weft_chan_on_notify(weft_chan *chan, uint32_t from, const void *body, uint32_t bytes);

struct weft_chan {
    weft_worker *worker;
    uint32_t id;               /* ours: generation << 20 | index */
    uint32_t size, rank;       /* of the remote group; ours in the local one */
    uint32_t id_out;           /* what all members call it, when they agree ... */
    const uint32_t *ids_out;   /* ... else each one's own; NULL when uniform */
    const uint32_t *world_rank; /* [size] world rank of each member; NULL: rank itself */
    weft_peer **peers;         /* [size], filled on first use */
    weft_match match;
    struct weft_sendq **sendqs; /* [size] what waits for a member's credit; NULL: nothing ever did */
    struct weft_stall **stalls; /* [size] members that keep messages back; NULL: none ever did */
    weft_list_link stalled;          /* those of now; set with stalls */
    void *user;              /* whose channel it is (src/mpi's communicator); never looked at here */
    bool is_connected;
    weft_chan_on_notify *on_notify; /* NULL: such frames are dropped */
    int (*refuses)(const weft_chan *chan, int32_t tag); /* of an unexpected message that will never be received: the error that its sender gets, else 0; NULL: takes all */
    void (*on_unexpected)(weft_chan *chan, uint32_t from, int32_t tag); /* each such message, as it is kept; NULL: none */
    void *owner;               /* of these */
};

typedef struct weft_chan_slot {
    weft_chan *chan; /* NULL: free */
    uint32_t generation;
} weft_chan_slot;

/* The open channel of this id in this worker, or NULL. */
static inline weft_chan *weft_chan_of(weft_worker *worker, uint32_t id)
{
    uint32_t index = id & ((1u << 20) - 1);
    weft_chan *chan = weft_likely(index < worker->chan_capacity) ? worker->chans[index].chan : NULL;
    return weft_likely(chan && chan->id == id) ? chan : NULL;
}

/* Opens a channel: from now on its id may be told to others. world_rank is borrowed. fixed_id < 0: any (else that index, generation 0). */
int weft_chan_open(weft_worker *worker, uint32_t size, uint32_t rank, const uint32_t *world_rank, int fixed_id, weft_chan **chan);
/* Says what the others call it. ids is copied when they differ. */
int weft_chan_connect(weft_chan *chan, const uint32_t *ids);
/* Unmatched messages are dropped. */
void weft_chan_close(weft_chan *chan);

/* Sends bytes (400 at most, cut where an iface's frames are shorter) to a member's on_notify. No credit, no waiting. */
#define WEFT_NOTIFY_BYTES 400
int weft_chan_notify(weft_chan *chan, uint32_t to, const void *body, uint32_t bytes);
/* For who notified a channel that is no more: to its channel `id`, with no bytes. */
void weft_chan_notify_gone(weft_peer *peer, uint32_t id);
/* Drops the unexpected messages that the channel refuses from now on; their senders' requests end with what it says. */
void weft_chan_drop_refused(weft_chan *chan);

int weft_chan_resolve_peer(weft_chan *chan, uint32_t rank, weft_peer **peer); /* slow half of weft_chan_peer */
/* World rank of a member; what is no member's (a wildcard) as it is. */
static inline int weft_chan_world_rank(const weft_chan *chan, int rank)
{
    return rank >= 0 && chan->world_rank ? (int)chan->world_rank[rank] : rank;
}
static inline weft_peer *weft_chan_peer(weft_chan *chan, uint32_t rank)
{
    return chan->peers[rank]; /* NULL until weft_chan_resolve_peer */
}

#endif
