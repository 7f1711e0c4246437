/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: both sides of a rendezvous. See rndv.h. A request has an id in the worker's table until it ends; frames for an unknown id
 * are dropped (the operation failed meanwhile). A request ends when all its bytes have arrived or it failed, and no fragment is in
 * flight: memory that a device may still access is never returned to the user.
 */
#include "p2p/rndv.h"

#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world.h"
#include "mem/pool.h"
#include "p2p/bidir.h"
#include "p2p/frag.h"
#include "p2p/msg_csum.h"
#include "p2p/rndv_select.h"
#include "type/pack.h"
#include "type/type.h"

/* Bytes of a segment of unregistered memory: long enough to keep a device busy while the next one is registered, short enough for the
 * first one to leave soon. */
#define SEGMENT ((uint64_t)256 << 10)
#define SEGMENTS_AHEAD 3 /* fragments in flight per receive */

static void send_small(weft_peer *peer, enum weft_frame_kind kind, uint32_t chan, int32_t src, int32_t tag, const void *body, uint32_t bytes)
{
    weft_frame frame = {.hdr = {.kind = (uint8_t)kind, .chan = chan, .src = src, .tag = tag, .bytes = bytes}, .body = body};
    int rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_abort_job(peer, rc);
}

static int no_memory(const weft_peer *peer) { return weft_fail(WEFT_E_NOMEM, "no memory to move a message to or from rank %u", peer->proc_id.rank); }

/* index: segment; 0: this side's whole part. */
static void send_fin(weft_req *req, uint32_t index, int rc)
{
    send_small(req->peer, WEFT_FRAME_FIN, req->remote_req_id, (int32_t)index, rc, NULL, 0);
}

/* Writes the peer's key to bytes [from, end) of the message. Returns its length; 0: no key. */
static uint8_t put_key(uint8_t *to, weft_req *req, const weft_reg *pin, uint64_t from, uint64_t end, uint32_t rights, weft_mw **mw)
{
    weft_rkey rkey;
    if (!weft_reg_export(req->iface, req->peer->ep, pin, (char *)weft_frag_start_of(req) + from, end - from, rights, &rkey, mw))
        return 0;
    memcpy(to, rkey.bytes, rkey.length);
    return rkey.length;
}

static void take_key(weft_rkey *rkey, const uint8_t *from, uint8_t bytes)
{
    rkey->length = bytes < WEFT_RKEY_BYTES ? bytes : WEFT_RKEY_BYTES;
    memcpy(rkey->bytes, from, rkey->length);
}

static void begin(weft_req *req, weft_peer *peer)
{
    req->peer = peer;
    req->iface = peer->ep->iface;
    req->pin = NULL;
    req->mw = NULL;
    req->fragment_count = 0;
    req->arrived = 0;
    req->is_cold = false;
    req->fin_done = false;
    req->is_stepping = false;
}

/* A receive that matched while no request id was free. */
typedef struct pending_rts {
    weft_list_link link; /* in worker->pending_rts */
    weft_req *req;       /* the receive */
    weft_peer *peer;     /* sender */
    weft_hdr hdr;
    uint64_t rts[];      /* [hdr.bytes] weft_rts with its key */
} pending_rts;

static bool put_aside(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts)
{
    pending_rts *one = weft_pool_take(req->worker->pool, sizeof *one + hdr->bytes);
    if (!one)
        return false;
    one->req = req;
    one->peer = peer;
    one->hdr = *hdr;
    memcpy(one->rts, rts, hdr->bytes);
    weft_list_append(&req->worker->pending_rts, &one->link);
    return true;
}

