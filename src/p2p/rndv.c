/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: what both halves of a rendezvous share: the entry of its frames, checked against rndv_state; keys. See rndv.h and
 * rndv_internal.h.
 */
#include "p2p/rndv.h"

#include <stdio.h>
#include <string.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "p2p/frag.h"
#include "p2p/rndv_internal.h"
#include "type/type.h"

void weft_rndv_send_small(weft_peer *peer, enum weft_frame_kind kind, uint32_t chan, int32_t src, int32_t tag, const void *body,
                          uint32_t bytes)
{
    weft_frame frame = {.hdr = {.kind = (uint8_t)kind, .chan = chan, .src = src, .tag = tag, .bytes = bytes}, .body = body};
    int rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_abort_job(peer, rc);
}

int weft_rndv_no_memory(const weft_peer *peer)
{
    return weft_fail(WEFT_E_NOMEM, "no memory to move a message to or from rank %u", peer->proc_id.rank);
}

void weft_rndv_send_fin(weft_rndv *rndv, uint32_t index, int rc)
{
    weft_rndv_send_small(rndv->peer, WEFT_FRAME_FIN, rndv->remote_id, (int32_t)index, rc, NULL, 0);
}

uint8_t weft_rndv_put_key(uint8_t *to, weft_rndv *rndv, const weft_reg *reg, uint64_t from, uint64_t end, uint32_t rights, weft_mw **mw)
{
    weft_rkey rkey;
    if (!weft_reg_export(rndv->iface, rndv->peer->ep, reg, (char *)weft_req_start(rndv->req) + from, end - from, rights, &rkey, mw))
        return 0;
    memcpy(to, rkey.bytes, rkey.length);
    return rkey.length;
}

void weft_rndv_take_key(weft_rkey *rkey, const uint8_t *from, uint8_t bytes)
{
    rkey->length = bytes < WEFT_RKEY_BYTES ? bytes : WEFT_RKEY_BYTES;
    memcpy(rkey->bytes, from, rkey->length);
}

/* Starts receives that wait for a state, after the end of a request with result rc, whose text stays this thread's. */
static __attribute__((noinline)) void begin_pending(weft_worker *worker, int rc)
{
    char cause[512];
    snprintf(cause, sizeof cause, "%s", rc ? weft_fail_text(rc) : "");
    weft_rndv_begin_pending(worker);
    if (rc)
        weft_fail(rc, "%s", cause); /* another receive's error may have replaced it */
}

void weft_rndv_event_begun(weft_rndv *rndv, int proto)
{
    rndv->has_begun = true;
    WEFT_EVENT_RAISE(WEFT_EVENT_RNDV_BEGUN, NULL, rndv->peer->proc_id.rank, rndv->req->kind == WEFT_REQ_SEND, (int64_t)rndv->moved, proto);
}

void weft_rndv_release(weft_rndv *rndv)
{
    weft_worker *worker = rndv->req->worker;
    int rc = rndv->req->rc;
    if (weft_likely(rndv->has_begun)) /* a promise that is not used does not begin */
        WEFT_EVENT_RAISE(WEFT_EVENT_RNDV_ENDED, NULL, rndv->peer->proc_id.rank, rndv->req->kind == WEFT_REQ_SEND, (int64_t)rndv->moved);
    weft_rndv_free(rndv);
    if (weft_unlikely(!weft_list_is_empty(&worker->rndv_pool->pending)))
        begin_pending(worker, rc);
}

void weft_rndv_reg_async(weft_rndv *rndv, uint32_t rights)
{
    weft_req *req = rndv->req;
    bool is_wanted = weft_knob.reg_mode == WEFT_REG_MODE_AUTO || weft_knob.reg_mode == WEFT_REG_MODE_ASYNC ||
                     weft_knob.reg_mode == WEFT_REG_MODE_PIPELINE;
    if (is_wanted && !rndv->reg && req->is_dense && !rndv->peer->no_rma && weft_reg_needed(rndv->iface) && weft_reg_allowed(rndv->iface))
        weft_reg_acquire_async(rndv->iface, weft_req_start(req), req->bytes, rights);
}

bool weft_rndv_is_to_be_copied(weft_peer *peer, int rc)
{
    peer->no_rma |= rc == WEFT_E_UNSUPPORTED;
    return rc == WEFT_E_UNSUPPORTED || rc == WEFT_E_STALE;
}

