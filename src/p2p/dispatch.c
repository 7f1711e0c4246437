/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dispatch: the callbacks that ifaces call, and the handlers of frames. See dispatch.h.
 */
#include "p2p/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/absence.h"
#include "core/bye.h"
#include "core/done.h"
#include "core/hdr_csum.h"
#include "p2p/chan.h"
#include "p2p/deliver.h"
#include "p2p/eager_frags.h"
#include "p2p/frag.h"
#include "p2p/frame_check.h"
#include "p2p/lost.h"
#include "p2p/msg_csum.h"
#include "p2p/promise.h"
#include "p2p/rndv.h"
#include "p2p/rndv_pool.h"
#include "p2p/rndv_select.h"
#include "p2p/sendq.h"
#include "p2p/stall.h"

static __attribute__((noinline)) void enqueue_unexpected(weft_peer *peer, weft_chan *chan, const weft_hdr *hdr, const void *body)
{
    int rc = weft_unlikely(chan->refuses != NULL) ? chan->refuses(chan, hdr->tag) : 0;
    if (rc)
        weft_deliver_drop(peer, hdr, body, rc);
    else
        weft_deliver_enqueue(peer, chan, weft_deliver_unexpected(peer, hdr, body));
}

static inline void dispatch_message(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    weft_req *req;
    if (weft_unlikely(!chan)) {
        weft_deliver_drop(peer, hdr, body, WEFT_E_COMM);
        return;
    }
    req = weft_match_posted(&chan->match, hdr->src, hdr->tag);
    if (weft_unlikely(!req))
        enqueue_unexpected(peer, chan, hdr, body);
    else if (weft_likely(hdr->kind == WEFT_FRAME_EAGER))
        weft_deliver_eager_inline(peer, req, hdr, body);
    else
        weft_deliver_other(peer, req, hdr, body);
}

static void dispatch_notify(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_chan *chan = weft_chan_of(peer->worker, hdr->chan);
    int from = hdr->src;
    if (chan && !hdr->bytes) /* by weft_chan_notify_gone, which does not know its rank */
        from = weft_group_rank_of(chan->group, (weft_process){peer->proc_id.job, peer->proc_id.rank});
    if (chan && chan->on_notify && (uint32_t)from < chan->size)
        chan->on_notify(chan, (uint32_t)from, body, hdr->bytes);
    else if (!chan && hdr->bytes)
        weft_chan_notify_gone(peer, (uint32_t)hdr->tag);
}

/* The peer has called MPI_Finalize, or its connection is lost. Notifies all channel owners: one may wait for a NOTIFY that it will not
 * send. */
static void end_waits(weft_peer *peer, int rc)
{
    weft_worker *worker = peer->worker;
    for (uint32_t i = 0; i < worker->chan_capacity; i++) {
        weft_chan *chan = worker->chans[i].chan;
        if (chan && chan->on_notify && weft_chan_is_left(chan, peer))
            chan->on_notify(chan, UINT32_MAX, NULL, 0);
    }
    if (rc)
        weft_sendq_give_up(peer, rc);
    else
        weft_lost_finalized(peer);
    weft_promises_give_up(peer);
}

/* Finds peers on this node that have ended without a BYE. A process sends BYE only to peers that it knows. */
static void on_long_wait(weft_worker *worker)
{
    for (weft_peer *peer = worker->peers; peer; peer = peer->next) {
        bool may_end = peer->state == WEFT_PEER_ALIVE && !peer->bye_received && peer->proc_id.job == worker->world->boot->job;
        if (!may_end || weft_absence_page(worker, peer->proc_id.rank) != WEFT_RANK_FINAL)
            continue;
        peer->bye_received = peer->is_gone = true;
        end_waits(peer, 0);
    }
    weft_chan_long_wait(worker);
}

static void dispatch_bye(weft_peer *peer, const weft_hdr *hdr)
{
    weft_bye_received(peer, hdr);
    if (hdr->tag == WEFT_BYE_FINAL || hdr->tag == WEFT_BYE_REST)
        end_waits(peer, 0);
}

/* Frames of promises, or of an unknown kind. */
static void dispatch_promise(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    if (hdr->kind == WEFT_FRAME_PROMISE)
        weft_promise_on_promise(peer, hdr, body);
    else if (hdr->kind == WEFT_FRAME_USE)
        weft_rndv_use(peer, hdr);
    else if (hdr->kind == WEFT_FRAME_REVOKE)
        weft_promise_on_revoke(peer, hdr);
    else if (hdr->kind == WEFT_FRAME_REVOKED)
        weft_rndv_revoked(peer, hdr);
    else
        weft_log_error("a frame of unknown kind %u was received from rank %u: does it run the same version of Weft?", hdr->kind,
                       peer->proc_id.rank);
}

