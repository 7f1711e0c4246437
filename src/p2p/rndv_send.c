/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_send: the sender's half of a rendezvous: announces the message by RTS, moves by DATA frames or puts what the receiver requests by
 * CTS, and ends with the receiver's FIN or with its own last byte. See rndv.h.
 */
#include "p2p/rndv.h"

#include "base/clock.h"
#include "base/knob.h"
#include "base/status.h"
#include "core/world.h"
#include "p2p/bidir.h"
#include "p2p/eager_frags.h"
#include "p2p/frag.h"
#include "p2p/msg_csum.h"
#include "p2p/promise.h"
#include "p2p/rndv_internal.h"
#include "p2p/rndv_select.h"
#include "type/type.h"

/* Fills in the key of the send buffer, or the flags COLD or NO_RMA. RTS does not wait for a registration. */
static void fill_rts_hint(weft_rndv *rndv, weft_rts *rts)
{
    weft_req *req = rndv->req;
    weft_iface *iface = rndv->iface;
    void *start = weft_req_start(req);
    if (!weft_reg_needed(iface))
        return;
    if (rndv->peer->no_rma || !weft_reg_allowed(iface)) {
        rts->flags = WEFT_RTS_NO_RMA;
        return;
    }
    rndv->reg = weft_reg_lookup(iface, start, req->bytes, WEFT_ACCESS_READ);
    if (!rndv->reg) {
        bool is_now = weft_knob.reg_mode == WEFT_REG_MODE_SYNC ||
                      (weft_knob.reg_mode != WEFT_REG_MODE_ASYNC && req->bytes <= WEFT_RNDV_SEGMENT);
        int rc = (is_now || !iface->caps.put) && iface->caps.get ? weft_reg_acquire(iface, start, req->bytes, WEFT_ACCESS_READ, &rndv->reg)
                                                                 : 0;
        rts->flags = rc < 0 ? WEFT_RTS_NO_RMA : WEFT_RTS_COLD;
        rndv->awaits_reg = rc == WEFT_INPROGRESS;
    }
    if (rndv->reg && !rndv->awaits_reg)
        rts->key_bytes = weft_rndv_put_key(rts->key, rndv, rndv->reg, 0, req->bytes, WEFT_ACCESS_READ, &rndv->mw);
}

/* If rendezvous go both ways at once, the lower rank of the pair chooses the protocol for both directions. */
static void hint(weft_rndv *rndv, weft_rts *rts)
{
    weft_req *req = rndv->req;
    weft_peer *peer = rndv->peer;
    weft_rndv_caps rndv_caps = {.can_move = true};
    rts->flags |= peer->bidir.score ? WEFT_RTS_BOTH_WAYS : 0;
    if (!weft_rndv_is_shared(rndv->iface) || !weft_bidir_expects_recv(&peer->bidir) ||
        peer->proc_id.rank < req->worker->world->boot->rank || peer->no_rma || !rndv->iface->ops->can_rma(rndv->iface, peer->ep))
        return;
    rts->flags |= (uint8_t)((weft_rndv_select(peer->rndv_stats, peer, req->bytes, &rndv_caps, true) + 1) << WEFT_RTS_HINT_SHIFT);
}

static void send_begins(weft_rndv *rndv)
{
    rndv->received = weft_bidir_send_begin(&rndv->peer->bidir);
    weft_rndv_send_begin(rndv->peer->rndv_stats);
}

static void send_ends(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    weft_bidir_send_end(&rndv->peer->bidir, rndv->received);
    weft_rndv_send_end(rndv->peer->rndv_stats, req->rc ? 0 : rndv->moved, weft_clock_ns());
}

static void put_frag(weft_rndv *rndv, const weft_cts *cts, uint32_t notify);

/* A started persistent receive waits for this message in line: its promise takes the place of a CTS. */
static int send_promised(weft_peer *peer, weft_req *req, const weft_cts *cts)
{
    weft_rndv *rndv;
    int rc = weft_rndv_alloc(req, peer, &rndv);
    if (rc)
        return rc;
    rndv->mw = NULL;
    rndv->uses_promise = true;
    rndv->state = WEFT_RNDV_SEND_MOVING;
    rndv->left = 1;
    rndv->moved = req->bytes;
    rndv->remote_id = cts->req_id;
    send_begins(rndv);
    weft_rndv_event_begun(rndv, WEFT_RNDV_PUT);
    req->worker->counters[WEFT_COUNT_PROMISES_USED]++;
    weft_rndv_send_small(peer, WEFT_FRAME_USE, cts->req_id, 0, (int32_t)rndv->id, NULL, 0);
    if (cts->addr && weft_reg_needed(rndv->iface))
        rndv->reg = weft_reg_lookup(rndv->iface, weft_req_start(req), req->bytes, 0);
    put_frag(rndv, cts, rndv->iface->caps.notify ? cts->req_id : 0);
    return 0;
}