static bool is_recv(const weft_rndv *rndv) { return rndv->req->kind == WEFT_REQ_RECV; }

/* The message's tag. */
static int tag_of(const weft_rndv *rndv) { return is_recv(rndv) ? rndv->req->recv_info.tag : rndv->req->tag; }

/* Takes the rendezvous to its next state. False: the frame is not legal in this state; it is reported and must be dropped. */
static bool enter(weft_rndv *rndv, const weft_peer *peer, enum weft_rndv_frame frame)
{
    uint8_t next = weft_rndv_next[rndv->state][frame];
    if (weft_unlikely(next == WEFT_RNDV_ILLEGAL)) {
        weft_log_error("%s was received from rank %u for a %s with tag %d in state \"%s\", where it is illegal.\n"
                       "The frame is dropped; the message may never complete. Does rank %u run the same version of Weft?",
                       weft_rndv_frame_names[frame], peer->proc_id.rank, is_recv(rndv) ? "receive" : "send", tag_of(rndv),
                       weft_rndv_state_names[rndv->state], peer->proc_id.rank);
        return false;
    }
    rndv->state = next;
    return true;
}

/* Asks for bytes that the message has: a CTS with others is illegal. */
static bool is_within(const weft_rndv *rndv, const weft_cts *cts)
{
    return cts->proto == WEFT_CTS_CSUM || cts->want <= rndv->req->bytes;
}

void weft_rndv_cts(weft_peer *peer, const weft_hdr *hdr, const weft_cts *cts)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    enum weft_rndv_frame frame = rndv && !is_within(rndv, cts) ? WEFT_RNDV_ON_OTHER
                               : cts->proto == WEFT_RNDV_COPY ? WEFT_RNDV_ON_CTS_COPY
                               : cts->proto == WEFT_RNDV_SPLIT ? WEFT_RNDV_ON_CTS_SPLIT
                               : cts->proto == WEFT_RNDV_PUT ? WEFT_RNDV_ON_CTS_PUT
                               : cts->proto == WEFT_CTS_CSUM ? WEFT_RNDV_ON_CTS_CSUM
                               : WEFT_RNDV_ON_OTHER;
    if (!rndv) {
        if (frame == WEFT_RNDV_ON_CTS_PUT) /* the send has failed, which was reported to the receiver; it still waits for this segment */
            weft_rndv_send_small(peer, WEFT_FRAME_FIN, cts->req_id, (int32_t)cts->index, WEFT_E_OTHER, NULL, 0);
        return;
    }
    if (enter(rndv, peer, frame))
        weft_rndv_send_on_cts(rndv, cts);
}

void weft_rndv_data(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    uint64_t offset = (uint64_t)(uint32_t)hdr->src << 32 | (uint32_t)hdr->tag;
    if (!rndv)
        return;
    if (enter(rndv, peer, offset > rndv->moved || hdr->bytes > rndv->moved - offset ? WEFT_RNDV_ON_OTHER : WEFT_RNDV_ON_DATA))
        weft_rndv_recv_on_data(rndv, offset, body, hdr->bytes);
}

void weft_rndv_csum(weft_peer *peer, const weft_hdr *hdr)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    if (rndv && enter(rndv, peer, is_recv(rndv) && !rndv->awaits_csum ? WEFT_RNDV_ON_OTHER : WEFT_RNDV_ON_CSUM))
        weft_rndv_recv_on_csum(rndv, (uint32_t)hdr->src);
}

/* A promise whose receive has ended by another message is void: USE must not follow. */
void weft_rndv_use(weft_peer *peer, const weft_hdr *hdr)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    bool is_valid = rndv && (rndv->state != WEFT_RNDV_RECV_PROMISED || rndv->req->is_posted || rndv->is_withdrawn);
    if (rndv && enter(rndv, peer, is_valid ? WEFT_RNDV_ON_USE : WEFT_RNDV_ON_OTHER))
        weft_rndv_recv_on_use(rndv, (uint32_t)hdr->tag);
}

void weft_rndv_notify(weft_peer *peer, uint32_t id)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, id);
    if (rndv && (rndv->state == WEFT_RNDV_RECV_PROMISED || (rndv->state == WEFT_RNDV_RECV_PUT && rndv->is_promised)))
        weft_rndv_recv_on_notify(rndv);
}

