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
#include "p2p/withdrawn.h"

int weft_promises_open(weft_worker *worker)
{
    weft_promises *promises = calloc(1, sizeof *promises);
    if (!promises)
        return weft_fail(WEFT_E_NOMEM, "no memory for the table of persistent requests");
    weft_list_init(&promises->all);
    weft_list_init(&promises->withdrawn);
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
    weft_withdrawn_free_all(&promises->withdrawn);
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

/* Whether the send writes into promised memory. Else it sends DATA frames, for a cancel must end its access without its help. */
static bool is_written(const weft_iface *iface) { return iface->caps.put && iface->caps.revokes; }

/* Does a promise to this peer pay, and is it possible? */
static bool is_wanted(weft_peer *peer)
{
    weft_iface *iface = peer->ep->iface;
    if (peer->state != WEFT_PEER_ALIVE || weft_knob.checksum || weft_knob.promises == WEFT_PROMISES_NEVER)
        return false;
    if (!is_written(iface))
        return weft_knob.promises == WEFT_PROMISES_ALWAYS;
    if (weft_knob.promises == WEFT_PROMISES_AUTO && weft_knob.rndv_scheme != WEFT_RNDV_SCHEME_AUTO &&
        weft_knob.rndv_scheme != WEFT_RNDV_SCHEME_PUT)
        return false;
    return !peer->no_rma && weft_reg_allowed(iface) && iface->ops->can_rma(iface, peer->ep);
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

/* Frees the state of a promise. The send must not use it any more. */
static void drop(weft_promise *self)
{
    weft_rndv *rndv = self->rndv;
    self->rndv = NULL;
    if (rndv)
        weft_rndv_unpromise(rndv);
}

/* Ends the send's access to the buffer. */
static void end_access(weft_promise *self)
{
    weft_reg_release(self->reg_iface, self->reg);
    self->reg = NULL;
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
    end_access(self);
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

/* Can a promise of the buffer be made now? Registers it, where the send writes. A promise that was withdrawn and is not answered yet may
 * have been used, which no count of messages shows: until then nothing is promised to that sender. */
static bool may_make(weft_promise *self, void *start)
{
    weft_peer *peer = self->peer;
    weft_iface *iface = peer->ep->iface;
    if (peer->withdrawn || !is_wanted(peer))
        return false;
    if (iface != self->reg_iface)
        end_access(self);
    self->reg_iface = iface;
    return !is_written(iface) || weft_reg_acquire_own(iface, start, self->bytes, WEFT_ACCESS_WRITE, &self->reg) == 0;
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
    may_promise = self->matches >= self->matches_min && is_first(chan, src, tag) && may_make(self, (char *)buf + type->true_lb);
    rc = weft_irecv_into(chan, src, tag, buf, count, type, req);
    req->may_promise = req->is_posted;
    if (rc == 0 && may_promise && req->is_posted) {
        self->msgs = weft_peer_msgs_in(self->peer);
        self->rndv = weft_rndv_promise(self->peer, req, self->reg, self->bytes, self->id, self->msgs);
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
        end_access(self);
        self->matches = 0;
        return;
    }
    if (!self->worker) {
        open_side(self, peer, true);
        self->matches_min = WEFT_PROMISE_MATCHES_MIN;
    }
    if (!is_same)
        end_access(self);
    self->id = id;
    self->peer = peer;
    self->bytes = rts->bytes;
    self->matches = is_same ? self->matches + 1 : 1;
}

void weft_promise_on_use(weft_req *req)
{
    weft_promise *self = req->extra;
    self->rndv = NULL;
    self->matches_min = WEFT_PROMISE_MATCHES_MIN;
}

int weft_promise_withdraw(weft_req *req)
{
    weft_promise *self = req->extra;
    weft_peer *peer = self->peer;
    uint32_t id;
    if (!self->worker || !self->rndv)
        return 0;
    if (self->msgs != weft_peer_msgs_in(peer) || peer->bye_received) { /* void, as the send knows */
        drop(self);
        return 0;
    }
    end_access(self);
    id = self->rndv->id;
    if (!weft_withdrawn_new(&self->worker->promises->withdrawn, self->rndv)) /* it stays valid: a refused put goes by DATA */
        return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of a message from rank %u that may be on its way: the receive is not "
                         "cancelled", (unsigned long long)self->bytes, peer->proc_id.rank);
    self->rndv = NULL;
    self->matches = 0;
    peer->withdrawn++;
    req->worker->counters[WEFT_COUNT_PROMISES_WITHDRAWN]++;
    if (!peer->bye_sent)
        weft_rndv_send_small(peer, WEFT_FRAME_REVOKE, self->id, (int32_t)id, 0, NULL, 0);
    return 0;
}

void weft_promises_give_up(weft_peer *peer)
{
    weft_withdrawn_give_up(&peer->worker->promises->withdrawn, peer);
}
