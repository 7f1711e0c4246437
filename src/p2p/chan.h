/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chan: a communication context (MPI 5.0 7.1): ranks, peers and matching, without knowledge of communicators.
 * A frame carries the id that its *receiver* gave the channel, so no frame arrives before its channel exists.
 * Communicators own one or two channels each (messages, collectives). Guarded by the worker.
 */
#ifndef WEFT_P2P_CHAN_H
#define WEFT_P2P_CHAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/group.h"
#include "core/peer.h"
#include "core/worker.h"
#include "p2p/match.h"

typedef struct weft_chan weft_chan;

/* Callback of the owner for NOTIFY frames. bytes 0: rank `from` freed its channel; from UINT32_MAX: some peer sent BYE, or died
 * (chan->lost_count).
 * Called inside an iface's poll: may send, must not wait. */
typedef void weft_chan_on_notify(weft_chan *chan, uint32_t from, const void *body, uint32_t bytes);

struct weft_chan {
    weft_worker *worker;
    uint32_t id;                /* local id */
    uint32_t size, rank;        /* size of the remote group; own rank in the local group */
    uint32_t id_out;            /* the members' id, if it is the same at all of them */
    const uint32_t *ids_out;    /* [size] each member's id, owned; NULL: all use id_out */
    weft_group *group;          /* the members of the remote group; held */
    weft_peer **peers;          /* [size] of the group, shared by its channels; NULL until the first use; always NULL with WEFT_CHECKSUM */
    weft_match match;
    struct weft_sendqs *sendqs; /* sends that wait for credit, by destination (sendq.c); NULL: none yet */
    struct weft_stalls *stalls; /* stalled senders (stall.c); NULL: none yet */
    void *user;                 /* the communicator of src/mpi; opaque here */
    bool is_lasting;            /* of sessions: its members may return after they have finalized the World Model */
    bool is_service;            /* of the instance: its members may have left the job, which is no failure until they have sent something */
    bool may_overtake;          /* sends need not be matched in their order (mpi_assert_allow_overtaking) */
    bool is_connected;          /* weft_chan_connect was called */
    uint32_t lost_count, lost;  /* members whose process has died, and the last of them (p2p/lost) */
    uint32_t deaths_told;       /* number of the job's deaths that have ended a receive from any source, or need not */
    bool is_helped;             /* its operations call for the progress thread */
    weft_chan_on_notify *on_notify; /* NULL: NOTIFY frames are dropped */
    /* Called for a message without a posted receive. 0, or if no receive may ever match it the error for its sender. NULL: accepts all */
    int (*refuses)(const weft_chan *chan, int32_t tag);
    void (*on_long_wait)(weft_chan *chan); /* a thread has slept for a second, or longer (core/wait); may send, must not wait. NULL: none */
    void (*on_unexpected)(weft_chan *chan, uint32_t from, int32_t tag); /* called before an unexpected message is queued, or when its
                                                                         * sender tells that it waits for credit; NULL: none */
    void *owner;                /* context of the callbacks */
    uint32_t tags_used;         /* of DATA: tags given to partitioned sends so far; wraps */
    struct weft_chan *subs[2];  /* by enum weft_chan_sub - 1, owned; NULL: not opened yet */
};

/* Further contexts of a channel, with matching of their own and without an exchange: their ids are the channel's with bits added.
 * SETUP and DATA: of partitioned messages (mpi/partitioned). */
enum weft_chan_sub { WEFT_CHAN_SETUP = 1, WEFT_CHAN_DATA };

typedef struct weft_chan_slot {
    weft_chan *chan; /* NULL: free */
    uint32_t generation;
} weft_chan_slot;

/* An id is generation << 20 | sub << 18 | index. A reused index has a new generation: a late frame reaches a wrong channel only after 4,096
 * reuses. */
#define WEFT_CHAN_INDEX_BITS 20 /* with the bits of sub */
#define WEFT_CHAN_INDEX_MASK ((1u << WEFT_CHAN_INDEX_BITS) - 1)
#define WEFT_CHAN_SUB_SHIFT 18  /* a worker has fewer channels, so that a sub's index is none of a channel */
#define WEFT_CHAN_FIRST_FREE 8 /* lower indices belong to the predefined communicators */

/* Channel of an id with sub bits, opened if it is not yet; NULL: its channel is not open. */
weft_chan *weft_chan_sub_of(weft_worker *worker, uint32_t id);
/* The sub of a connected channel, opened if it is not yet; NULL: out of memory. */
weft_chan *weft_chan_sub(weft_chan *chan, enum weft_chan_sub which);

