/* SPDX-License-Identifier: BSD-3-Clause
 *
 * promise: see promise.h. The rendezvous of a promise is made and ended in rndv_recv and rndv_send.
 */
#include "p2p/promise.h"

#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "core/reg.h"
#include "core/worker.h"
#include "p2p/p2p.h"
#include "p2p/rndv_internal.h"

int weft_promises_open(weft_worker *worker)
{
    weft_promises *promises = calloc(1, sizeof *promises);
    if (!promises)
        return weft_fail(WEFT_E_NOMEM, "no memory for the table of persistent requests");
    weft_list_init(&promises->all);
    weft_fifomap_open(&promises->sends);
    worker->promises = promises;
    return 0;
}

void weft_promises_close(weft_worker *worker)
{
    weft_promises *promises = worker->promises;
    weft_list_link *link;
    if (!promises)
        return;
    while ((link = weft_list_take(&promises->all)))
        weft_container(link, weft_promise, link)->worker = NULL;
    weft_fifomap_close(&promises->sends);
    free(promises);
    worker->promises = NULL;
}

static void open_side(weft_promise *self, weft_peer *peer, bool is_recv)
{
    self->is_recv = is_recv;
    self->worker = peer->worker;
    self->peer = peer;
    weft_list_append(&peer->worker->promises->all, &self->link);
}

/* Does a put into promised memory pay on this peer's iface, and is it possible? */
static bool is_wanted(weft_peer *peer)
{
    weft_iface *iface = peer->ep->iface;
    bool needs_reg = weft_reg_needed(iface);
    if (!iface->caps.put || peer->no_rma || peer->state != WEFT_PEER_ALIVE || weft_knob.checksum ||
        weft_knob.promises == WEFT_PROMISES_NEVER || (needs_reg && !weft_reg_allowed(iface)))
        return false;
    if (weft_knob.promises == WEFT_PROMISES_AUTO &&
        (!needs_reg || (weft_knob.rndv_scheme != WEFT_RNDV_SCHEME_AUTO && weft_knob.rndv_scheme != WEFT_RNDV_SCHEME_PUT)))
        return false;
    return iface->ops->can_rma(iface, peer->ep);
}

/* -- the send -- */

void weft_promise_close_send(weft_promise *self)
{
    if (!self->worker)
        return;
    weft_fifomap_remove(&self->worker->promises->sends, &self->entry);
    weft_list_remove(&self->link);
    self->worker = NULL;
}

uint32_t weft_promise_id(weft_peer *peer, weft_req *req)
{
    weft_promise *self = req->extra;
    weft_promises *promises = peer->worker->promises;
    if ((req->bytes <= peer->eager_max && req->send_mode != WEFT_SEND_SYNC) || !is_wanted(peer))
        return 0;
    if (self->worker)
        return self->id;
    do
        self->id = ++promises->last_id;
    while (!self->id || weft_fifomap_find(&promises->sends, self->id));
    weft_fifomap_insert(&promises->sends, &self->entry, self->id);
    open_side(self, peer, false);
    return self->id;
}

void weft_promise_poll(weft_promise *self)
{
    weft_worker_poll(self->worker);
    self->is_warm = self->is_made;
}

static weft_promise *find_send(const weft_peer *peer, uint32_t id)
{
    weft_fifo_entry *entry = weft_fifomap_find(&peer->worker->promises->sends, id);
    weft_promise *self = entry ? weft_container(entry, weft_promise, entry) : NULL;
    return self && self->peer == peer ? self : NULL;
}

/* A later promise replaces the one before, which is void: its receive would be first in line. */
void weft_promise_on_promise(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_promise *self = find_send(peer, hdr->chan);
    if (!self || hdr->bytes < WEFT_CTS_BYTES || hdr->bytes > sizeof self->cts)
        return;
    memcpy(self->cts, body, hdr->bytes);
    self->msgs = (uint32_t)hdr->tag;
    self->is_made = self->is_warm = true;
}

const weft_cts *weft_promise_take(weft_peer *peer, weft_req *req)
{
    weft_promise *self = req->extra;
    const weft_cts *cts = (const weft_cts *)self->cts;
    if (!self->worker || !self->is_made)
        return NULL;
    self->is_made = false;
    return self->msgs == weft_peer_msgs_out(peer) && cts->want == req->bytes && weft_list_is_empty(&peer->waiting) ? cts : NULL;
}

/* A promise that was used already is not found: its USE reaches the receiver before the answer. */
void weft_promise_on_revoke(weft_peer *peer, const weft_hdr *hdr)
{
    weft_promise *self = find_send(peer, hdr->chan);
    uint32_t recv_id = (uint32_t)hdr->src;
    if (self && self->is_made && ((const weft_cts *)self->cts)->req_id == recv_id)
        self->is_made = false;
    if (!peer->bye_sent)
        weft_rndv_send_small(peer, WEFT_FRAME_REVOKED, recv_id, 0, 0, NULL, 0);
}

