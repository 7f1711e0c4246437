/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_recv: the receiver's half of a rendezvous: selects the protocol when the message matches, reads fragments, exposes them to the
 * sender's puts or takes DATA frames, and ends when all bytes have arrived. See rndv.h.
 */
#include "p2p/rndv.h"

#include <string.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/knob.h"
#include "base/status.h"
#include "mem/pool.h"
#include "p2p/bidir.h"
#include "p2p/deliver.h"
#include "p2p/frag.h"
#include "p2p/msg_csum.h"
#include "p2p/promise.h"
#include "p2p/rndv_internal.h"
#include "p2p/rndv_select.h"
#include "p2p/withdrawn.h"
#include "type/pack.h"
#include "type/type.h"

#define SEGMENTS_AHEAD 3 /* fragments in flight per receive */

/* A receive that matched while no state was free. */
typedef struct pending_rts {
    weft_list_link link; /* in the pool's pending */
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
    weft_list_append(&req->worker->rndv_pool->pending, &one->link);
    return true;
}

void weft_rndv_begin_pending(weft_worker *worker)
{
    weft_rndv_pool *pool = worker->rndv_pool;
    weft_list_link *link;
    if (pool->is_beginning)
        return;
    pool->is_beginning = true;
    while (pool->free_count && (link = weft_list_take(&pool->pending))) {
        pending_rts *one = weft_container(link, pending_rts, link);
        weft_rndv_recv_rts(one->peer, one->req, &one->hdr, (const weft_rts *)one->rts);
        weft_pool_free(worker->pool, one, sizeof *one + one->hdr.bytes);
    }
    pool->is_beginning = false;
}

static weft_rndv_xfer xfer_of(const weft_rndv *rndv)
{
    return (weft_rndv_xfer){.proto = rndv->proto, .is_cold = rndv->is_cold, .is_both_ways = rndv->is_both_ways, .bytes = rndv->moved};
}

static void begin_xfer(weft_rndv *rndv)
{
    weft_rndv_xfer xfer = xfer_of(rndv);
    rndv->begin_ns = weft_clock_ns();
    weft_rndv_xfer_begin(rndv->peer->rndv_stats, &xfer, rndv->begin_ns);
}

static void end_xfer(weft_rndv *rndv)
{
    if (!rndv->begin_ns) /* empty: no protocol was chosen */
        return;
    weft_rndv_xfer xfer = xfer_of(rndv);
    weft_bidir_recv_end(&rndv->peer->bidir);
    weft_rndv_xfer_end(rndv->peer->rndv_stats, &xfer, rndv->req->rc, rndv->begin_ns, weft_clock_ns());
}

/* The rendezvous is over. */
static void end_req(weft_req *req)
{
    if (!req->rc && req->recv_info.bytes > req->bytes)
        req->rc = weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu",
                            req->recv_info.source, req->recv_info.tag, (unsigned long long)req->recv_info.bytes,
                            (unsigned long long)req->bytes);
    if (req->recv_info.bytes > req->bytes)
        req->recv_info.bytes = req->bytes;
    weft_req_end(req, req->rc);
}

static void end_recv(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    const weft_peer *peer = rndv->peer;
    uint64_t moved = rndv->moved;
    uint32_t csum = rndv->csum;
    bool has_csum = rndv->has_csum;
    enum weft_rndv_proto proto = rndv->proto;
    end_xfer(rndv);
    if (rndv->next > WEFT_RNDV_SEGMENT && proto != WEFT_RNDV_COPY && !req->rc)
        weft_rndv_reg_async(rndv, proto == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0);
    weft_reg_release(rndv->iface, rndv->reg);
    weft_rndv_release(rndv); /* before an error text is set: it may begin another receive */
    if (!req->rc && has_csum)
        req->rc = weft_msg_csum_check(req, peer, moved, csum, weft_rndv_proto_name(proto));
    end_req(req);
}

/* Ends the receive if nothing is in flight. The sender waits for a FIN after a get and after any error. */
static void try_complete_recv(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    if (rndv->is_stepping || rndv->fragment_count || ((rndv->arrived < rndv->moved || rndv->awaits_csum) && !req->rc))
        return;
    if ((rndv->proto == WEFT_RNDV_GET || req->rc) && !rndv->fin_done)
        weft_rndv_send_fin(rndv, 0, req->rc);
    end_recv(rndv);
}

