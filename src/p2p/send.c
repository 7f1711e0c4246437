/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send: sends, and waiting for requests. Short messages leave in one frame without a request, others by rendezvous (rndv).
 * Messages without credit wait in sendq. Frames to a peer leave in call order, also if the iface is full (core/peer); messages
 * that wait for credit keep the call order within their channel. Requires worker->lock.
 */
#include "base/status.h"
#include "core/peer.h"
#include "core/world.h"
#include "p2p/eager.h"
#include "p2p/eager_frags.h"
#include "p2p/p2p.h"
#include "p2p/sendq.h"

#define SHORT_MAX 32 /* at most the inline_max of shm, the only iface that sets ep->cells_free */

/* The peer, if the message may leave at once in one frame: dense, eager, credit left, nothing queued for the peer. NULL: no, or dst < 0.
 * may_zcopy: also NULL for zcopy sizes. A blocking send copies these: with zcopy it would wait for a receiver that computes. */
static inline __attribute__((always_inline)) weft_peer *eager_peer(uint64_t bytes, const weft_type *type, int dst, weft_chan *chan,
                                                                  bool may_zcopy)
{
    weft_peer *peer;
    if (weft_unlikely((uint32_t)dst >= chan->size || !type->is_dense))
        return NULL;
    peer = chan->peers[dst];
    if (weft_unlikely(!peer || bytes > (may_zcopy ? peer->now_max : peer->eager_max) || weft_peer_cost(bytes) > peer->credit ||
                      !weft_list_is_empty(&peer->waiting)))
        return NULL;
    return peer;
}

/* Inline send: the body fits the ring cell's line and ep->cells_free guarantees a free cell. Cannot fail. */
static inline __attribute__((always_inline)) void send_short(weft_peer *peer, uint64_t bytes, const void *buf, int dst, int tag,
                                                               weft_chan *chan)
{
    uint64_t head0 = weft_hdr_word0(++peer->seq_out, WEFT_FRAME_EAGER, weft_peer_take_credits_due(peer));
    peer->credit -= weft_peer_cost(bytes);
    weft_shm_send_short(peer->ep, head0, weft_hdr_word1(weft_chan_id_at(chan, dst), chan->rank),
                        weft_hdr_word2((uint32_t)tag, (uint32_t)bytes), buf);
}

static inline bool is_short(const weft_peer *peer, uint64_t bytes) { return bytes <= SHORT_MAX && peer->ep->cells_free; }

/* Eager send without a request. 0, an error, or WEFT_AGAIN: not possible now. */
static inline __attribute__((always_inline)) int send_now(const void *buf, uint64_t count, const weft_type *type, int dst, int tag,
                                                         weft_chan *chan, bool may_zcopy)
{
    uint64_t bytes = count * (uint64_t)type->size;
    weft_peer *peer = eager_peer(bytes, type, dst, chan, may_zcopy);
    weft_frame frame;
    int rc;
    if (weft_unlikely(!peer))
        return WEFT_AGAIN;
    frame.hdr = weft_eager_hdr(chan, dst, tag, bytes);
    frame.body = buf;
    frame.pack = NULL;
    frame.zcopy_ctx = NULL;
    frame.more = false;
    if (weft_unlikely(weft_eager_frags_help(peer, bytes))) {
        rc = weft_eager_frags_send(peer, &frame);
    } else {
        weft_peer_stamp(peer, &frame.hdr);
        rc = weft_iface_send(peer->ep, &frame);
        if (weft_unlikely(rc != 0))
            weft_peer_unstamp(peer, &frame.hdr);
    }
    if (weft_likely(rc == 0)) {
        peer->credit -= weft_peer_cost(bytes);
        weft_eager_count(chan->worker, bytes);
    }
    return rc;
}

