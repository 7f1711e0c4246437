/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recv: receives, probes, cancel. A receive takes a matching unexpected message, else it is posted.
 */
#include <string.h>

#include "base/event.h"
#include "base/status.h"
#include "core/peer.h"
#include "core/world.h"
#include "p2p/deliver.h"
#include "p2p/lost.h"
#include "p2p/msg_csum.h"
#include "p2p/p2p.h"
#include "p2p/promise.h"
#include "p2p/rndv.h"
#include "p2p/sendq.h"
#include "p2p/stall.h"

static inline void describe(weft_req *req, weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type)
{
    req->kind = WEFT_REQ_RECV;
    req->is_done = req->is_blocking = req->may_promise = false;
    req->rc = 0;
    req->chan = chan;
    req->rank = src;
    req->tag = tag;
    req->buf = buf;
    req->type = type;
    req->bytes = count * (uint64_t)type->size;
    req->is_dense = type->is_dense;
    req->order = chan->worker->post_order++;
}

static void remove_unexpected(weft_chan *chan, weft_unexpected *unexpected)
{
    const weft_hdr *hdr = &unexpected->hdr;
    weft_unexpected_remove(&chan->match, chan->worker, unexpected);
    WEFT_EVENT_RAISE(WEFT_EVENT_UNEXPECTED_DEQUEUED, chan, hdr->src, hdr->tag, (int64_t)weft_unexpected_bytes(unexpected));
}

/* The message is out of matching. Frees it. */
static void recv_removed(weft_req *req, weft_unexpected *unexpected)
{
    weft_worker *worker = req->worker;
    worker->unpolled++;
    if (weft_likely(unexpected->hdr.kind == WEFT_FRAME_EAGER))
        weft_deliver_eager(unexpected->peer, req, &unexpected->hdr, unexpected->body);
    else
        weft_deliver_other(unexpected->peer, req, &unexpected->hdr, unexpected->body);
    weft_unexpected_free(worker, unexpected);
}

#define LONG_MIN 32768u /* bytes: a message to such a buffer may come by rendezvous */

static inline void post(weft_chan *chan, weft_req *req)
{
    if (weft_unlikely(chan->is_helped) && req->bytes >= LONG_MIN && !req->is_blocking)
        weft_match_post_long(&chan->match, req);
    else
        weft_match_post(&chan->match, req);
}

static void match_unexpected_or_post(weft_chan *chan, weft_req *req)
{
    weft_unexpected *unexpected = weft_unexpected_search(&chan->match, chan->worker, req->rank, req->tag);
    if (unexpected) {
        remove_unexpected(chan, unexpected);
        recv_removed(req, unexpected);
    } else {
        post(chan, req);
        weft_stall_ask(chan, req->rank, req->tag);
        if (weft_unlikely(chan->lost_count))
            weft_lost_on_posted(chan, req);
    }
}

static inline void match_or_post(weft_chan *chan, weft_req *req)
{
    if (weft_unlikely(chan->match.unexpected_count))
        match_unexpected_or_post(chan, req);
    else
        post(chan, req);
}

static void end_proc_null(weft_req *req)
{
    req->recv_info = (weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG};
    weft_req_end(req, 0);
}

int weft_irecv_into(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req *req)
{
    describe(req, chan, src, tag, buf, count, type);
    if (weft_unlikely(src == WEFT_PROC_NULL))
        end_proc_null(req);
    else
        match_or_post(chan, req);
    return 0;
}

int weft_irecv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req **out)
{
    weft_req *req = weft_req_new(chan->worker, WEFT_REQ_RECV);
    if (weft_unlikely(!req))
        return weft_fail(WEFT_E_NOMEM, "no memory for a receive request");
    *out = req;
    return weft_irecv_into(chan, src, tag, buf, count, type, req);
}

static __attribute__((noinline)) void wait_long(weft_req *req)
{
    weft_wait wait;
    weft_wait_begin(&wait, req->worker, WEFT_WAIT_REASON_RECV, weft_chan_job_rank(req->chan, req->rank), req->tag, req->bytes);
    wait.req = req;
    do
        weft_wait_progress(&wait);
    while (!req->is_done);
    weft_wait_end(&wait);
}

/* The request is on the stack; only fields that are read are set. It is unposted before the return. The asm hides the address of the
 * local from a compiler warning. */
int weft_recv_plain(void *buf, uint64_t count, const weft_type *type, int src, int tag, weft_chan *chan, weft_recv_info *found)
{
    weft_req on_stack, *req = &on_stack;
    __asm__("" : "+r"(req));
    req->completion = NULL;
    req->worker = chan->worker;
    req->has_rndv = false;
    describe(req, chan, src, tag, buf, count, type);
    req->is_blocking = true;
    req->overtaken = 0;
    if (weft_unlikely(src == WEFT_PROC_NULL))
        end_proc_null(req);
    else
        match_or_post(chan, req);
    if (!req->is_done) {
        weft_worker_poll(chan->worker);
        if (!req->is_done)
            wait_long(req);
    } else if (weft_likely(!req->rc)) { /* not after an error: the poll may replace its text */
        weft_worker_catch_up(chan->worker);
    }
    *found = req->recv_info;
    if (weft_unlikely(req->rc))
        weft_req_report_error(req);
    return req->rc;
}