/* A receive may end at once, free its id and so call this again: only the outermost call runs the loop. */
static void begin_pending(weft_worker *worker)
{
    weft_list_link *link;
    if (worker->is_assigning_ids)
        return;
    worker->is_assigning_ids = true;
    while (worker->req_id_free && (link = weft_list_take(&worker->pending_rts))) {
        pending_rts *one = weft_container(link, pending_rts, link);
        weft_rndv_recv_rts(one->peer, one->req, &one->hdr, (const weft_rts *)one->rts);
        weft_pool_give(worker->pool, one, sizeof *one + one->hdr.bytes);
    }
    worker->is_assigning_ids = false;
}

static void free_req_id(weft_req *req)
{
    weft_req_id_free(req->worker, req);
    if (weft_unlikely(!weft_list_is_empty(&req->worker->pending_rts)))
        begin_pending(req->worker);
}

/* -- the sender -- */

/* Fills in the key of the send buffer, or the flags COLD or NO_RMA. */
static void fill_rts_hint(weft_req *req, weft_rts *rts)
{
    weft_iface *iface = req->iface;
    void *start = weft_frag_start_of(req);
    if (!weft_reg_needed(iface))
        return;
    if (req->peer->no_rma || !weft_reg_allowed(iface)) {
        rts->flags = WEFT_RTS_NO_RMA;
        return;
    }
    req->pin = weft_reg_lookup(iface, start, req->bytes, WEFT_ACCESS_READ);
    if (!req->pin) {
        bool is_now = weft_knob.reg_mode == WEFT_REG_MODE_SYNC || (weft_knob.reg_mode != WEFT_REG_MODE_ASYNC && req->bytes <= SEGMENT);
        rts->flags = WEFT_RTS_COLD;
        if ((is_now || !iface->caps.put) && iface->caps.get && weft_reg_acquire(iface, start, req->bytes, WEFT_ACCESS_READ, &req->pin))
            rts->flags = WEFT_RTS_NO_RMA;
    }
    if (req->pin)
        rts->key_bytes = put_key(rts->key, req, req->pin, 0, req->bytes, WEFT_ACCESS_READ, &req->mw);
}

/* If rendezvous go both ways at once, the lower rank of the pair chooses the protocol for both directions. */
static void hint(weft_req *req, weft_rts *rts)
{
    weft_peer *peer = req->peer;
    weft_rndv_caps rndv_caps = {.can_move = true};
    rts->flags |= peer->bidir.score ? WEFT_RTS_BOTH_WAYS : 0;
    if (!weft_rndv_is_shared(req->iface) || !weft_bidir_expects_recv(&peer->bidir) || peer->proc_id.rank < req->worker->world->boot->rank ||
        peer->no_rma || !req->iface->ops->can_rma(req->iface, peer->ep))
        return;
    rts->flags |= (uint8_t)((weft_rndv_select(peer->rndv_stats, peer, req->bytes, &rndv_caps, true) + 1) << WEFT_RTS_HINT_SHIFT);
}

static void send_begins(weft_req *req)
{
    req->received = weft_bidir_send_begin(&req->peer->bidir);
    weft_rndv_send_begin(req->peer->rndv_stats);
}

static void send_ends(weft_req *req)
{
    weft_bidir_send_end(&req->peer->bidir, req->received);
    weft_rndv_send_end(req->peer->rndv_stats, req->rc ? 0 : req->moved, weft_clock_ns());
}