void weft_rndv_fin(weft_peer *peer, const weft_hdr *hdr)
{
    weft_rndv *rndv = weft_rndv_lookup(peer, hdr->chan);
    int rc = hdr->tag;
    enum weft_rndv_frame frame = rc < 0 ? WEFT_RNDV_ON_FIN_ERROR : rc > 0 ? WEFT_RNDV_ON_FIN_CANCELLED
                               : hdr->src ? WEFT_RNDV_ON_FIN_SEGMENT : WEFT_RNDV_ON_FIN;
    if (!rndv || !enter(rndv, peer, frame))
        return;
    if (rc == WEFT_E_COMM && !is_recv(rndv))
        weft_fail(rc, "rank %u has called MPI_Finalize, or freed the communicator, and did not receive the message with tag %d",
                  peer->proc_id.rank, tag_of(rndv));
    else if (rc < 0) /* sets the error text; this thread's last text belongs to another failure */
        weft_fail(rc, is_recv(rndv) ? "rank %u could not send the rest of its message with tag %d: %s"
                                    : "rank %u did not receive the message with tag %d: %s",
                  peer->proc_id.rank, tag_of(rndv), weft_status_text(rc));
    if (is_recv(rndv))
        weft_rndv_recv_on_fin(rndv, (uint32_t)hdr->src, rc);
    else
        weft_rndv_send_on_fin(rndv, rc);
}

/* As if the peer had reported the error. A promise is given up by p2p/promise. */
static void end_lost(weft_rndv *rndv, int rc, const char *cause)
{
    uint8_t next = weft_rndv_next[rndv->state][WEFT_RNDV_ON_FIN_ERROR];
    if (next == WEFT_RNDV_ILLEGAL && rndv->state != WEFT_RNDV_RECV_CSUM)
        return;
    weft_fail(rc, "%s", cause);
    rndv->state = next ? next : WEFT_RNDV_RECV_ENDING;
    if (is_recv(rndv))
        weft_rndv_recv_lost(rndv, rc);
    else
        weft_rndv_send_on_fin(rndv, rc);
}

/* chan: only those on it; NULL: all. */
static void end_all(const weft_peer *peer, const weft_chan *chan, int rc)
{
    weft_rndv *rndv;
    char cause[512];
    snprintf(cause, sizeof cause, "%s", weft_fail_text(rc));
    for (uint32_t i = 0; (rndv = weft_rndv_next_used(peer->worker, i, &i)); i++)
        if (rndv->peer == peer && (!chan || rndv->req->chan == chan))
            end_lost(rndv, rc, cause);
}

void weft_rndv_lost(weft_peer *peer, int rc) { end_all(peer, NULL, rc); }

void weft_rndv_left(weft_peer *peer, const weft_chan *chan, int rc) { end_all(peer, chan, rc); }

/* Whether the message was announced only for lack of credit. */
static bool is_short(const weft_rndv *rndv)
{
    return rndv->req->send_mode != WEFT_SEND_SYNC && rndv->req->bytes <= rndv->peer->eager_max;
}

/* Whether the peer has left the channel. A send may outlive its channel: chan is read only if it is open. */
static bool is_left(const weft_peer *peer, const weft_chan *chan)
{
    const weft_worker *worker = peer->worker;
    for (uint32_t i = 0; i < worker->chan_capacity && !peer->is_gone; i++) {
        const weft_chan *one = worker->chans[i].chan;
        if (one && (one == chan || one->subs[0] == chan || one->subs[1] == chan))
            return weft_chan_is_left(one, peer);
    }
    return peer->is_gone;
}

void weft_rndv_end_unmatched(const weft_peer *peer)
{
    weft_rndv *rndv;
    for (uint32_t i = 0; (rndv = weft_rndv_next_used(peer->worker, i, &i)); i++) {
        bool is_cancelled = rndv->state == WEFT_RNDV_SEND_CANCELLING;
        if (rndv->peer != peer || (rndv->state != WEFT_RNDV_SEND_ANNOUNCED && !is_cancelled) || !is_left(peer, rndv->req->chan))
            continue;
        rndv->state = WEFT_RNDV_SEND_ENDING;
        weft_rndv_send_on_fin(rndv, is_cancelled ? WEFT_FIN_CANCELLED : is_short(rndv) ? 0 : weft_chan_left_error(peer));
    }
}