int weft_send_try(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan, bool is_async)
{
    uint64_t bytes = count * (uint64_t)type->size;
    weft_peer *peer = eager_peer(bytes, type, dst, chan, is_async);
    if (weft_unlikely(!peer))
        return WEFT_AGAIN;
    if (!is_short(peer, bytes))
        return send_now(buf, count, type, dst, tag, chan, is_async);
    send_short(peer, bytes, buf, dst, tag, chan);
    return 0;
}

int weft_isend_into(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode,
                    weft_req *req)
{
    weft_peer *peer;
    int rc;
    req->kind = WEFT_REQ_SEND;
    req->is_done = false;
    req->rc = 0;
    req->chan = chan;
    req->rank = dst;
    req->tag = tag;
    req->buf = (void *)buf;
    req->type = type;
    req->bytes = count * (uint64_t)type->size;
    req->is_dense = type->is_dense;
    req->send_mode = (uint8_t)mode;
    req->queued = NULL;
    req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
    if (dst == WEFT_PROC_NULL) {
        weft_req_end(req, 0);
        return 0;
    }
    peer = chan->peers[dst];
    if (!peer && (rc = weft_chan_resolve_peer(chan, (uint32_t)dst, &peer)))
        return rc;
    if (weft_unlikely(peer->credit <= 0 || weft_chan_is_left(chan, peer))) /* weft_sendq_add ends a send to a peer that has left */
        return weft_sendq_add(peer, req);
    rc = weft_eager_start(peer, req, peer->credit);
    return weft_unlikely(rc == WEFT_AGAIN) ? weft_sendq_add(peer, req) : rc;
}

/* Out of credit within a burst: polls once, since returned credits may have arrived; cheaper than an RTS per message. Only for zcopy
 * ifaces, and only in direct calls of the program: a schedule may progress inside of a poll, which must not nest. */
static void poll_for_credit(const weft_chan *chan, int dst, uint64_t bytes)
{
    const weft_peer *peer = (uint32_t)dst < chan->size ? chan->peers[dst] : NULL;
    if (peer && weft_peer_is_zcopy(peer, bytes) && bytes <= peer->eager_max && weft_peer_cost(bytes) > peer->credit)
        weft_worker_poll(chan->worker);
}

static __attribute__((noinline)) int isend_long(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
                                                enum weft_send_mode mode, weft_req **out)
{
    weft_req *req = weft_req_new(chan->worker, WEFT_REQ_SEND);
    int rc;
    if (!req)
        return weft_fail(WEFT_E_NOMEM, "no memory for a send request");
    rc = weft_isend_into(chan, dst, tag, buf, count, type, mode, req);
    if (rc) {
        weft_req_free(req);
        return rc;
    }
    *out = req;
    return 0;
}

static __attribute__((noinline)) int send_long(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
                                               enum weft_send_mode mode)
{
    weft_req *req;
    int rc = isend_long(chan, dst, tag, buf, count, type, mode, &req);
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static __attribute__((noinline)) int send_slow(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan)
{
    int rc = dst == WEFT_PROC_NULL ? 0 : send_now(buf, count, type, dst, tag, chan, false);
    if (rc > 0)
        poll_for_credit(chan, dst, count * (uint64_t)type->size);
    return rc <= 0 ? rc : send_long(chan, dst, tag, buf, count, type, WEFT_SEND_STANDARD);
}

int weft_send_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan)
{
    uint64_t bytes = count * (uint64_t)type->size;
    weft_peer *peer = eager_peer(bytes, type, dst, chan, false);
    if (weft_unlikely(!peer || !is_short(peer, bytes)))
        return send_slow(buf, count, type, dst, tag, chan);
    send_short(peer, bytes, buf, dst, tag, chan);
    return 0;
}

/* No credit or the iface is full: queues a copy of a short message, so that many of them take little memory. Polls now and then for
 * credits, which keeps a long burst moving. WEFT_AGAIN: the message needs a request. */