int weft_recv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_recv_info *found)
{
    weft_recv_info ignored;
    return weft_recv_plain(buf, count, type, src, tag, chan, found ? found : &ignored);
}

static weft_unexpected *search(weft_chan *chan, int src, int tag)
{
    weft_unexpected *unexpected = weft_match_find(&chan->match, chan->worker, src, tag);
    if (!unexpected && chan->match.unexpected_count)
        weft_stall_ask(chan, src, tag);
    return unexpected;
}

static void describe_unexpected(const weft_unexpected *unexpected, weft_recv_info *found)
{
    found->source = unexpected->hdr.src;
    found->tag = unexpected->hdr.tag;
    found->cancelled = false;
    found->bytes = weft_unexpected_bytes(unexpected);
}

typedef struct probe_wait {
    weft_wait wait;
    weft_chan *chan;
    int src, tag;
} probe_wait;

static bool is_hopeless(const weft_chan *chan, int src)
{
    weft_recv_info ignored;
    return weft_unlikely(chan->lost_count) && weft_lost_probe(chan, src, &ignored);
}

/* wait.is_over: may be called by another thread that polls. */
static bool has_unexpected(weft_wait *wait)
{
    const probe_wait *self = weft_container(wait, probe_wait, wait);
    return search(self->chan, self->src, self->tag) || is_hopeless(self->chan, self->src);
}

/* NULL: none, and !wait, or none will come (p2p/lost). Polls at most once without wait. */
static weft_unexpected *probe(weft_chan *chan, int src, int tag, bool wait)
{
    weft_unexpected *found = search(chan, src, tag);
    probe_wait self;
    if (found)
        return found;
    if (!wait) {
        weft_worker_poll(chan->worker);
        return search(chan, src, tag);
    }
    self.chan = chan;
    self.src = src;
    self.tag = tag;
    weft_wait_begin(&self.wait, chan->worker, WEFT_WAIT_REASON_PROBE, weft_chan_job_rank(chan, src), tag, 0);
    self.wait.is_over = has_unexpected;
    while (!(found = search(chan, src, tag)) && !is_hopeless(chan, src))
        weft_wait_progress(&self.wait);
    weft_wait_end(&self.wait);
    return found;
}

int weft_probe(weft_chan *chan, int src, int tag, bool wait, bool *is_there, weft_recv_info *info)
{
    const weft_unexpected *found;
    if (src == WEFT_PROC_NULL) {
        *info = (weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG};
        *is_there = true;
        return 0;
    }
    found = probe(chan, src, tag, wait);
    *is_there = found;
    if (found)
        describe_unexpected(found, info);
    return found || !chan->lost_count ? 0 : weft_lost_probe(chan, src, info);
}

int weft_mprobe(weft_chan *chan, int src, int tag, bool wait, weft_unexpected **message, weft_recv_info *info)
{
    weft_unexpected *found = *message = probe(chan, src, tag, wait);
    if (found) {
        describe_unexpected(found, info);
        remove_unexpected(chan, found);
    }
    return found || !chan->lost_count ? 0 : weft_lost_probe(chan, src, info);
}

weft_unexpected *weft_mprobe_now(weft_chan *chan, int src, int tag, weft_recv_info *info)
{
    weft_unexpected *found = search(chan, src, tag);
    if (found) {
        describe_unexpected(found, info);
        remove_unexpected(chan, found);
    }
    return found;
}

void weft_mrecv_into(weft_chan *chan, weft_unexpected *message, void *buf, uint64_t count, const weft_type *type, weft_req *req)
{
    describe(req, chan, message->hdr.src, message->hdr.tag, buf, count, type);
    recv_removed(req, message);
}

void weft_mrecv_reject(weft_chan *chan, weft_unexpected *message)
{
    weft_deliver_drop(message->peer, &message->hdr, message->body, WEFT_E_COMM);
    weft_unexpected_free(chan->worker, message);
}

/* An eager send completes. A copied one (BATCH) ends at once; its messages are still sent. */
static void cancel_send(weft_req *req)
{
    if (req->kind == WEFT_REQ_BATCH) {
        weft_sendq_release(req);
    } else if (req->queued) {
        weft_sendq_remove(req);
        req->recv_info.cancelled = true;
        weft_req_end(req, 0);
    } else if (req->has_rndv) {
        weft_rndv_cancel(req);
    }
}

int weft_cancel(weft_req *req)
{
    int rc;
    if (req->is_done)
        return 0;
    if (req->kind == WEFT_REQ_SEND || req->kind == WEFT_REQ_BATCH) {
        cancel_send(req);
        return 0;
    }
    if (req->kind != WEFT_REQ_RECV || !req->is_posted)
        return 0;
    if (weft_unlikely(req->may_promise) && (rc = weft_promise_withdraw(req)))
        return rc;
    weft_match_unpost(&req->chan->match, req);
    req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG, .cancelled = true};
    weft_req_end(req, 0);
    return 0;
}