int weft_rndv_send_rts(weft_peer *peer, weft_req *req)
{
    union { weft_rts rts; char space[sizeof(weft_rts) + WEFT_RKEY_BYTES]; } body = {.rts = {.bytes = req->bytes}};
    weft_rts *rts = &body.rts;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_RTS, .src = (int32_t)req->chan->rank, .tag = req->tag}, .body = rts};
    const weft_cts *promise = req->is_persistent && req->is_dense && req->bytes ? weft_promise_take(peer, req) : NULL;
    weft_rndv *rndv;
    int rc = promise ? send_promised(peer, req, promise) : weft_rndv_alloc(req, peer, &rndv);
    if (rc || promise)
        return rc;
    rndv->mw = NULL;
    rndv->uses_promise = false;
    rndv->state = WEFT_RNDV_SEND_ANNOUNCED;
    rndv->left = 1;
    rndv->moved = req->bytes;
    frame.hdr.chan = req->chan->ids_out ? req->chan->ids_out[req->rank] : req->chan->id_out;
    rts->req_id = rndv->id;
    if (req->is_dense && req->bytes) {
        rts->addr = (uint64_t)(uintptr_t)weft_req_start(req);
        fill_rts_hint(rndv, rts);
        hint(rndv, rts);
        if (req->is_persistent && (rts->send_id = weft_promise_id(peer, req)))
            rts->flags |= WEFT_RTS_PERSISTENT;
    }
    if (weft_knob.checksum) {
        frame.hdr.flags = WEFT_HDR_MSG_CSUM;
        rts->csum = weft_msg_csum_of_send(req, &frame.hdr);
    }
    frame.hdr.bytes = (uint32_t)WEFT_RTS_BYTES + rts->key_bytes;
    send_begins(rndv);
    rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc) {
        req->rc = rc;
        send_ends(rndv);
        weft_reg_revoke(rndv->iface, rndv->mw);
        weft_reg_release(rndv->iface, rndv->reg);
        weft_rndv_release(rndv); /* a receive may wait for the state */
        return rc;
    }
    peer->credit -= weft_peer_cost(frame.hdr.bytes);
    weft_rndv_event_begun(rndv, -1);
    return 0;
}

static void try_complete_send(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    if (rndv->left || rndv->fragment_count)
        return;
    if (rndv->is_cold && !req->rc)
        weft_rndv_reg_async(rndv, WEFT_ACCESS_READ);
    send_ends(rndv);
    weft_reg_revoke(rndv->iface, rndv->mw);
    weft_reg_release(rndv->iface, rndv->reg);
    weft_rndv_release(rndv);
    weft_req_end(req, req->rc);
}

/* Counts one of rndv->left events that end a send: the receiver's FIN, or the last byte sent. An error ends it at once. */
static void end_one(weft_rndv *rndv, int rc)
{
    weft_req *req = rndv->req;
    if (rc && !req->rc)
        req->rc = rc;
    if (req->rc)
        rndv->left = 0;
    else if (rndv->left)
        rndv->left--;
    try_complete_send(rndv);
}

static void count_sent(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    rndv->arrived += frag->bytes;
    weft_frag_free(frag);
    if (rc || rndv->arrived == rndv->moved)
        end_one(rndv, rc);
    else
        try_complete_send(rndv);
}

/* on_done() of DATA: all frames of a CTS with COPY are sent. */
static void on_data_done(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    if (rc < 0 && rndv->peer->state == WEFT_PEER_ALIVE) /* else the receiver would wait for ever */
        weft_rndv_send_fin(rndv, 0, rc);
    count_sent(frag, rc);
}

static void on_put_done(weft_frag *frag, int rc);

/* Sends the rest of a put by DATA frames; on_put_done reports it to the receiver like a put. */
static void push_instead(weft_frag *frag)
{
    frag->kind = WEFT_FRAG_DATA;
    frag->notify = 0;
    frag->on_done = on_put_done;
    weft_frag_start(frag);
}

/* on_done() of PUT: segment or half written. Sends FIN to the receiver. The receiver of a promise may have ended the access meanwhile, and
 * then takes the bytes by DATA (p2p/withdrawn). */
static void on_put_done(weft_frag *frag, int rc)
{
    weft_rndv *rndv = frag->rndv;
    if (frag->kind == WEFT_FRAG_PUT && (weft_rndv_is_to_be_copied(rndv->peer, rc) || (rndv->uses_promise && rc == WEFT_E_KEY))) {
        push_instead(frag);
        return;
    }
    if (rc || !frag->notify)
        weft_rndv_send_fin(rndv, frag->index, rc);
    if (frag->index) {
        count_sent(frag, rc);
        return;
    }
    weft_frag_free(frag);
    end_one(rndv, rc);
}

