/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chan: opening and closing channels, their ids, notifications. See chan.h.
 */
#include "p2p/chan.h"

#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "core/absence.h"
#include "core/bye.h"
#include "core/hdr_csum.h"
#include "core/world.h"

static int grow(weft_worker *worker, uint32_t index)
{
    uint32_t capacity = worker->chan_capacity ? worker->chan_capacity : 32;
    weft_chan_slot *slots;
    while (capacity <= index)
        capacity *= 2;
    if (capacity > 1u << WEFT_CHAN_SUB_SHIFT || !(slots = realloc(worker->chans, capacity * sizeof *slots)))
        return weft_fail(WEFT_E_NOMEM, "more than %u communicators at one time", worker->chan_capacity / 2);
    memset(slots + worker->chan_capacity, 0, (capacity - worker->chan_capacity) * sizeof *slots);
    worker->chans = slots;
    worker->chan_capacity = capacity;
    return 0;
}

static int take_index(weft_worker *worker, int fixed_id, uint32_t *out)
{
    uint32_t index = fixed_id >= 0 ? (uint32_t)fixed_id : WEFT_CHAN_FIRST_FREE;
    if (fixed_id < 0) {
        if (worker->chan_lowest > index)
            index = worker->chan_lowest;
        while (index < worker->chan_capacity && worker->chans[index].chan)
            index++;
        worker->chan_lowest = index + 1;
    }
    *out = index;
    return index < worker->chan_capacity ? 0 : grow(worker, index);
}

/* Tells the members that this process, which rested, is back, before they get to know the channel. */
static void come_back(const weft_chan *chan)
{
    for (uint32_t i = 0; i < chan->size; i++) {
        weft_peer *peer = weft_peer_known(chan->worker, weft_group_process(chan->group, i));
        if (peer)
            weft_peer_come_back(peer);
    }
}

int weft_chan_open(weft_worker *worker, weft_group *given, uint32_t rank, int fixed_id, weft_chan **out)
{
    weft_chan *chan = calloc(1, sizeof *chan);
    weft_group *group = given ? given : worker->world->group;
    uint32_t index, size = group->size;
    int rc;
    if (chan && size)
        chan->peers = (weft_peer **)weft_group_pointers(group, worker->serial);
    if (!chan || (size && !chan->peers)) {
        free(chan);
        return weft_fail(WEFT_E_NOMEM, "no memory for a channel of %u ranks", size);
    }
    rc = take_index(worker, fixed_id, &index);
    if (rc) {
        free(chan);
        return rc;
    }
    chan->worker = worker;
    chan->is_helped = worker->helps;
    chan->size = size;
    chan->rank = rank;
    chan->group = group;
    weft_group_hold(group);
    chan->is_lasting = group->session != 0;
    chan->id_out = UINT32_MAX; /* of no channel, until weft_chan_connect */
    chan->id = worker->chans[index].generation << WEFT_CHAN_INDEX_BITS | index;
    weft_match_open(&chan->match);
    worker->chans[index].chan = chan;
    if (weft_unlikely(chan->is_lasting && worker->world->has_rested))
        come_back(chan);
    *out = chan;
    return 0;
}

static bool is_uniform(const uint32_t *ids, uint32_t size)
{
    bool yes = true;
    for (uint32_t i = 1; i < size; i++)
        yes &= ids[i] == ids[0];
    return yes;
}

void weft_chan_connect_by(weft_chan *chan, uint32_t *ids)
{
    weft_chan_connect_same(chan, chan->size ? ids[0] : 0);
    if (is_uniform(ids, chan->size))
        free(ids);
    else
        chan->ids_out = ids;
}

int weft_chan_connect(weft_chan *chan, const uint32_t *ids)
{
    uint32_t *copy;
    weft_chan_connect_same(chan, chan->size ? ids[0] : 0);
    if (is_uniform(ids, chan->size))
        return 0;
    copy = malloc(chan->size * sizeof *copy);
    if (!copy)
        return weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %u ranks", chan->size);
    memcpy(copy, ids, chan->size * sizeof *copy);
    chan->ids_out = copy;
    return 0;
}

/* -- subs -- */

static weft_chan *open_sub(weft_chan *chan, uint32_t which)
{
    weft_chan *sub = calloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->worker = chan->worker;
    sub->is_helped = chan->is_helped;
    sub->size = chan->size;
    sub->rank = chan->rank;
    sub->group = chan->group;
    sub->peers = chan->peers;
    sub->is_lasting = chan->is_lasting;
    sub->id = chan->id | which << WEFT_CHAN_SUB_SHIFT;
    weft_match_open(&sub->match);
    chan->subs[which - 1] = sub;
    return sub;
}

void weft_chan_set_helped(weft_chan *chan, bool is_helped)
{
    chan->is_helped = is_helped;
    for (uint32_t i = 0; i < weft_count(chan->subs); i++)
        if (chan->subs[i])
            chan->subs[i]->is_helped = is_helped;
}

weft_chan *weft_chan_sub_of(weft_worker *worker, uint32_t id)
{
    uint32_t index = id & WEFT_CHAN_INDEX_MASK, which = index >> WEFT_CHAN_SUB_SHIFT;
    weft_chan *chan;
    index &= (1u << WEFT_CHAN_SUB_SHIFT) - 1;
    chan = index < worker->chan_capacity ? worker->chans[index].chan : NULL;
    if (!chan || chan->id != (id & ~(3u << WEFT_CHAN_SUB_SHIFT)) || which - 1 >= weft_count(chan->subs))
        return NULL;
    return chan->subs[which - 1] ? chan->subs[which - 1] : open_sub(chan, which);
}