/* Sets is_helped for operations that begin from now on, also those of its subs. */
void weft_chan_set_helped(weft_chan *chan, bool is_helped);

/* Open channel with this id in this worker, or NULL. */
static inline weft_chan *weft_chan_of(weft_worker *worker, uint32_t id)
{
    uint32_t index = id & WEFT_CHAN_INDEX_MASK;
    weft_chan *chan;
    if (weft_unlikely(index >= worker->chan_capacity))
        return weft_chan_sub_of(worker, id);
    chan = worker->chans[index].chan;
    return weft_likely(chan && chan->id == id) ? chan : NULL;
}

/* Opens a channel to the members of `group` (NULL: all of the job); its id may be sent to them afterwards. rank: own, in the local group.
 * fixed_id < 0: any index, else that index. */
int weft_chan_open(weft_worker *worker, weft_group *group, uint32_t rank, int fixed_id, weft_chan **chan);
/* Sets the members' ids of the channel. ids[size] is copied if they differ. */
int weft_chan_connect(weft_chan *chan, const uint32_t *ids);
/* The same without memory of its own: ids (malloc) is the channel's from now on. */
void weft_chan_connect_by(weft_chan *chan, uint32_t *ids);
/* The same if all members have this id. */
static inline void weft_chan_connect_same(weft_chan *chan, uint32_t id)
{
    chan->id_out = id;
    chan->is_connected = true;
}
/* Closes and frees the channel. Drops unmatched messages; announced ones end with WEFT_E_COMM at the sender. */
void weft_chan_close(weft_chan *chan);

/* Sends at most WEFT_NOTIFY_BYTES bytes, truncated to the iface's frame_max, to a member's on_notify. Uses no credit, never blocks. */
#define WEFT_NOTIFY_BYTES 400
int weft_chan_notify(weft_chan *chan, uint32_t to, const void *body, uint32_t bytes);
/* Answers a NOTIFY for a closed channel: an empty NOTIFY to the peer's channel `id`. */
void weft_chan_notify_gone(weft_peer *peer, uint32_t id);
/* Drops the unexpected messages that chan->refuses; announced sends end with the error that it returns. */
void weft_chan_drop_refused(weft_chan *chan);
/* Drops the oldest unexpected message from member src with this tag, if there is one; an announced send ends with WEFT_E_COMM. */
void weft_chan_drop_message(weft_chan *chan, int src, int tag) __attribute__((cold));

void weft_chan_long_wait(weft_worker *worker); /* worker->on_long_wait: calls each channel's on_long_wait */
int weft_chan_resolve_peer(weft_chan *chan, uint32_t rank, weft_peer **peer); /* connects on first contact; 0 or an error */
/* Rank of a member in its job; a negative rank (wildcard) is returned unchanged. */
static inline int weft_chan_job_rank(const weft_chan *chan, int rank)
{
    return rank < 0 ? rank : (int)weft_group_process(chan->group, (uint32_t)rank).rank;
}
/* The channel's id at a member. */
static inline uint32_t weft_chan_id_at(const weft_chan *chan, int dst)
{
    return weft_unlikely(chan->ids_out != NULL) ? chan->ids_out[dst] : chan->id_out;
}
/* Will this peer receive nothing on the channel any more? */
static inline bool weft_chan_is_left(const weft_chan *chan, const weft_peer *peer)
{
    return peer->bye_received && (peer->is_gone || !chan->is_lasting);
}
/* The error of a send to such a peer. */
int weft_chan_left_error(const weft_peer *peer) __attribute__((cold));
/* The same of a member with which there was contact; all that it sent before has been polled. */
bool weft_chan_has_closed(const weft_chan *chan, uint32_t rank);
/* The same, also if there was no contact: its process has ended, or is not in MPI and will not return. What it sent before may
 * have to be polled. False if that is not known. */
bool weft_chan_has_left(const weft_chan *chan, uint32_t rank);
/* After a long wait for a member with which there was contact: asks the launcher, so that weft_chan_has_left knows of its end. True: it is
 * known to have left the channel, at rest or by its end; what it sent before may have to be polled. */
bool weft_chan_ask(const weft_chan *chan, uint32_t rank);
static inline weft_peer *weft_chan_peer(weft_chan *chan, uint32_t rank)
{
    return chan->peers[rank]; /* NULL until weft_chan_resolve_peer */
}

#endif