static __attribute__((noinline)) void dispatch_other(weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    weft_hdr plain;
    if (weft_unlikely(hdr->flags & WEFT_HDR_CSUM)) { /* the peer has WEFT_CHECKSUM set, this process has not */
        weft_hdr_csum_verify(peer, hdr, body, &plain);
        hdr = &plain;
    }
    if (weft_unlikely(!weft_frame_is_sound(peer, hdr, body)))
        weft_frame_refuse(peer, hdr);
    if (!weft_frame_is_message(hdr->kind))
        peer->others_in++;
    switch (hdr->kind) {
    case WEFT_FRAME_RTS:
    case WEFT_FRAME_EAGER_CSUM:
        dispatch_message(peer, hdr, body);
        break;
    case WEFT_FRAME_EAGER_FRAGS:
        weft_eager_frags_on_first(peer, hdr, body);
        break;
    case WEFT_FRAME_FRAG:
        weft_eager_frags_on_next(peer, hdr, body);
        break;
    case WEFT_FRAME_CTS:
        weft_rndv_cts(peer, hdr, body);
        break;
    case WEFT_FRAME_DATA:
        weft_rndv_data(peer, hdr, body);
        break;
    case WEFT_FRAME_CSUM:
        weft_rndv_csum(peer, hdr);
        break;
    case WEFT_FRAME_FIN:
        weft_rndv_fin(peer, hdr);
        break;
    case WEFT_FRAME_BYE:
        dispatch_bye(peer, hdr);
        break;
    case WEFT_FRAME_STALLED:
        weft_stall_on_stalled(peer, hdr, body);
        break;
    case WEFT_FRAME_DRAINED:
        weft_stall_on_drained(peer, hdr);
        break;
    case WEFT_FRAME_ASK:
        weft_sendq_on_ask(peer, hdr, body);
        break;
    case WEFT_FRAME_CANCEL:
        weft_rndv_on_cancel(peer, hdr);
        break;
    case WEFT_FRAME_CREDIT:
        break;
    case WEFT_FRAME_NOTIFY:
        dispatch_notify(peer, hdr, body);
        break;
    default:
        dispatch_promise(peer, hdr, body);
    }
}

void weft_dispatch_frame(void *owner, void *cookie, const weft_hdr *hdr, const void *body)
{
    weft_peer *peer = cookie;
    (void)owner;
    peer->seq_in = hdr->seq;
    peer->credit += hdr->credits;
    if (weft_likely(hdr->kind == WEFT_FRAME_EAGER))
        dispatch_message(peer, hdr, body);
    else
        dispatch_other(peer, hdr, body);
}

/* weft_dispatch_frame in a process with WEFT_CHECKSUM. */
static void dispatch_checked(void *owner, void *cookie, const weft_hdr *hdr, const void *body)
{
    weft_hdr plain;
    if (hdr->flags & WEFT_HDR_CSUM) {
        weft_hdr_csum_verify(cookie, hdr, body, &plain);
        hdr = &plain;
    } else {
        weft_hdr_csum_missing(cookie, hdr);
    }
    if (hdr->kind == WEFT_FRAME_EAGER || hdr->kind == WEFT_FRAME_EAGER_FRAGS ||
        (hdr->kind == WEFT_FRAME_RTS && !(hdr->flags & WEFT_HDR_MSG_CSUM)))
        weft_msg_csum_missing(cookie);
    weft_dispatch_frame(owner, cookie, hdr, body);
}

/* recv_frame with mpirun --enable-recovery. Frames of a dead process that arrive after its death was reported are dropped: the program may
 * have given its memory to others. */
static void dispatch_living(void *owner, void *cookie, const weft_hdr *hdr, const void *body)
{
    const weft_peer *peer = cookie;
    if (peer->state == WEFT_PEER_FAILED)
        return;
    if (weft_knob.checksum)
        dispatch_checked(owner, cookie, hdr, body);
    else
        weft_dispatch_frame(owner, cookie, hdr, body);
}

static void done(void *owner, void *cookie, int rc)
{
    (void)owner;
    if (cookie)
        ((weft_done *)cookie)->call(cookie, rc);
}

static void notify(void *owner, void *peer, uint32_t notify)
{
    weft_worker *worker = owner;
    if (!(notify & WEFT_NOTIFY_WINDOW))
        weft_rndv_notify(peer, notify);
    else if (worker->on_window_notify)
        worker->on_window_notify(worker, notify);
}