int weft_rndv_send_rts(weft_peer *peer, weft_req *req)
{
    union { weft_rts rts; char room[sizeof(weft_rts) + WEFT_RKEY_BYTES]; } body = {.rts = {.bytes = req->bytes}};
    weft_rts *rts = &body.rts;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_RTS, .src = (int32_t)req->chan->rank, .tag = req->tag}, .body = rts};
    int rc = weft_req_id_alloc(req->worker, req);
    if (rc)
        return rc;
    begin(req, peer);
    req->left = 1;
    req->moved = req->bytes;
    frame.hdr.chan = req->chan->ids_out ? req->chan->ids_out[req->rank] : req->chan->id_out;
    rts->req_id = req->id;
    if (req->is_dense && req->bytes) {
        rts->addr = (uint64_t)(uintptr_t)weft_frag_start_of(req);
        fill_rts_hint(req, rts);
        hint(req, rts);
    }
    if (weft_knob.checksum) {
        frame.hdr.flags = WEFT_HDR_MSG_CSUM;
        rts->csum = weft_msg_csum_of_send(req, &frame.hdr);
    }
    frame.hdr.bytes = (uint32_t)WEFT_RTS_BYTES + rts->key_bytes;
    send_begins(req);
    rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc) {
        req->rc = rc;
        send_ends(req);
        weft_reg_revoke(req->iface, req->mw);
        weft_reg_release(req->iface, req->pin);
        weft_req_id_free(req->worker, req);
        return rc;
    }
    peer->credit -= weft_peer_cost(frame.hdr.bytes);
    return 0;
}

/* Registers the whole buffer asynchronously, for its next use. */
static void reg_async(weft_req *req, uint32_t rights)
{
    bool is_wanted = weft_knob.reg_mode == WEFT_REG_MODE_AUTO || weft_knob.reg_mode == WEFT_REG_MODE_ASYNC || weft_knob.reg_mode == WEFT_REG_MODE_PIPELINE;
    if (is_wanted && !req->pin && req->is_dense && !req->peer->no_rma && weft_reg_needed(req->iface) && weft_reg_allowed(req->iface))
        weft_reg_acquire_async(req->iface, weft_frag_start_of(req), req->bytes, rights);
}

static void try_complete_send(weft_req *req)
{
    if (req->left || req->fragment_count)
        return;
    if (req->is_cold && !req->rc)
        reg_async(req, WEFT_ACCESS_READ);
    send_ends(req);
    weft_reg_revoke(req->iface, req->mw);
    weft_reg_release(req->iface, req->pin);
    free_req_id(req);
    weft_req_end(req, req->rc);
}

/* Counts one of req->left events that end a send: the receiver's FIN, or the last byte sent. An error ends it at once. */
static void end_one(weft_req *req, int rc)
{
    if (rc && !req->rc)
        req->rc = rc;
    if (req->rc)
        req->left = 0;
    else if (req->left)
        req->left--;
    try_complete_send(req);
}

static void count_sent(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    req->arrived += frag->bytes;
    weft_frag_free(frag);
    if (rc || req->arrived == req->moved)
        end_one(req, rc);
    else
        try_complete_send(req);
}

/* over() of DATA: all frames of a CTS with COPY are sent. */
static void on_data_done(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    if (rc < 0 && req->peer->state == WEFT_PEER_ALIVE) /* else the receiver would wait for ever */
        send_fin(req, 0, rc);
    count_sent(frag, rc);
}

static void on_put_done(weft_frag *frag, int rc);

/* Sends the rest of a put by DATA frames; on_put_done reports it to the receiver like a put. */
static void push_instead(weft_frag *frag)
{
    frag->kind = WEFT_FRAG_DATA;
    frag->over = on_put_done;
    weft_frag_start(frag);
}

/* UNSUPPORTED: this pair copies from now on. STALE: the connection of the memory window broke; only these bytes are copied. */
static bool is_to_be_copied(weft_peer *peer, int rc)
{
    peer->no_rma |= rc == WEFT_E_UNSUPPORTED;
    return rc == WEFT_E_UNSUPPORTED || rc == WEFT_E_STALE;
}

/* over() of PUT: segment or half written. Sends FIN to the receiver. */
static void on_put_done(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    if (frag->kind == WEFT_FRAG_PUT && is_to_be_copied(req->peer, rc)) {
        push_instead(frag);
        return;
    }
    send_fin(req, frag->index, rc);
    if (frag->index) {
        count_sent(frag, rc);
        return;
    }
    weft_frag_free(frag);
    end_one(req, rc);
}