/* A CTS, or the same as a PROMISE, with space for a key. */
typedef union request { weft_cts cts; char space[sizeof(weft_cts) + WEFT_RKEY_BYTES]; } request;

/* Requests the sender to move bytes [from, to). PUT: exposed is the exposed fragment. reg: registration of it; NULL: no key is sent. */
static void send_cts(weft_rndv *rndv, enum weft_rndv_proto proto, uint64_t from, uint64_t to, weft_frag *exposed, const weft_reg *reg)
{
    request body = {.cts = {
        .addr = proto == WEFT_RNDV_COPY ? 0 : (uint64_t)(uintptr_t)weft_req_start(rndv->req), .from = from, .to = to, .want = rndv->moved,
        .req_id = rndv->id, .index = exposed ? exposed->index : 0, .proto = (uint8_t)proto}};
    if (reg)
        body.cts.key_bytes = weft_rndv_put_key(body.cts.key, rndv, reg, from, to, WEFT_ACCESS_WRITE, &exposed->mw);
    weft_rndv_send_small(rndv->peer, WEFT_FRAME_CTS, rndv->remote_id, 0, 0, &body.cts, (uint32_t)WEFT_CTS_BYTES + body.cts.key_bytes);
}

static void start_frags(weft_rndv *rndv);

static void on_get_done(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    weft_req *req = frag->req;
    bool is_half = rndv->proto == WEFT_RNDV_SPLIT;
    if (!is_half && weft_rndv_is_to_be_copied(rndv->peer, rc)) {
        rndv->arrived += frag->bytes - (frag->to - frag->from);
        send_cts(rndv, WEFT_RNDV_COPY, frag->from, frag->to, NULL, NULL);
    } else if (rc) {
        req->rc = req->rc ? req->rc : rc;
    } else {
        rndv->arrived += frag->bytes;
    }
    weft_frag_free(frag);
    if (is_half) {
        rndv->fin_done = true;
        weft_rndv_send_fin(rndv, 0, rc);
    }
    start_frags(rndv);
}

/* The memory that it should read into cannot be registered: requests DATA frames. */
static void request_instead(weft_frag *frag)
{
    weft_rndv *rndv = frag->rndv;
    uint64_t from = frag->from, to = frag->to;
    weft_frag_free(frag);
    send_cts(rndv, WEFT_RNDV_COPY, from, to, NULL, NULL);
}

static void on_sink_registered(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    if (!rc && !frag->req->rc) {
        weft_frag_start(frag);
        return;
    }
    if (frag->req->rc)
        weft_frag_free(frag);
    else
        request_instead(frag);
    start_frags(rndv);
}

/* Reads a fragment by get, or requests DATA frames if the local memory cannot be registered. */
static void get_frag(weft_rndv *rndv, uint64_t from, uint64_t to)
{
    weft_req *req = rndv->req;
    weft_frag *frag = weft_frag_new(req, rndv, WEFT_FRAG_GET, from, to, on_get_done);
    int rc = 0;
    if (!frag) {
        req->rc = weft_rndv_no_memory(rndv->peer);
        return;
    }
    frag->remote_addr = rndv->remote_addr;
    frag->rkey = rndv->remote_rkey;
    if (weft_reg_needed(rndv->iface) && !rndv->reg)
        rc = weft_reg_acquire(rndv->iface, (char *)weft_req_start(req) + from, to - from, 0, &frag->reg);
    if (rc == WEFT_INPROGRESS)
        weft_frag_await(frag, on_sink_registered);
    else if (rc)
        request_instead(frag);
    else
        weft_frag_start(frag);
}

/* reg: registration of the fragment; NULL: without a key the sender uses DATA frames, then FIN as for a put. */
static void expose(weft_frag *frag, const weft_reg *reg)
{
    weft_rndv *rndv = frag->rndv;
    weft_list_append(&rndv->exposed, &frag->link);
    send_cts(rndv, WEFT_RNDV_PUT, frag->from, frag->to, frag, reg);
}

static void on_exposed_registered(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    if (!frag->req->rc) {
        expose(frag, rc || rndv->peer->no_rma ? NULL : frag->reg);
        return;
    }
    weft_frag_free(frag);
    start_frags(rndv);
}

