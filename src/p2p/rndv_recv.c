/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_recv: the receiver's half of a rendezvous: selects the protocol when the message matches, reads fragments, exposes them to the
 * sender's puts or takes DATA frames, and ends when all bytes have arrived. See rndv.h.
 */
#include "p2p/rndv.h"

#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/status.h"
#include "mem/pool.h"
#include "p2p/bidir.h"
#include "p2p/frag.h"
#include "p2p/msg_csum.h"
#include "p2p/rndv_internal.h"
#include "p2p/rndv_select.h"
#include "type/pack.h"
#include "type/type.h"

#define SEGMENTS_AHEAD 3 /* fragments in flight per receive */

/* A receive that matched while no request id was free. */
typedef struct pending_rts {
    weft_list_link link; /* in worker->pending_rts */
    weft_req *req;       /* the receive */
    weft_peer *peer;     /* sender */
    weft_hdr hdr;
    uint64_t rts[];      /* [hdr.bytes] weft_rts with its key */
} pending_rts;

static bool defer_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts)
{
    pending_rts *one = weft_pool_alloc(req->worker->pool, sizeof *one + hdr->bytes);
    if (!one)
        return false;
    one->req = req;
    one->peer = peer;
    one->hdr = *hdr;
    memcpy(one->rts, rts, hdr->bytes);
    weft_list_append(&req->worker->pending_rts, &one->link);
    return true;
}

void weft_rndv_begin_pending(weft_worker *worker)
{
    weft_list_link *link;
    if (worker->is_assigning_ids)
        return;
    worker->is_assigning_ids = true;
    while (worker->req_id_free && (link = weft_list_take(&worker->pending_rts))) {
        pending_rts *one = weft_container(link, pending_rts, link);
        weft_rndv_recv_rts(one->peer, one->req, &one->hdr, (const weft_rts *)one->rts);
        weft_pool_free(worker->pool, one, sizeof *one + one->hdr.bytes);
    }
    worker->is_assigning_ids = false;
}

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
    if (req->next > WEFT_RNDV_SEGMENT && req->mode != WEFT_RNDV_COPY && !req->rc)
        weft_rndv_reg_async(req, req->mode == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0);
    weft_reg_release(req->iface, req->reg);
    if (req->id)
        weft_rndv_free_req_id(req);
    if (!req->rc && req->has_csum)
        req->rc = weft_msg_csum_check(req, req->peer, req->moved, req->csum, weft_rndv_proto_name(req->mode));
    if (!req->rc && req->recv_info.bytes > req->bytes)
        req->rc = weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu",
                            req->recv_info.source, req->recv_info.tag, (unsigned long long)req->recv_info.bytes,
                            (unsigned long long)req->bytes);
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
        weft_rndv_send_fin(req, 0, req->rc);
    end_recv(req);
}

/* Requests the sender to move bytes [from, to). PUT: exposed is the exposed fragment. reg: registration of it; NULL: no key is sent. */
static void send_cts(weft_req *req, enum weft_rndv_proto proto, uint64_t from, uint64_t to, weft_frag *exposed, const weft_reg *reg)
{
    union { weft_cts cts; char space[sizeof(weft_cts) + WEFT_RKEY_BYTES]; } body = {.cts = {
        .addr = proto == WEFT_RNDV_COPY ? 0 : (uint64_t)(uintptr_t)weft_frag_start_of(req), .from = from, .to = to, .want = req->moved,
        .req_id = req->id, .index = exposed ? exposed->index : 0, .proto = (uint8_t)proto}};
    if (reg)
        body.cts.key_bytes = weft_rndv_put_key(body.cts.key, req, reg, from, to, WEFT_ACCESS_WRITE, &exposed->mw);
    weft_rndv_send_small(req->peer, WEFT_FRAME_CTS, req->remote_req_id, 0, 0, &body.cts, (uint32_t)WEFT_CTS_BYTES + body.cts.key_bytes);
}

static void start_frags(weft_req *req);

static void on_get_done(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    bool is_half = req->mode == WEFT_RNDV_SPLIT;
    if (!is_half && weft_rndv_is_to_be_copied(req->peer, rc)) {
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
        weft_rndv_send_fin(req, 0, rc);
    }
    start_frags(req);
}