static void put_frag(weft_req *req, const weft_cts *cts)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_PUT, cts->from, cts->to, on_put_done);
    if (!frag) {
        send_fin(req, cts->index, WEFT_E_NOMEM);
        end_one(req, no_memory(req->peer));
        return;
    }
    frag->index = cts->index;
    frag->far = cts->addr;
    req->is_cold = cts->to - cts->from < cts->want; /* segments: the receive buffer is not registered as a whole */
    take_key(&frag->rkey, cts->key, cts->key_bytes);
    if (frag->from == frag->to) { /* empty half: nothing to put, only the FIN */
        on_put_done(frag, 0);
        return;
    }
    if (weft_reg_needed(req->iface) && (!cts->key_bytes ||
        (!req->pin && weft_reg_acquire(req->iface, (char *)weft_frag_start_of(req) + frag->from, frag->bytes, 0, &frag->pin))))
        push_instead(frag);
    else
        weft_frag_start(frag);
}

static void push_frag(weft_req *req, const weft_cts *cts)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_DATA, cts->from, cts->to, on_data_done);
    if (weft_knob.reg_mode != WEFT_REG_MODE_PIPELINE)
        reg_async(req, WEFT_ACCESS_READ);
    if (frag) {
        weft_frag_start(frag);
        return;
    }
    send_fin(req, 0, WEFT_E_NOMEM);
    end_one(req, no_memory(req->peer));
}

void weft_rndv_cts(weft_peer *peer, const weft_hdr *hdr, const weft_cts *cts)
{
    weft_req *req = weft_req_id_lookup(peer->worker, hdr->chan);
    if (!req || req->kind != WEFT_REQ_SEND) {
        if (cts->proto == WEFT_RNDV_PUT) /* the send has failed, the receiver knows; it still waits for this segment */
            send_small(peer, WEFT_FRAME_FIN, cts->req_id, (int32_t)cts->index, WEFT_E_OTHER, NULL, 0);
        return;
    }
    if (cts->proto == WEFT_CTS_CSUM) {
        uint32_t sum = weft_msg_csum_of_prefix(req, cts->want < req->bytes ? cts->want : req->bytes);
        send_small(peer, WEFT_FRAME_CSUM, cts->req_id, (int32_t)sum, 0, NULL, 0);
        return;
    }
    req->remote_req_id = cts->req_id;
    req->moved = cts->want;
    if (cts->proto == WEFT_RNDV_SPLIT)
        req->left = 2; /* own put, and the receiver's FIN */
    if (cts->proto == WEFT_RNDV_COPY)
        push_frag(req, cts);
    else
        put_frag(req, cts);
}

/* -- the receiver -- */

static weft_rndv_xfer xfer_of(const weft_req *req)
{
    return (weft_rndv_xfer){.proto = req->mode, .is_cold = req->is_cold, .is_both_ways = req->is_both_ways, .bytes = req->moved};
}

static void begin_xfer(weft_req *req)
{
    weft_rndv_xfer xfer = xfer_of(req);
    req->begin_ns = weft_clock_ns();
    weft_rndv_xfer_begin(req->peer->rndv_stats, &xfer, req->begin_ns);
}

static void end_xfer(weft_req *req)
{
    if (!req->begin_ns) /* empty: no protocol was chosen */
        return;
    weft_rndv_xfer xfer = xfer_of(req);
    weft_bidir_recv_end(&req->peer->bidir);
    weft_rndv_xfer_end(req->peer->rndv_stats, &xfer, req->rc, req->begin_ns, weft_clock_ns());
}