/* Exposes a fragment to the sender, which writes it and sends FIN. */
static void expose_frag(weft_rndv *rndv, uint64_t from, uint64_t to)
{
    weft_req *req = rndv->req;
    weft_frag *frag = weft_frag_new(req, rndv, WEFT_FRAG_EXPOSED, from, to, NULL);
    int rc = 0;
    if (!frag) {
        req->rc = weft_rndv_no_memory(rndv->peer);
        return;
    }
    frag->index = ++rndv->segments;
    if (!rndv->peer->no_rma && !rndv->reg && weft_reg_needed(rndv->iface))
        rc = weft_reg_acquire(rndv->iface, (char *)weft_req_start(req) + from, to - from, WEFT_ACCESS_WRITE, &frag->reg);
    if (rc == WEFT_INPROGRESS)
        weft_frag_await(frag, on_exposed_registered);
    else
        expose(frag, rndv->peer->no_rma ? NULL : rndv->reg ? rndv->reg : frag->reg);
}

/* Starts fragments up to SEGMENTS_AHEAD in flight. A fragment may end inside the call that starts it and call this again: only the
 * outermost call runs the loop (is_stepping). */
static void start_frags(weft_rndv *rndv)
{
    if (rndv->is_stepping)
        return;
    rndv->is_stepping = true;
    while (rndv->next < rndv->moved && rndv->fragment_count < SEGMENTS_AHEAD && !rndv->req->rc) {
        uint64_t from = rndv->next, rest = rndv->moved - from;
        bool is_whole = rndv->reg || !weft_reg_needed(rndv->iface) || rndv->peer->no_rma;
        rndv->next = is_whole || rest <= WEFT_RNDV_SEGMENT ? rndv->moved : from + WEFT_RNDV_SEGMENT;
        if (rndv->proto == WEFT_RNDV_GET && rndv->peer->no_rma)
            send_cts(rndv, WEFT_RNDV_COPY, from, rndv->next, NULL, NULL);
        else if (rndv->proto == WEFT_RNDV_GET)
            get_frag(rndv, from, rndv->next);
        else
            expose_frag(rndv, from, rndv->next);
    }
    rndv->is_stepping = false;
    try_complete_recv(rndv);
}

static void on_whole_registered(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    if (!rc) {
        rndv->reg = frag->reg;
        frag->reg = NULL;
    }
    weft_frag_free(frag);
    start_frags(rndv);
}

/* Registers the whole buffer first, by the knob or if the message is short; if that fails, or else, segment by segment. */
static void begin_frags(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    bool is_whole = weft_knob.reg_mode == WEFT_REG_MODE_SYNC || rndv->moved <= WEFT_RNDV_SEGMENT;
    weft_reg *reg = NULL;
    weft_frag *frag;
    int rc = 0;
    if (is_whole && weft_reg_needed(rndv->iface) && !rndv->reg)
        rc = weft_reg_acquire(rndv->iface, weft_req_start(req), rndv->moved, rndv->proto == WEFT_RNDV_PUT ? WEFT_ACCESS_WRITE : 0, &reg);
    frag = rc == WEFT_INPROGRESS ? weft_frag_new(req, rndv, WEFT_FRAG_WHOLE, 0, rndv->moved, NULL) : NULL;
    if (frag) {
        frag->reg = reg;
        weft_frag_await(frag, on_whole_registered);
        return;
    }
    if (rc == WEFT_INPROGRESS) /* no memory for the fragment */
        weft_reg_release(rndv->iface, reg);
    else if (reg)
        rndv->reg = reg;
    start_frags(rndv);
}

/* CTS is sent before the get, so that both sides move at the same time. */
static void move_halves(weft_rndv *rndv)
{
    uint64_t middle = rndv->moved / 2 / 4096 * 4096;
    send_cts(rndv, WEFT_RNDV_SPLIT, middle, rndv->moved, NULL, NULL);
    rndv->next = rndv->moved;
    rndv->is_stepping = true;
    if (middle)
        get_frag(rndv, 0, middle);
    else
        weft_rndv_send_fin(rndv, 0, 0), rndv->fin_done = true;
    rndv->is_stepping = false;
    try_complete_recv(rndv);
}

/* Is the part of the receive buffer to be moved registered with these rights? If so rndv->reg holds it. */
static bool is_warm(weft_rndv *rndv, uint32_t rights)
{
    if (!rndv->reg)
        rndv->reg = weft_reg_lookup_posted(rndv->iface, rndv->order, weft_req_start(rndv->req), rndv->moved, rights);
    return rndv->reg;
}