/* Reads a fragment by get, or requests DATA frames if the local memory cannot be registered. */
static void get_frag(weft_req *req, uint64_t from, uint64_t to)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_GET, from, to, on_get_done);
    if (!frag) {
        req->rc = weft_rndv_no_memory(req->peer);
        return;
    }
    if (weft_reg_needed(req->iface) && !req->reg &&
        weft_reg_acquire(req->iface, (char *)weft_frag_start_of(req) + from, to - from, 0, &frag->reg)) {
        weft_frag_free(frag);
        send_cts(req, WEFT_RNDV_COPY, from, to, NULL, NULL);
        return;
    }
    frag->remote_addr = req->remote_addr;
    frag->rkey = req->remote_rkey;
    weft_frag_start(frag);
}

/* Exposes a fragment to the sender, which writes it and sends FIN. */
static void expose_frag(weft_req *req, uint64_t from, uint64_t to)
{
    weft_frag *frag = weft_frag_new(req, WEFT_FRAG_EXPOSED, from, to, NULL);
    const weft_reg *reg = req->reg;
    if (!frag) {
        req->rc = weft_rndv_no_memory(req->peer);
        return;
    }
    if (req->peer->no_rma) /* no key: the sender uses DATA frames, then FIN as for a put */
        reg = NULL;
    else if (!reg && weft_reg_needed(req->iface) &&
        weft_reg_acquire(req->iface, (char *)weft_frag_start_of(req) + from, to - from, WEFT_ACCESS_WRITE, &frag->reg) == 0)
        reg = frag->reg;
    frag->index = ++req->segments;
    weft_list_append(&req->exposed, &frag->link);
    send_cts(req, WEFT_RNDV_PUT, from, to, frag, reg);
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
        bool is_whole = req->reg || !weft_reg_needed(req->iface) || req->peer->no_rma;
        req->next = is_whole || rest <= WEFT_RNDV_SEGMENT ? req->moved : from + WEFT_RNDV_SEGMENT;
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
        weft_rndv_send_fin(req, 0, 0), req->fin_done = true;
    req->is_stepping = false;
    try_complete_recv(req);
}

/* Is the part of the receive buffer to be moved registered with these rights? If so req->reg holds it. */
static bool is_warm(weft_req *req, uint32_t rights)
{
    if (!req->reg)
        req->reg = weft_reg_lookup_posted(req->iface, req->order, weft_frag_start_of(req), req->moved, rights);
    return req->reg;
}

static enum weft_rndv_proto choose(weft_req *req, const weft_rts *rts)
{
    weft_peer *peer = req->peer;
    weft_rndv_caps rndv_caps = {.can_move = req->is_dense && rts->addr && !(rts->flags & WEFT_RTS_NO_RMA) && !peer->no_rma,
                        .has_key = rts->key_bytes, .is_cold = rts->flags & WEFT_RTS_COLD};
    bool needs_reg = weft_reg_needed(req->iface);
    enum weft_rndv_proto proto, hinted = rts->flags >> WEFT_RTS_HINT_SHIFT;
    weft_bidir_recv_begin(&peer->bidir, rts->flags & WEFT_RTS_BOTH_WAYS);
    if (needs_reg && !weft_reg_allowed(req->iface))
        rndv_caps.can_move = false;
    /* RMA must be known to work before a protocol that needs it is announced to the sender */
    if (rndv_caps.can_move && !req->iface->ops->can_rma(req->iface, peer->ep)) {
        peer->no_rma = true;
        rndv_caps.can_move = false;
    }
    if (rndv_caps.can_move && needs_reg)
        rndv_caps.is_cold |= !is_warm(req, rndv_caps.has_key ? 0 : WEFT_ACCESS_WRITE);
    req->is_cold = rndv_caps.is_cold;
    req->is_both_ways = weft_rndv_is_shared(req->iface) && (weft_bidir_expects_send(&peer->bidir) || peer->rndv_stats->sends);
    if (hinted && weft_rndv_allows(peer, hinted - 1, &rndv_caps))
        proto = hinted - 1;
    else
        proto = weft_rndv_select(peer->rndv_stats, peer, req->moved, &rndv_caps, req->is_both_ways);
    if (req->reg && proto == WEFT_RNDV_PUT && !weft_reg_grants(req->iface, req->reg, WEFT_ACCESS_WRITE)) {
        weft_reg_release(req->iface, req->reg);
        req->reg = NULL;
        is_warm(req, WEFT_ACCESS_WRITE);
    }
    /* registered at once by the knob or if the message is short; else segment by segment */
    if (proto != WEFT_RNDV_COPY && needs_reg && !req->reg && (weft_knob.reg_mode == WEFT_REG_MODE_SYNC || req->moved <= WEFT_RNDV_SEGMENT))
        weft_reg_acquire(req->iface, weft_frag_start_of(req), req->moved, proto == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0, &req->reg);
    return proto;
}