static void end_recv(weft_req *req)
{
    end_xfer(req);
    if (req->next > SEGMENT && req->mode != WEFT_RNDV_COPY && !req->rc)
        reg_async(req, req->mode == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0);
    weft_reg_release(req->iface, req->pin);
    if (req->id)
        free_req_id(req);
    if (!req->rc && req->has_csum)
        req->rc = weft_msg_csum_check(req, req->peer, req->moved, req->csum, weft_rndv_proto_name(req->mode));
    if (!req->rc && req->recv_info.bytes > req->bytes)
        req->rc = weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu", req->recv_info.source,
                            req->recv_info.tag, (unsigned long long)req->recv_info.bytes, (unsigned long long)req->bytes);
    if (req->recv_info.bytes > req->bytes)
        req->recv_info.bytes = req->bytes;
    weft_req_end(req, req->rc);
}

/* Ends the receive if nothing is in flight. The sender waits for a FIN after a get and after any error. */
static void try_complete_recv(weft_req *req)
{
    if (req->is_stepping || req->fragment_count || ((req->arrived < req->moved || req->awaits_csum) && !req->rc))
        return;
    if ((req->mode == WEFT_RNDV_GET || req->rc) && !req->fin_done)
        send_fin(req, 0, req->rc);
    end_recv(req);
}

/* Requests the sender to move bytes [from, to). PUT: lent is the exposed fragment. pin: registration of it; NULL: no key is sent. */
static void send_cts(weft_req *req, enum weft_rndv_proto proto, uint64_t from, uint64_t to, weft_frag *lent, const weft_reg *pin)
{
    union { weft_cts cts; char room[sizeof(weft_cts) + WEFT_RKEY_BYTES]; } body = {.cts = {
        .addr = proto == WEFT_RNDV_COPY ? 0 : (uint64_t)(uintptr_t)weft_frag_start_of(req), .from = from, .to = to, .want = req->moved,
        .req_id = req->id, .index = lent ? lent->index : 0, .proto = (uint8_t)proto}};
    if (pin)
        body.cts.key_bytes = put_key(body.cts.key, req, pin, from, to, WEFT_ACCESS_WRITE, &lent->mw);
    send_small(req->peer, WEFT_FRAME_CTS, req->remote_req_id, 0, 0, &body.cts, (uint32_t)WEFT_CTS_BYTES + body.cts.key_bytes);
}

static void start_frags(weft_req *req);

static void on_get_done(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    bool is_half = req->mode == WEFT_RNDV_SPLIT;
    if (!is_half && is_to_be_copied(req->peer, rc)) {
        req->arrived += frag->bytes - (frag->to - frag->from);
        send_cts(req, WEFT_RNDV_COPY, frag->from, frag->to, NULL, NULL);
    } else if (rc) {
        req->rc = req->rc ? req->rc : rc;
    } else {
        req->arrived += frag->bytes;
    }
    weft_frag_free(frag);
    if (is_half) {
        req->fin_done = true;
        send_fin(req, 0, rc);
    }
    start_frags(req);
}

/* Reads a fragment by get, or requests DATA frames if the local memory cannot be registered. */
static void get_frag(weft_req *req, uint64_t from, uint64_t to)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_GET, from, to, on_get_done);
    if (!frag) {
        req->rc = no_memory(req->peer);
        return;
    }
    if (weft_reg_needed(req->iface) && !req->pin &&
        weft_reg_acquire(req->iface, (char *)weft_frag_start_of(req) + from, to - from, 0, &frag->pin)) {
        weft_frag_free(frag);
        send_cts(req, WEFT_RNDV_COPY, from, to, NULL, NULL);
        return;
    }
    frag->far = req->remote_addr;
    frag->rkey = req->remote_rkey;
    weft_frag_start(frag);
}

/* Exposes a fragment to the sender, which writes it and sends FIN. */
static void expose_frag(weft_req *req, uint64_t from, uint64_t to)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_EXPOSED, from, to, NULL);
    const weft_reg *pin = req->pin;
    if (!frag) {
        req->rc = no_memory(req->peer);
        return;
    }
    if (req->peer->no_rma) /* no key: the sender uses DATA frames, then FIN as for a put */
        pin = NULL;
    else if (!pin && weft_reg_needed(req->iface) &&
        weft_reg_acquire(req->iface, (char *)weft_frag_start_of(req) + from, to - from, WEFT_ACCESS_WRITE, &frag->pin) == 0)
        pin = frag->pin;
    frag->index = ++req->segments;
    weft_list_append(&req->lent, &frag->link);
    send_cts(req, WEFT_RNDV_PUT, from, to, frag, pin);
}