/* Called by ifaces, and by p2p/lost when the launcher reports a death. */
static void peer_failed(void *owner, void *cookie, int rc)
{
    weft_peer *peer = cookie;
    weft_worker *worker = owner;
    char text[600];
    bool has_departed = weft_bye_has_departed(peer), is_new = peer->state != WEFT_PEER_FAILED;
    if (has_departed)
        peer->bye_received = peer->is_gone = true;
    weft_peer_fail(peer, rc);
    end_waits(peer, rc);
    if (worker->recovery && is_new && !has_departed)
        weft_lost_peer(peer, rc);
    if (has_departed || peer->is_courtesy || worker->recovery)
        return;
    snprintf(text, sizeof text, "rank %u is lost: %s", peer->proc_id.rank, weft_fail_text(rc));
    worker->world->boot->ops->abort(worker->world->boot, 1, text);
}

static void failover(void *owner, void *cookie, const weft_failover *what)
{
    const weft_peer *peer = cookie;
    (void)owner;
    WEFT_EVENT_RAISE(WEFT_EVENT_PATH_FAILOVER, NULL, peer->proc_id.rank, what->paths, what->path, what->breaks);
}

/* A launcher that reads meanwhile sees a clause that is half new, never one without an end: the last byte stays 0. */
static void waits(void *owner, const char *text)
{
    const weft_worker *worker = owner;
    weft_rank_page *page = worker->world->page;
    atomic_store_explicit(&page->iface_waits, 0, memory_order_release);
    if (!text)
        return;
    strncpy(page->iface_wait, text, sizeof page->iface_wait - 1);
    atomic_store_explicit(&page->iface_waits, 1, memory_order_release);
}

static enum weft_absence absence(void *owner, void *peer)
{
    (void)owner;
    return weft_absence_of(peer);
}

static void *accept_peer(void *owner, const weft_proc_id *proc_id)
{
    weft_peer *peer = NULL;
    int rc = weft_peer_find(owner, (weft_process){proc_id->job, proc_id->rank}, &peer);
    if (rc)
        weft_log_once(WEFT_LOG_ERROR, "frames of rank %u arrive here, but no transport of this rank reaches it: %s",
                      proc_id->rank, weft_fail_text(rc));
    return peer;
}

static void on_close(weft_worker *worker)
{
    weft_promises_close(worker);
    weft_rndv_pool_close(worker);
}

static void on_peer_connect(weft_peer *peer)
{
    uint32_t max = peer->ep->iface->caps.frame_max - weft_msg_csum_bytes() - weft_hdr_csum_bytes();
    peer->rndv_stats = weft_rndv_stats_of(peer->worker, peer);
    peer->eager_max = weft_rndv_eager_max(peer);
    if (peer->eager_max > max)
        peer->eager_max = max;
    peer->frag = peer->ep->iface->caps.frag ? peer->ep->iface->caps.frag : UINT32_MAX;
    peer->frags_max = weft_eager_frags_max(peer);
    peer->now_max = weft_peer_is_zcopy(peer, peer->eager_max) ? peer->ep->iface->caps.zcopy_min - 1 : peer->eager_max;
}

int weft_p2p_open(weft_boot *boot, int thread_level, weft_world **out)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = weft_dispatch_frame, .done = done, .notify = notify, .waits = waits,
                                                   .peer_failed = peer_failed, .failover = failover, .accept_peer = accept_peer,
                                                   .absence = absence};
    static const weft_iface_callbacks checked = {.recv_frame = dispatch_checked, .done = done, .notify = notify, .waits = waits,
                                                 .peer_failed = peer_failed, .failover = failover, .accept_peer = accept_peer,
                                                 .absence = absence};
    static const weft_iface_callbacks living = {.recv_frame = dispatch_living, .done = done, .notify = notify, .waits = waits,
                                                .peer_failed = peer_failed, .failover = failover, .accept_peer = accept_peer,
                                                .absence = absence};
    bool recovers = boot->segment.hdr && boot->segment.hdr->recovers;
    weft_worker *worker;
    int rc = weft_world_open(boot, thread_level, recovers ? &living : weft_knob.checksum ? &checked : &callbacks, out);
    if (rc)
        return rc;
    worker = (*out)->workers[0];
    worker->on_peer_connect = on_peer_connect;
    worker->progress_fragments = weft_frag_pump;
    worker->flush = weft_sendq_flush;
    worker->on_death = weft_lost_on_death;
    if (recovers)
        worker->recovery = boot->segment.hdr;
    worker->on_long_wait = on_long_wait;
    worker->count = weft_reg_count;
    worker->credit_return_min = (uint32_t)((uint64_t)weft_knob.credit_kib * 1024 / WEFT_CREDIT_BYTES / 2);
    worker->rndv_stats = weft_rndv_stats_open(worker);
    rc = worker->rndv_stats ? weft_rndv_pool_open(worker)
                            : weft_fail(WEFT_E_NOMEM, "no memory for the statistics of rendezvous protocols");
    if (!rc) {
        worker->on_close = on_close;
        rc = weft_promises_open(worker);
    }
    if (rc)
        weft_world_close(*out);
    return rc;
}