weft_chan *weft_chan_sub(weft_chan *chan, enum weft_chan_sub which)
{
    weft_chan *sub = chan->subs[which - 1] ? chan->subs[which - 1] : open_sub(chan, which);
    uint32_t *ids = NULL;
    if (!sub || sub->is_connected)
        return sub;
    sub->user = chan->user; /* a frame may have opened it before the communicator was complete */
    if (chan->ids_out && !(ids = malloc(chan->size * sizeof *ids)))
        return NULL;
    for (uint32_t i = 0; ids && i < chan->size; i++)
        ids[i] = chan->ids_out[i] | (uint32_t)which << WEFT_CHAN_SUB_SHIFT;
    sub->ids_out = ids;
    sub->id_out = chan->id_out | (uint32_t)which << WEFT_CHAN_SUB_SHIFT;
    sub->is_connected = true;
    return sub;
}

/* A NOTIFY that is queued because the iface is full. Freed by its completion. */
typedef struct queued_notify {
    weft_completion completion;
    weft_req *req;
    uint64_t body[WEFT_NOTIFY_BYTES / 8];
} queued_notify;

static void notify_free(weft_completion *completion)
{
    queued_notify *at = weft_container(completion, queued_notify, completion);
    weft_req *req = at->req;
    free(at);
    req->completion = NULL;
    weft_req_free(req);
}

static queued_notify *notify_new(weft_worker *worker, const void *body, uint32_t bytes)
{
    queued_notify *made = malloc(sizeof *made);
    weft_req *req = made ? weft_req_new(worker, WEFT_REQ_NOTHING) : NULL;
    if (!req) {
        free(made);
        return NULL;
    }
    made->completion = (weft_completion){.left = 1, .open = notify_free};
    made->req = req;
    req->completion = &made->completion;
    memcpy(made->body, body, bytes);
    return made;
}

void weft_chan_notify_gone(weft_peer *peer, uint32_t id)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_NOTIFY, .chan = id}};
    if (!peer->bye_sent && !peer->bye_received)
        weft_peer_send(peer, &frame, NULL, NULL);
}

int weft_chan_notify(weft_chan *chan, uint32_t to, const void *body, uint32_t bytes)
{
    weft_process process = weft_group_process(chan->group, to);
    bool is_sent, is_known = weft_peer_known(chan->worker, process) != NULL;
    queued_notify *queued;
    weft_peer *peer;
    uint32_t max;
    int rc = weft_peer_find(chan->worker, process, &peer);
    if (rc)
        return rc;
    peer->is_courtesy |= !is_known;
    queued = notify_new(chan->worker, body, bytes);
    /* out of memory: a body that weft_peer_send copies */
    max = queued ? peer->ep->iface->caps.frame_max - weft_hdr_csum_bytes() : sizeof((weft_pending_frame *)0)->small;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_NOTIFY, .chan = chan->ids_out ? chan->ids_out[to] : chan->id_out,
                                .src = (int32_t)chan->rank, .tag = (int32_t)chan->id, .bytes = bytes < max ? bytes : max},
                        .body = queued ? queued->body : body};
    rc = weft_peer_send(peer, &frame, queued ? queued->req : NULL, &is_sent);
    if (queued && (rc || is_sent))
        notify_free(&queued->completion);
    return rc;
}

void weft_chan_long_wait(weft_worker *worker)
{
    for (uint32_t i = 0; i < worker->chan_capacity; i++) {
        weft_chan *chan = worker->chans[i].chan;
        if (chan && chan->on_long_wait)
            chan->on_long_wait(chan);
    }
}

int weft_chan_left_error(const weft_peer *peer)
{
    return weft_fail(WEFT_E_PEER, "rank %u has called MPI_Finalize: it receives no more messages", peer->proc_id.rank);
}

bool weft_chan_has_closed(const weft_chan *chan, uint32_t rank)
{
    const weft_peer *peer = weft_peer_known(chan->worker, weft_group_process(chan->group, rank));
    return peer && (weft_chan_is_left(chan, peer) || peer->state != WEFT_PEER_ALIVE);
}

bool weft_chan_has_left(const weft_chan *chan, uint32_t rank)
{
    weft_process process = weft_group_process(chan->group, rank);
    const weft_peer *peer = weft_peer_known(chan->worker, process);
    if (weft_chan_has_closed(chan, rank) || (peer && peer->has_ended))
        return true;
    return process.job == chan->worker->world->boot->job && weft_bye_is_final(chan->worker, process.rank);
}

bool weft_chan_ask(const weft_chan *chan, uint32_t rank)
{
    weft_peer *peer = weft_peer_known(chan->worker, weft_group_process(chan->group, rank));
    enum weft_absence absence = peer && peer->state == WEFT_PEER_ALIVE ? weft_absence_of(peer) : WEFT_ABSENCE_NONE;
    return absence == WEFT_ABSENCE_END || (absence == WEFT_ABSENCE_REST && !chan->is_lasting);
}

int weft_chan_resolve_peer(weft_chan *chan, uint32_t rank, weft_peer **peer)
{
    weft_process process = weft_group_process(chan->group, rank);
    bool is_new = chan->is_service && !weft_peer_known(chan->worker, process);
    int rc = weft_peer_find(chan->worker, process, peer);
    if (rc == 0)
        (*peer)->is_courtesy = chan->is_service ? (*peer)->is_courtesy || is_new : false;
    if (rc == 0 && !weft_knob.checksum && !chan->is_service) /* with checksums a NULL peer keeps sends off the fast path (msg_csum.h) */
        chan->peers[rank] = *peer;
    return rc;
}