/* Starts fragments up to SEGMENTS_AHEAD in flight. A fragment may end inside the call that starts it and call this again: only the
 * outermost call runs the loop (is_stepping). */
static void start_frags(weft_req *req)
{
    if (req->is_stepping)
        return;
    req->is_stepping = true;
    while (req->next < req->moved && req->fragment_count < SEGMENTS_AHEAD && !req->rc) {
        uint64_t from = req->next, rest = req->moved - from;
        bool is_whole = req->pin || !weft_reg_needed(req->iface) || req->peer->no_rma;
        req->next = is_whole || rest <= SEGMENT ? req->moved : from + SEGMENT;
        if (req->mode == WEFT_RNDV_GET && req->peer->no_rma)
            send_cts(req, WEFT_RNDV_COPY, from, req->next, NULL, NULL);
        else if (req->mode == WEFT_RNDV_GET)
            get_frag(req, from, req->next);
        else
            expose_frag(req, from, req->next);
    }
    req->is_stepping = false;
    try_complete_recv(req);
}

/* CTS is sent before the get, so that both sides move at the same time. */
static void move_halves(weft_req *req)
{
    uint64_t middle = req->moved / 2 / 4096 * 4096;
    send_cts(req, WEFT_RNDV_SPLIT, middle, req->moved, NULL, NULL);
    req->next = req->moved;
    req->is_stepping = true;
    if (middle)
        get_frag(req, 0, middle);
    else
        send_fin(req, 0, 0), req->fin_done = true;
    req->is_stepping = false;
    try_complete_recv(req);
}

/* Is the part of the receive buffer to be moved registered with these rights? If so req->pin holds it. */
static bool is_warm(weft_req *req, uint32_t rights)
{
    if (!req->pin)
        req->pin = weft_reg_lookup_posted(req->iface, req->order, weft_frag_start_of(req), req->moved, rights);
    return req->pin;
}

static enum weft_rndv_proto choose(weft_req *req, const weft_rts *rts)
{
    weft_peer *peer = req->peer;
    weft_rndv_caps rndv_caps = {.can_move = req->is_dense && rts->addr && !(rts->flags & WEFT_RTS_NO_RMA) && !peer->no_rma,
                        .has_key = rts->key_bytes, .is_cold = rts->flags & WEFT_RTS_COLD};
    bool needs_pins = weft_reg_needed(req->iface);
    enum weft_rndv_proto proto, hinted = rts->flags >> WEFT_RTS_HINT_SHIFT;
    weft_bidir_recv_begin(&peer->bidir, rts->flags & WEFT_RTS_BOTH_WAYS);
    if (needs_pins && !weft_reg_allowed(req->iface))
        rndv_caps.can_move = false;
    /* RMA must be known to work before a protocol that needs it is announced to the sender */
    if (rndv_caps.can_move && !req->iface->ops->can_rma(req->iface, peer->ep)) {
        peer->no_rma = true;
        rndv_caps.can_move = false;
    }
    if (rndv_caps.can_move && needs_pins)
        rndv_caps.is_cold |= !is_warm(req, rndv_caps.has_key ? 0 : WEFT_ACCESS_WRITE);
    req->is_cold = rndv_caps.is_cold;
    req->is_both_ways = weft_rndv_is_shared(req->iface) && (weft_bidir_expects_send(&peer->bidir) || peer->rndv_stats->sends);
    if (hinted && weft_rndv_allows(peer, hinted - 1, &rndv_caps))
        proto = hinted - 1;
    else
        proto = weft_rndv_select(peer->rndv_stats, peer, req->moved, &rndv_caps, req->is_both_ways);
    if (req->pin && proto == WEFT_RNDV_PUT && !weft_reg_grants(req->iface, req->pin, WEFT_ACCESS_WRITE)) {
        weft_reg_release(req->iface, req->pin);
        req->pin = NULL;
        is_warm(req, WEFT_ACCESS_WRITE);
    }
    /* registered at once if the knob says so or the message is short; else segment by segment */
    if (proto != WEFT_RNDV_COPY && needs_pins && !req->pin && (weft_knob.reg_mode == WEFT_REG_MODE_SYNC || req->moved <= SEGMENT))
        weft_reg_acquire(req->iface, weft_frag_start_of(req), req->moved, proto == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0, &req->pin);
    return proto;
}