static enum weft_rndv_proto choose(weft_rndv *rndv, const weft_rts *rts)
{
    weft_req *req = rndv->req;
    weft_peer *peer = rndv->peer;
    weft_rndv_caps rndv_caps = {.can_move = req->is_dense && rts->addr && !(rts->flags & WEFT_RTS_NO_RMA) && !peer->no_rma,
                        .has_key = rts->key_bytes, .is_cold = rts->flags & WEFT_RTS_COLD};
    bool needs_reg = weft_reg_needed(rndv->iface);
    enum weft_rndv_proto proto, hinted = rts->flags >> WEFT_RTS_HINT_SHIFT;
    weft_bidir_recv_begin(&peer->bidir, rts->flags & WEFT_RTS_BOTH_WAYS);
    if (needs_reg && !weft_reg_allowed(rndv->iface))
        rndv_caps.can_move = false;
    /* RMA must be known to work before a protocol that needs it is announced to the sender */
    if (rndv_caps.can_move && !rndv->iface->ops->can_rma(rndv->iface, peer->ep)) {
        peer->no_rma = true;
        rndv_caps.can_move = false;
    }
    if (rndv_caps.can_move && needs_reg)
        rndv_caps.is_cold |= !is_warm(rndv, rndv_caps.has_key ? 0 : WEFT_ACCESS_WRITE);
    rndv->is_cold = rndv_caps.is_cold;
    rndv->is_both_ways = weft_rndv_is_shared(rndv->iface) && (weft_bidir_expects_send(&peer->bidir) || peer->rndv_stats->sends);
    if (hinted && weft_rndv_allows(peer, hinted - 1, &rndv_caps))
        proto = hinted - 1;
    else
        proto = weft_rndv_select(peer->rndv_stats, peer, rndv->moved, &rndv_caps, rndv->is_both_ways);
    if (rndv->reg && proto == WEFT_RNDV_PUT && !weft_reg_grants(rndv->iface, rndv->reg, WEFT_ACCESS_WRITE)) {
        weft_reg_release(rndv->iface, rndv->reg);
        rndv->reg = NULL;
        is_warm(rndv, WEFT_ACCESS_WRITE);
    }
    return proto;
}

/* Must be called before anything that may end the send; frames to a peer keep their order. */
static void request_csum(weft_rndv *rndv)
{
    weft_cts cts = {.want = rndv->moved, .req_id = rndv->id, .proto = WEFT_CTS_CSUM};
    rndv->awaits_csum = true;
    weft_rndv_send_small(rndv->peer, WEFT_FRAME_CTS, rndv->remote_id, 0, 0, &cts, (uint32_t)WEFT_CTS_BYTES);
}

void weft_rndv_recv_on_csum(weft_rndv *rndv, uint32_t csum)
{
    rndv->csum = csum;
    rndv->awaits_csum = false;
    try_complete_recv(rndv);
}

/* A receive without a rendezvous: nothing is moved, or there is no memory. */
static void end_at_once(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts, int rc)
{
    weft_rndv_reject_rts(peer, rts, rc);
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = rts->bytes};
    if (rc)
        req->rc = weft_rndv_no_memory(peer);
    end_req(req);
}

/* Initial values, for `moved` bytes of a message that the peer's request remote_id sends. */
static void prepare(weft_rndv *rndv, uint64_t moved, uint32_t remote_id)
{
    rndv->moved = moved;
    rndv->remote_id = remote_id;
    rndv->proto = WEFT_RNDV_COPY;
    rndv->begin_ns = 0;
    rndv->next = 0;
    rndv->segments = 0;
    rndv->awaits_csum = rndv->fin_done = rndv->is_stepping = rndv->is_promised = rndv->is_written = rndv->is_withdrawn = false;
    weft_list_init(&rndv->exposed);
}