/* -- the receive -- */

/* Frees what the promise holds. The send must not use it any more. */
static void drop(weft_promise *self)
{
    weft_rndv *rndv = self->rndv;
    self->rndv = NULL;
    self->is_revoking = false;
    if (rndv)
        weft_rndv_unpromise(rndv);
}

/* The promise was void: the next one needs more evidence. */
static void fail(weft_promise *self)
{
    if (!self->rndv)
        return;
    drop(self);
    self->matches = 0;
    self->matches_min = self->matches_min < WEFT_PROMISE_MATCHES_MAX ? 2 * self->matches_min : self->matches_min;
}

void weft_promise_close_recv(weft_promise *self)
{
    if (!self->worker)
        return;
    drop(self);
    weft_list_remove(&self->link);
    self->worker = NULL;
}

/* Is no receive posted that would take a message from src with this tag? */
static bool is_first(weft_chan *chan, int src, int tag)
{
    const weft_req *latest = chan->match.latest;
    if (latest && (latest->rank == src || latest->rank == WEFT_ANY) && (latest->tag == tag || latest->tag == WEFT_ANY_TAG))
        return false;
    return !chan->match.posted.keys || !weft_match_older(&chan->match, src, tag);
}

int weft_promise_irecv(weft_promise *self, weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type,
                       weft_req *req)
{
    bool may_promise;
    int rc;
    if (weft_likely(!self->worker)) {
        rc = weft_irecv_into(chan, src, tag, buf, count, type, req);
        req->may_promise = req->is_posted;
        return rc;
    }
    fail(self);
    may_promise = self->matches >= self->matches_min && is_first(chan, src, tag) && is_wanted(self->peer);
    rc = weft_irecv_into(chan, src, tag, buf, count, type, req);
    req->may_promise = req->is_posted;
    if (rc == 0 && may_promise && req->is_posted) {
        self->msgs = weft_peer_msgs_in(self->peer);
        self->rndv = weft_rndv_promise(self->peer, req, self->bytes, self->id, self->msgs);
        req->worker->counters[WEFT_COUNT_PROMISES] += self->rndv != NULL;
    }
    return rc;
}

void weft_promise_on_rts(weft_peer *peer, weft_req *req, const weft_rts *rts)
{
    weft_promise *self = req->extra;
    uint32_t id = rts->flags & WEFT_RTS_PERSISTENT ? rts->send_id : 0;
    bool is_same = self->worker && self->id == id && self->peer == peer && self->bytes == rts->bytes;
    if (self->worker)
        fail(self);
    if (!id || !rts->bytes || req->rank == WEFT_ANY || req->tag == WEFT_ANY_TAG || !req->is_dense || rts->bytes > req->bytes) {
        self->matches = 0;
        return;
    }
    if (!self->worker) {
        open_side(self, peer, true);
        self->matches_min = WEFT_PROMISE_MATCHES_MIN;
        self->req = req;
    }
    self->id = id;
    self->peer = peer;
    self->bytes = rts->bytes;
    self->matches = is_same ? self->matches + 1 : 1;
}

void weft_promise_on_use(weft_req *req)
{
    weft_promise *self = req->extra;
    self->rndv = NULL;
    self->is_revoking = false;
    self->matches_min = WEFT_PROMISE_MATCHES_MIN;
}

bool weft_promise_revoke(weft_req *req)
{
    weft_promise *self = req->extra;
    weft_peer *peer = self->peer;
    if (!self->worker || !self->rndv)
        return false;
    if (peer->bye_received || peer->bye_sent || peer->state != WEFT_PEER_ALIVE || self->msgs != weft_peer_msgs_in(peer)) {
        drop(self);
        return false;
    }
    if (!self->is_revoking)
        weft_rndv_send_small(peer, WEFT_FRAME_REVOKE, self->id, (int32_t)self->rndv->id, 0, NULL, 0);
    self->is_revoking = true;
    return true;
}

/* The receive may have ended meanwhile by a message that made the promise void. */
void weft_promise_on_revoked(weft_req *req)
{
    bool is_waiting = ((weft_promise *)req->extra)->is_revoking && req->is_posted;
    drop(req->extra);
    if (is_waiting)
        weft_cancel(req);
}

void weft_promises_give_up(weft_peer *peer)
{
    weft_promises *promises = peer->worker->promises;
    weft_list_link *next;
    for (weft_list_link *link = promises->all.next; link != &promises->all; link = next) {
        weft_promise *self = weft_container(link, weft_promise, link);
        next = link->next;
        if (self->is_recv && self->peer == peer && self->is_revoking)
            weft_promise_on_revoked(self->req);
    }
}