/* Must be called before anything that may end the send; frames to a peer keep their order. */
static void request_csum(weft_req *req)
{
    weft_cts cts = {.want = req->moved, .req_id = req->id, .proto = WEFT_CTS_CSUM};
    req->awaits_csum = true;
    send_small(req->peer, WEFT_FRAME_CTS, req->remote_req_id, 0, 0, &cts, (uint32_t)WEFT_CTS_BYTES);
}

void weft_rndv_csum(weft_peer *peer, const weft_hdr *hdr)
{
    weft_req *req = weft_req_id_lookup(peer->worker, hdr->chan);
    if (!req || req->kind != WEFT_REQ_RECV || !req->awaits_csum)
        return;
    req->csum = (uint32_t)hdr->src;
    req->awaits_csum = false;
    try_complete_recv(req);
}

void weft_rndv_recv_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts)
{
    int rc;
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = rts->bytes};
    req->moved = rts->bytes < req->bytes ? rts->bytes : req->bytes;
    begin(req, peer);
    req->remote_req_id = rts->req_id;
    req->csum = rts->csum;
    req->has_csum = hdr->flags & WEFT_HDR_MSG_CSUM;
    req->mode = WEFT_RNDV_COPY;
    req->begin_ns = 0;
    req->next = 0;
    req->id = 0;
    req->awaits_csum = false;
    if (req->moved == 0 && !(req->has_csum && rts->bytes)) {
        send_fin(req, 0, 0);
        req->fin_done = true;
        end_recv(req);
        return;
    }
    rc = weft_req_id_alloc(req->worker, req);
    if (weft_unlikely(rc)) {
        if (rc == WEFT_AGAIN && put_aside(peer, req, hdr, rts))
            return;
        send_fin(req, 0, WEFT_E_NOMEM);
        weft_req_end(req, no_memory(peer));
        return;
    }
    req->segments = 0;
    weft_list_init(&req->lent);
    if (req->has_csum && req->moved < rts->bytes)
        request_csum(req);
    if (req->moved == 0) {
        req->mode = WEFT_RNDV_GET; /* receive of 0 bytes: moves nothing; FIN follows the checksum */
        return;
    }
    req->remote_addr = rts->addr;
    take_key(&req->remote_rkey, rts->key, rts->key_bytes);
    req->mode = (uint8_t)choose(req, rts);
    begin_xfer(req);
    req->worker->counters[WEFT_COUNT_RNDV_COPY + req->mode]++; /* now: req may be freed below */
    if (req->mode == WEFT_RNDV_COPY) {
        if (weft_knob.reg_mode != WEFT_REG_MODE_PIPELINE)
            reg_async(req, req->iface->caps.get ? 0 : WEFT_ACCESS_WRITE);
        req->next = req->moved;
        send_cts(req, WEFT_RNDV_COPY, 0, req->moved, NULL, NULL);
    } else if (req->mode == WEFT_RNDV_SPLIT) {
        move_halves(req);
    } else {
        start_frags(req);
    }
}