static int isend_queued(weft_peer *peer, const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan,
                       weft_req **out)
{
    uint64_t bytes = count * (uint64_t)type->size;
    if (weft_knob.checksum || bytes > WEFT_SENDQ_COPY_MAX || bytes > peer->now_max)
        return WEFT_AGAIN;
    if (weft_sendq_is_poll_due(chan, dst)) {
        int rc;
        weft_worker_poll(chan->worker);
        rc = send_now(buf, count, type, dst, tag, chan, true);
        if (rc <= 0)
            return rc;
    }
    /* strided data was not tried by send_now */
    if (!type->is_dense && weft_peer_cost(bytes) <= peer->credit && weft_list_is_empty(&peer->waiting))
        return WEFT_AGAIN;
    return weft_sendq_copy(peer, chan, dst, tag, buf, count, type, out);
}

static __attribute__((noinline)) int isend_slow(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan,
                                                  bool may_poll, weft_req **out)
{
    weft_peer *peer = (uint32_t)dst < chan->size ? chan->peers[dst] : NULL;
    int rc = dst == WEFT_PROC_NULL ? 0 : send_now(buf, count, type, dst, tag, chan, true);
    if (rc > 0 && may_poll)
        poll_for_credit(chan, dst, count * (uint64_t)type->size);
    if (rc > 0 && may_poll && peer)
        rc = isend_queued(peer, buf, count, type, dst, tag, chan, out);
    return rc <= 0 ? rc : isend_long(chan, dst, tag, buf, count, type, WEFT_SEND_STANDARD, out);
}

static inline __attribute__((always_inline)) int isend(const void *buf, uint64_t count, const weft_type *type, int dst, int tag,
                                                       weft_chan *chan, bool may_poll, weft_req **out)
{
    uint64_t bytes = count * (uint64_t)type->size;
    weft_peer *peer = eager_peer(bytes, type, dst, chan, true);
    *out = &chan->worker->done_req;
    if (weft_unlikely(!peer || !is_short(peer, bytes)))
        return isend_slow(buf, count, type, dst, tag, chan, may_poll, out);
    send_short(peer, bytes, buf, dst, tag, chan);
    return 0;
}

int weft_isend_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan, weft_req **out)
{
    return isend(buf, count, type, dst, tag, chan, true, out);
}

int weft_isend(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode,
               weft_req **out)
{
    if (mode >= WEFT_SEND_SYNC)
        return isend_long(chan, dst, tag, buf, count, type, mode, out);
    return isend(buf, count, type, dst, tag, chan, false, out);
}

int weft_send(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode)
{
    if (mode >= WEFT_SEND_SYNC)
        return send_long(chan, dst, tag, buf, count, type, mode);
    return weft_send_standard(buf, count, type, dst, tag, chan);
}

void weft_req_wait_show(weft_wait *wait, const weft_req *req)
{
    switch (req->kind) {
    case WEFT_REQ_SEND:
    case WEFT_REQ_RECV:
    case WEFT_REQ_BATCH:
        weft_wait_next(wait, req->kind == WEFT_REQ_RECV ? WEFT_WAIT_REASON_RECV : WEFT_WAIT_REASON_SEND,
                       req->chan ? weft_chan_job_rank(req->chan, req->rank) : req->rank, req->tag, req->bytes);
        break;
    case WEFT_REQ_SCHED:
        weft_wait_next(wait, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
        break;
    default:
        weft_wait_next(wait, WEFT_WAIT_REASON_REQUESTS, WEFT_ANY, WEFT_ANY_TAG, 0);
    }
}

int weft_req_wait(weft_req *req)
{
    weft_wait wait;
    if (req->is_done) {
        if (weft_unlikely(req->rc))
            weft_req_report_error(req);
        return req->rc;
    }
    weft_wait_begin(&wait, req->worker, WEFT_WAIT_REASON_REQUESTS, WEFT_ANY, WEFT_ANY_TAG, 0);
    weft_req_wait_show(&wait, req);
    wait.req = req;
    do
        weft_wait_progress(&wait);
    while (!req->is_done);
    weft_wait_end(&wait);
    if (weft_unlikely(req->rc))
        weft_req_report_error(req);
    return req->rc;
}