/* Registers the fragment's memory unless that is done already, or awaits the whole buffer's registration. */
static int register_source(weft_frag *frag)
{
    weft_rndv *rndv = frag->rndv;
    int rc;
    if (rndv->reg && !rndv->awaits_reg)
        return 0;
    if (!rndv->reg)
        return weft_reg_acquire(rndv->iface, (char *)weft_req_start(frag->req) + frag->from, frag->bytes, 0, &frag->reg);
    rc = weft_reg_settle(rndv->iface, rndv->reg);
    rndv->awaits_reg = rc == WEFT_INPROGRESS;
    if (rc == WEFT_INPROGRESS)
        frag->reg = weft_reg_hold(rndv->reg);
    if (rc < 0) {
        weft_reg_release(rndv->iface, rndv->reg);
        rndv->reg = NULL;
    }
    return rc;
}

/* The receiver waits for each segment's FIN, also if the send has failed. */
static void on_source_registered(weft_frag *frag, int rc)
{
    if (frag->req->rc)
        on_put_done(frag, frag->req->rc);
    else if (rc)
        push_instead(frag);
    else
        weft_frag_start(frag);
}

/* notify: with the put, instead of FIN; 0: FIN. */
static void put_frag(weft_rndv *rndv, const weft_cts *cts, uint32_t notify)
{
    weft_req *req = rndv->req;
    weft_frag *frag = weft_frag_new(req, rndv, WEFT_FRAG_PUT, cts->from, cts->to, on_put_done);
    bool needs_reg = weft_reg_needed(rndv->iface);
    int rc;
    if (!frag) {
        weft_rndv_send_fin(rndv, cts->index, WEFT_E_NOMEM);
        end_one(rndv, weft_rndv_no_memory(rndv->peer));
        return;
    }
    frag->index = cts->index;
    frag->notify = notify;
    frag->remote_addr = cts->addr;
    rndv->is_cold = cts->to - cts->from < cts->want; /* segments: the receive buffer is not registered as a whole */
    weft_rndv_take_key(&frag->rkey, cts->key, cts->key_bytes);
    if (frag->from == frag->to) { /* empty half: nothing to put, only the FIN */
        on_put_done(frag, 0);
        return;
    }
    if (!cts->addr || (needs_reg && !cts->key_bytes)) {
        push_instead(frag);
        return;
    }
    rc = needs_reg ? register_source(frag) : 0;
    if (rc == WEFT_INPROGRESS)
        weft_frag_await(frag, on_source_registered);
    else if (rc)
        push_instead(frag);
    else
        weft_frag_start(frag);
}

static void push_frag(weft_rndv *rndv, const weft_cts *cts)
{
    weft_frag *frag = weft_frag_new(rndv->req, rndv, WEFT_FRAG_DATA, cts->from, cts->to, on_data_done);
    if (weft_knob.reg_mode != WEFT_REG_MODE_PIPELINE)
        weft_rndv_reg_async(rndv, WEFT_ACCESS_READ);
    if (frag) {
        weft_frag_start(frag);
        return;
    }
    weft_rndv_send_fin(rndv, 0, WEFT_E_NOMEM);
    end_one(rndv, weft_rndv_no_memory(rndv->peer));
}

void weft_rndv_send_on_cts(weft_rndv *rndv, const weft_cts *cts)
{
    weft_req *req = rndv->req;
    if (cts->proto == WEFT_CTS_CSUM) {
        uint32_t sum = weft_msg_csum_of_prefix(req, cts->want < req->bytes ? cts->want : req->bytes);
        weft_rndv_send_small(rndv->peer, WEFT_FRAME_CSUM, cts->req_id, (int32_t)sum, 0, NULL, 0);
        return;
    }
    rndv->remote_id = cts->req_id;
    rndv->moved = cts->want;
    if (cts->proto == WEFT_RNDV_SPLIT)
        rndv->left = 2; /* own put, and the receiver's FIN */
    weft_eager_frags_answered(rndv->peer, req->bytes, cts->proto == WEFT_RNDV_COPY);
    if (cts->proto == WEFT_RNDV_COPY)
        push_frag(rndv, cts);
    else
        put_frag(rndv, cts, 0);
}

void weft_rndv_cancel(weft_req *req)
{
    weft_rndv *rndv = req->rndv;
    if (rndv->state != WEFT_RNDV_SEND_ANNOUNCED) /* cancelling already, or matched */
        return;
    rndv->state = WEFT_RNDV_SEND_CANCELLING;
    weft_rndv_send_small(rndv->peer, WEFT_FRAME_CANCEL, rndv->id, 0, 0, NULL, 0);
}

void weft_rndv_send_on_fin(weft_rndv *rndv, int rc)
{
    weft_req *req = rndv->req;
    req->recv_info.cancelled = rc == WEFT_FIN_CANCELLED;
    end_one(rndv, req->recv_info.cancelled ? 0 : rc);
}