/* Exposed segments and the sender's half are counted at its FIN, also if it sent them by DATA. */
void weft_rndv_data(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_req *req = weft_req_id_lookup(peer->worker, hdr->chan);
    uint64_t offset = (uint64_t)(uint32_t)hdr->src << 32 | (uint32_t)hdr->tag;
    if (!req || req->kind != WEFT_REQ_RECV || offset > req->moved || hdr->bytes > req->moved - offset)
        return;
    if (req->is_dense)
        memcpy((char *)weft_frag_start_of(req) + offset, body, hdr->bytes);
    else
        weft_unpack(req->type, req->buf, req->count, offset, hdr->bytes, body);
    req->worker->counters[WEFT_COUNT_BYTES_COPIED] += hdr->bytes;
    if (req->mode != WEFT_RNDV_COPY && req->mode != WEFT_RNDV_GET)
        return;
    req->arrived += hdr->bytes;
    try_complete_recv(req);
}

void weft_rndv_reject_rts(weft_peer *peer, const weft_rts *rts, int rc)
{
    send_small(peer, WEFT_FRAME_FIN, rts->req_id, 0, rc, NULL, 0);
}

/* FIN of the sender: segment `index` or its half (0) is written, or the send failed with rc. */
static void handle_fin(weft_req *req, uint32_t index, int rc)
{
    if (rc) {
        req->fin_done = true; /* the sender needs no FIN */
        req->rc = req->rc ? req->rc : rc;
    }
    if (!index) {
        if (!rc && req->mode == WEFT_RNDV_SPLIT)
            req->arrived += req->moved - req->moved / 2 / 4096 * 4096;
        try_complete_recv(req);
        return;
    }
    for (weft_list_link *link = req->lent.next; link != &req->lent; link = link->next) {
        weft_frag *frag = weft_container(link, weft_frag, link);
        if (frag->index != index)
            continue;
        weft_list_remove(link);
        req->arrived += frag->bytes;
        weft_frag_free(frag);
        start_frags(req);
        return;
    }
}

void weft_rndv_fin(weft_peer *peer, const weft_hdr *hdr)
{
    weft_req *req = weft_req_id_lookup(peer->worker, hdr->chan);
    int rc = hdr->tag;
    if (!req)
        return;
    if (rc < 0) /* sets the error text; this thread's last text belongs to another failure */
        weft_fail(rc, req->kind == WEFT_REQ_RECV ? "rank %u could not send the rest of its message with tag %d: %s"
                                                 : "rank %u did not take the message with tag %d: %s", peer->proc_id.rank,
                  req->kind == WEFT_REQ_RECV ? req->recv_info.tag : req->tag, weft_status_text(rc));
    if (req->kind == WEFT_REQ_RECV) {
        handle_fin(req, (uint32_t)hdr->src, rc);
        return;
    }
    req->recv_info.cancelled = rc == WEFT_FIN_CANCELLED;
    end_one(req, req->recv_info.cancelled ? 0 : rc);
}

void weft_rndv_cancel(weft_req *req)
{
    if (req->fin_done)
        return;
    req->fin_done = true;
    send_small(req->peer, WEFT_FRAME_CANCEL, req->id, 0, 0, NULL, 0);
}

/* An RTS that has matched is not found here: its transfer continues and ends the send normally. */
void weft_rndv_on_cancel(weft_peer *peer, const weft_hdr *hdr)
{
    weft_unexpected *unexpected = weft_match_announced(peer->worker, peer, hdr->chan);
    weft_chan *chan = unexpected ? weft_chan_of(peer->worker, unexpected->hdr.chan) : NULL;
    if (!chan)
        return;
    weft_unexpected_remove(&chan->match, peer->worker, unexpected);
    weft_peer_add_credits_due(peer, unexpected->hdr.bytes);
    weft_unexpected_free(peer->worker, unexpected);
    send_small(peer, WEFT_FRAME_FIN, hdr->chan, 0, WEFT_FIN_CANCELLED, NULL, 0);
}