void weft_rndv_recv_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts)
{
    uint64_t moved = rts->bytes < req->bytes ? rts->bytes : req->bytes;
    bool has_csum = hdr->flags & WEFT_HDR_MSG_CSUM, is_nothing = moved == 0 && !(has_csum && rts->bytes);
    weft_rndv *rndv = NULL;
    int rc;
    if (weft_unlikely(req->may_promise))
        weft_promise_on_rts(peer, req, rts);
    rc = is_nothing ? 0 : weft_rndv_alloc(req, peer, &rndv);
    if (weft_unlikely(rc == WEFT_AGAIN) && defer_rts(peer, req, hdr, rts))
        return;
    if (weft_unlikely(!rndv)) {
        end_at_once(peer, req, hdr, rts, rc ? WEFT_E_NOMEM : 0);
        return;
    }
    rndv->order = req->order; /* recv_info takes its place */
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = rts->bytes};
    prepare(rndv, moved, rts->req_id);
    rndv->csum = rts->csum;
    rndv->has_csum = has_csum;
    if (rndv->has_csum && rndv->moved < rts->bytes)
        request_csum(rndv);
    if (rndv->moved == 0) {
        rndv->proto = WEFT_RNDV_GET; /* receive of 0 bytes: moves nothing; FIN follows the checksum */
        rndv->state = WEFT_RNDV_RECV_CSUM;
        weft_rndv_event_begun(rndv, WEFT_RNDV_COPY);
        return;
    }
    rndv->remote_addr = rts->addr;
    weft_rndv_take_key(&rndv->remote_rkey, rts->key, rts->key_bytes);
    rndv->proto = (uint8_t)choose(rndv, rts);
    rndv->state = WEFT_RNDV_RECV_COPY + rndv->proto;
    begin_xfer(rndv);
    weft_rndv_event_begun(rndv, rndv->proto);
    req->worker->counters[WEFT_COUNT_RNDV_COPY + rndv->proto]++; /* now: req may be freed below */
    if (rndv->proto == WEFT_RNDV_COPY) {
        if (weft_knob.reg_mode != WEFT_REG_MODE_PIPELINE)
            weft_rndv_reg_async(rndv, rndv->iface->caps.get ? 0 : WEFT_ACCESS_WRITE);
        rndv->next = rndv->moved;
        send_cts(rndv, WEFT_RNDV_COPY, 0, rndv->moved, NULL, NULL);
    } else if (rndv->proto == WEFT_RNDV_SPLIT) {
        move_halves(rndv);
    } else {
        begin_frags(rndv);
    }
}

/* -- promises -- */

/* By the region's own key, not that of a memory window: its owner ends the access at once when the receive is cancelled. */
static void send_promise(weft_rndv *rndv, const weft_reg *reg, uint32_t msgs)
{
    request body = {.cts = {.to = rndv->moved, .want = rndv->moved, .req_id = rndv->id, .index = 1, .proto = WEFT_RNDV_PUT}};
    if (reg) {
        const weft_rkey *rkey = &weft_reg_mr(reg)->rkey;
        body.cts.addr = (uint64_t)(uintptr_t)weft_req_start(rndv->req);
        body.cts.key_bytes = rkey->length;
        memcpy(body.cts.key, rkey->bytes, rkey->length);
    }
    weft_rndv_send_small(rndv->peer, WEFT_FRAME_PROMISE, rndv->remote_id, 0, (int32_t)msgs, &body.cts,
                         (uint32_t)WEFT_CTS_BYTES + body.cts.key_bytes);
}

weft_rndv *weft_rndv_promise(weft_peer *peer, weft_req *req, const weft_reg *reg, uint64_t bytes, uint32_t send_id, uint32_t msgs)
{
    weft_rndv *rndv = weft_rndv_alloc_posted(req, peer);
    weft_frag *frag;
    if (!rndv)
        return NULL;
    prepare(rndv, bytes, send_id);
    rndv->is_promised = true;
    rndv->next = bytes;
    rndv->proto = WEFT_RNDV_PUT;
    rndv->state = WEFT_RNDV_RECV_PROMISED;
    frag = weft_frag_new(req, rndv, WEFT_FRAG_EXPOSED, 0, bytes, NULL);
    if (!frag) {
        weft_rndv_unpromise(rndv);
        return NULL;
    }
    frag->index = rndv->segments = 1;
    weft_list_append(&rndv->exposed, &frag->link);
    send_promise(rndv, reg, msgs);
    return rndv;
}

/* The sender writes into none of them any more. */
static void free_exposed(weft_rndv *rndv)
{
    weft_list_link *link;
    while ((link = weft_list_take(&rndv->exposed)))
        weft_frag_free(weft_container(link, weft_frag, link));
}

void weft_rndv_unpromise(weft_rndv *rndv)
{
    free_exposed(rndv);
    weft_rndv_release(rndv);
}