/* Must be called before anything that may end the send; frames to a peer keep their order. */
static void request_csum(weft_req *req)
{
    weft_cts cts = {.want = req->moved, .req_id = req->id, .proto = WEFT_CTS_CSUM};
    req->awaits_csum = true;
    weft_rndv_send_small(req->peer, WEFT_FRAME_CTS, req->remote_req_id, 0, 0, &cts, (uint32_t)WEFT_CTS_BYTES);
}

void weft_rndv_recv_on_csum(weft_req *req, uint32_t csum)
{
    req->csum = csum;
    req->awaits_csum = false;
    try_complete_recv(req);
}

void weft_rndv_recv_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts)
{
    int rc;
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = rts->bytes};
    req->moved = rts->bytes < req->bytes ? rts->bytes : req->bytes;
    weft_rndv_begin(req, peer);
    req->remote_req_id = rts->req_id;
    req->csum = rts->csum;
    req->has_csum = hdr->flags & WEFT_HDR_MSG_CSUM;
    req->mode = WEFT_RNDV_COPY;
    req->begin_ns = 0;
    req->next = 0;
    req->id = 0;
    req->awaits_csum = false;
    if (req->moved == 0 && !(req->has_csum && rts->bytes)) {
        weft_rndv_send_fin(req, 0, 0);
        req->fin_done = true;
        end_recv(req);
        return;
    }
    rc = weft_req_id_alloc(req->worker, req);
    if (weft_unlikely(rc)) {
        if (rc == WEFT_AGAIN && defer_rts(peer, req, hdr, rts))
            return;
        weft_rndv_send_fin(req, 0, WEFT_E_NOMEM);
        weft_req_end(req, weft_rndv_no_memory(peer));
        return;
    }
    req->segments = 0;
    weft_list_init(&req->exposed);
    if (req->has_csum && req->moved < rts->bytes)
        request_csum(req);
    if (req->moved == 0) {
        req->mode = WEFT_RNDV_GET; /* receive of 0 bytes: moves nothing; FIN follows the checksum */
        req->state = WEFT_RNDV_RECV_CSUM;
        return;
    }
    req->remote_addr = rts->addr;
    weft_rndv_take_key(&req->remote_rkey, rts->key, rts->key_bytes);
    req->mode = (uint8_t)choose(req, rts);
    req->state = WEFT_RNDV_RECV_COPY + req->mode;
    begin_xfer(req);
    req->worker->counters[WEFT_COUNT_RNDV_COPY + req->mode]++; /* now: req may be freed below */
    if (req->mode == WEFT_RNDV_COPY) {
        if (weft_knob.reg_mode != WEFT_REG_MODE_PIPELINE)
            weft_rndv_reg_async(req, req->iface->caps.get ? 0 : WEFT_ACCESS_WRITE);
        req->next = req->moved;
        send_cts(req, WEFT_RNDV_COPY, 0, req->moved, NULL, NULL);
    } else if (req->mode == WEFT_RNDV_SPLIT) {
        move_halves(req);
    } else {
        start_frags(req);
    }
}

/* Exposed segments and the sender's half are counted at its FIN, also if it sent them by DATA. */
void weft_rndv_recv_on_data(weft_req *req, uint64_t offset, const void *body, uint32_t bytes)
{
    if (req->is_dense)
        memcpy((char *)weft_frag_start_of(req) + offset, body, bytes);
    else
        weft_unpack(req->type, req->buf, req->count, offset, bytes, body);
    req->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    if (req->mode != WEFT_RNDV_COPY && req->mode != WEFT_RNDV_GET)
        return;
    req->arrived += bytes;
    try_complete_recv(req);
}

void weft_rndv_reject_rts(weft_peer *peer, const weft_rts *rts, int rc)
{
    weft_rndv_send_small(peer, WEFT_FRAME_FIN, rts->req_id, 0, rc, NULL, 0);
}

void weft_rndv_recv_on_fin(weft_req *req, uint32_t index, int rc)
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
    for (weft_list_link *link = req->exposed.next; link != &req->exposed; link = link->next) {
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
    weft_rndv_send_small(peer, WEFT_FRAME_FIN, hdr->chan, 0, WEFT_FIN_CANCELLED, NULL, 0);
}