void weft_rndv_recv_on_use(weft_rndv *rndv, uint32_t remote_id)
{
    weft_req *req = rndv->req;
    if (!rndv->is_withdrawn)
        weft_match_unpost(&req->chan->match, req);
    weft_rndv_bind_posted(rndv);
    req->recv_info = (weft_recv_info){.source = req->rank, .tag = req->tag, .bytes = rndv->moved};
    rndv->remote_id = remote_id;
    weft_rndv_event_begun(rndv, WEFT_RNDV_PUT);
    req->worker->counters[WEFT_COUNT_RNDV_PUT]++;
    if (rndv->is_withdrawn)
        weft_withdrawn_on_use(rndv);
    else
        weft_promise_on_use(req);
    if (rndv->is_written)
        weft_rndv_recv_on_fin(rndv, rndv->segments, 0);
}

/* The send had used the promise before, if its state is another. */
void weft_rndv_revoked(weft_peer *peer, const weft_hdr *hdr)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    peer->withdrawn -= peer->withdrawn > 0;
    if (rndv && rndv->state == WEFT_RNDV_RECV_PROMISED && rndv->is_withdrawn)
        weft_withdrawn_on_revoked(rndv);
}

void weft_rndv_recv_on_notify(weft_rndv *rndv)
{
    rndv->is_written = true;
    if (rndv->state == WEFT_RNDV_RECV_PUT)
        weft_rndv_recv_on_fin(rndv, rndv->segments, 0);
}

/* Exposed segments and the sender's half are counted at its FIN, also if it sent them by DATA. */
void weft_rndv_recv_on_data(weft_rndv *rndv, uint64_t offset, const void *body, uint32_t bytes)
{
    weft_req *req = rndv->req;
    if (req->is_dense)
        memcpy((char *)weft_req_start(req) + offset, body, bytes);
    else
        weft_unpack(req->type, req->buf, weft_req_count(req), offset, bytes, body);
    req->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    if (rndv->proto != WEFT_RNDV_COPY && rndv->proto != WEFT_RNDV_GET)
        return;
    rndv->arrived += bytes;
    try_complete_recv(rndv);
}

void weft_rndv_reject_rts(weft_peer *peer, const weft_rts *rts, int rc)
{
    weft_rndv_send_small(peer, WEFT_FRAME_FIN, rts->req_id, 0, rc, NULL, 0);
}

void weft_rndv_recv_on_fin(weft_rndv *rndv, uint32_t index, int rc)
{
    weft_req *req = rndv->req;
    if (rc) {
        rndv->fin_done = true; /* the sender needs no FIN */
        req->rc = req->rc ? req->rc : rc;
    }
    if (!index) {
        if (!rc && rndv->proto == WEFT_RNDV_SPLIT)
            rndv->arrived += rndv->moved - rndv->moved / 2 / 4096 * 4096;
        try_complete_recv(rndv);
        return;
    }
    for (weft_list_link *link = rndv->exposed.next; link != &rndv->exposed; link = link->next) {
        weft_frag *frag = weft_container(link, weft_frag, link);
        if (frag->index != index)
            continue;
        weft_list_remove(link);
        rndv->arrived += frag->bytes;
        weft_frag_free(frag);
        start_frags(rndv);
        return;
    }
}

void weft_rndv_recv_lost(weft_rndv *rndv, int rc)
{
    free_exposed(rndv);
    weft_rndv_recv_on_fin(rndv, 0, rc);
}

/* An RTS that has matched is not found here: its transfer continues and ends the send normally. */
void weft_rndv_on_cancel(weft_peer *peer, const weft_hdr *hdr)
{
    weft_unexpected *unexpected = weft_match_announced(peer->worker, peer, hdr->chan);
    weft_chan *chan = unexpected ? weft_chan_of(peer->worker, unexpected->hdr.chan) : NULL;
    if (!chan)
        return;
    weft_unexpected_remove(&chan->match, peer->worker, unexpected);
    WEFT_EVENT_RAISE(WEFT_EVENT_UNEXPECTED_DEQUEUED, chan, unexpected->hdr.src, unexpected->hdr.tag,
                     (int64_t)weft_unexpected_bytes(unexpected));
    weft_peer_add_credits_due(peer, unexpected->hdr.bytes);
    weft_unexpected_free(peer->worker, unexpected);
    weft_rndv_send_small(peer, WEFT_FRAME_FIN, hdr->chan, 0, WEFT_FIN_CANCELLED, NULL, 0);
}
