/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frag: progress of fragments: get and put, DATA frames, time slices. See frag.h.
 */
#include "p2p/frag.h"

#include "base/clock.h"
#include "base/status.h"
#include "core/hdr_csum.h"
#include "core/world.h"
#include "mem/pool.h"
#include "type/pack.h"

#define FRAMES_MIN 4              /* DATA frames per message, at least, unless shorter than CHUNK_MIN */
#define CHUNK_MIN 8192        /* bytes of a DATA frame, at least */
#define PUMP_BURST 4          /* DATA frames of one transfer between two polls, so that both directions progress */
#define ALONE_FACTOR 4ull     /* factor on caps.rma_fragment if one thread only uses the worker */
#define SLICE_NS 50000u        /* longest time of copies by this CPU before the worker is polled and its lock offered */
#define SLICE_LONG_NS 1000000u /* the same if no other thread uses the worker */

static void complete(weft_done *done, int rc);

weft_frag *weft_frag_new(weft_req *req, weft_rndv *rndv, enum weft_frag_kind kind, uint64_t from, uint64_t to,
                         void (*on_done)(weft_frag *frag, int rc))
{
    weft_frag *frag = weft_pool_alloc(req->worker->pool, sizeof *frag);
    if (!frag)
        return NULL;
    frag->done.call = complete;
    frag->req = req;
    frag->rndv = rndv;
    frag->reg = NULL;
    frag->mw = NULL;
    frag->from = from;
    frag->to = to;
    frag->bytes = to - from;
    frag->on_registered = NULL;
    frag->on_done = on_done;
    frag->index = 0;
    frag->notify = 0;
    frag->bodies_in_use = 0;
    frag->is_out = frag->is_starting = frag->has_moved = false;
    frag->kind = (uint8_t)kind;
    frag->rkey.length = 0;
    if (rndv)
        rndv->fragment_count++;
    return frag;
}

void weft_frag_free(weft_frag *frag)
{
    weft_worker *worker = frag->req->worker;
    weft_rndv *rndv = frag->rndv;
    if (weft_likely(rndv != NULL)) {
        weft_reg_revoke(rndv->iface, frag->mw);
        weft_reg_release(rndv->iface, frag->reg);
        rndv->fragment_count--;
    }
    weft_pool_free(worker->pool, frag, sizeof *frag);
}

/* -- get and put -- */

/* Local registration of the fragment, or of the whole message; NULL: none. */
static const weft_mr *mr_of(const weft_frag *frag)
{
    const weft_reg *reg = frag->reg ? frag->reg : frag->rndv->reg;
    return reg ? weft_reg_mr(reg) : NULL;
}

/* Most bytes of one get or put. With a single thread calls may be longer: no other thread waits for the lock. */
static uint64_t op_max(const weft_frag *frag)
{
    const weft_caps *caps = &frag->rndv->peer->ep->iface->caps;
    uint64_t op_bytes = weft_worker_is_shared(frag->req->worker) ? caps->rma_fragment : caps->rma_fragment * ALONE_FACTOR;
    return op_bytes && op_bytes < caps->rma_max ? op_bytes : caps->rma_max;
}

/* End of the time slice. In the simulator, whose runs must not depend on real time, each operation ends it. */
static uint64_t slice_end(const weft_worker *worker)
{
    if (weft_unlikely(worker->world->sleep_ops->aside))
        return 1;
    return weft_clock_ns() + (weft_worker_is_shared(worker) ? SLICE_NS : SLICE_LONG_NS);
}

/* Issues one get or put of at most op_max() bytes. AGAIN, an error, or 0; frag->has_moved: it completed inside the call. */
static int start_op(weft_frag *frag)
{
    weft_ep *ep = frag->rndv->peer->ep;
    const weft_iface_ops *ops = ep->iface->ops;
    uint64_t max = op_max(frag);
    weft_rma rma = {.local = (char *)weft_req_start(frag->req) + frag->from, .mr = mr_of(frag), .remote = frag->remote_addr + frag->from,
                      .rkey = &frag->rkey, .bytes = frag->to - frag->from < max ? frag->to - frag->from : max, .done = frag};
    int rc;
    frag->op_bytes = rma.bytes;
    if (weft_unlikely(frag->notify))
        rma.notify = frag->notify = rma.bytes == frag->bytes ? frag->notify : 0;
    frag->has_moved = false;
    frag->is_starting = true;
    rc = frag->kind == WEFT_FRAG_GET ? ops->get(ep->iface, ep, &rma) : ops->put(ep->iface, ep, &rma);
    frag->is_starting = false;
    return rc ? rc : frag->has_moved ? frag->rc : 0;
}

static void count_op(weft_frag *frag)
{
    frag->req->worker->counters[weft_reg_needed(frag->rndv->iface) ? WEFT_COUNT_BYTES_RMA : WEFT_COUNT_BYTES_CMA] += frag->op_bytes;
    frag->from += frag->op_bytes;
}

/* Moves the rest of the fragment. AGAIN: the iface is full or the time slice is over (until_ns; 0: it begins here).
 * 0: in flight, or on_done() was called and the fragment may be freed. */
static int try_move(weft_frag *frag, uint64_t until_ns)
{
    for (;;) {
        int rc;
        if (!until_ns && frag->rndv->peer->ep->iface->caps.rma_fragment && frag->to - frag->from > op_max(frag))
            until_ns = slice_end(frag->req->worker);
        rc = start_op(frag);
        if (rc > 0)
            return rc;
        if (rc == 0 && !frag->has_moved)
            return 0;
        if (rc == 0)
            count_op(frag);
        if (rc < 0 || frag->from == frag->to) {
            frag->on_done(frag, rc);
            return 0;
        }
        if (until_ns && weft_clock_ns() >= until_ns)
            return WEFT_AGAIN;
    }
}

static void on_body_read(weft_frag *frag)
{
    if (--frag->bodies_in_use == 0 && frag->is_out)
        frag->on_done(frag, frag->rc);
}

/* A get or put completed, or the iface no longer reads a body. */
static void complete(weft_done *done, int rc)
{
    weft_frag *frag = weft_container(done, weft_frag, done);
    if (frag->kind == WEFT_FRAG_DATA) {
        on_body_read(frag);
        return;
    }
    if (frag->kind == WEFT_FRAG_ZCOPY) {
        frag->on_done(frag, rc);
        return;
    }
    if (frag->is_starting) { /* start_op handles it */
        frag->has_moved = true;
        frag->rc = rc;
        return;
    }
    if (!rc)
        count_op(frag);
    if (!rc && frag->from < frag->to)
        weft_frag_start(frag);
    else
        frag->on_done(frag, rc);
}

/* -- DATA -- */

static void fill_packed(const weft_frame *frame, void *place)
{
    const weft_req *req = frame->body;
    uint64_t offset = (uint64_t)(uint32_t)frame->hdr.src << 32 | (uint32_t)frame->hdr.tag;
    weft_pack(req->type, req->buf, weft_req_count(req), offset, frame->hdr.bytes, place);
}

/* Body size of a DATA frame. The receiver copies one frame out while the sender copies the next in: at least FRAMES_MIN frames of
 * CHUNK_MIN bytes or more. With zcopy the sender does not copy: frames as long as possible. */
static uint32_t chunk_of(const weft_frag *frag)
{
    const weft_req *req = frag->req;
    const weft_peer *peer = frag->rndv->peer;
    const weft_caps *caps = &peer->ep->iface->caps;
    uint32_t max = (caps->chunk ? caps->chunk : caps->frame_max) - weft_hdr_csum_bytes();
    uint64_t bytes = req->is_dense && weft_peer_is_zcopy(peer, max) ? max : req->bytes / FRAMES_MIN;
    bytes = bytes < CHUNK_MIN ? CHUNK_MIN : bytes;
    return bytes < max ? (uint32_t)bytes : max;
}

/* Sends one DATA frame of at most max bytes: 0, AGAIN or an error. */
static int send_chunk(weft_frag *frag, uint32_t max)
{
    weft_req *req = frag->req;
    weft_peer *peer = frag->rndv->peer;
    uint64_t rest = frag->to - frag->from;
    uint32_t bytes = rest < max ? (uint32_t)rest : max;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_DATA, .chan = frag->rndv->remote_id, .src = (int32_t)(frag->from >> 32),
                                 .tag = (int32_t)(uint32_t)frag->from, .bytes = bytes}};
    int rc;
    if (req->is_dense) {
        frame.body = (char *)weft_req_start(req) + frag->from;
        frame.zcopy_ctx = weft_peer_is_zcopy(peer, bytes) ? frag : NULL;
    } else {
        frame.body = req;
        frame.pack = fill_packed;
    }
    if (!weft_list_is_empty(&peer->waiting))
        return WEFT_AGAIN;
    rc = weft_peer_post(peer, &frame);
    if (rc && rc != WEFT_INPROGRESS)
        return rc;
    frag->from += bytes;
    frag->bodies_in_use += rc == WEFT_INPROGRESS;
    if (rc == 0)
        req->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    return 0;
}

/* If peers that do not poll occupy all shared buffers, a frame of caps.chunk_alone bytes still fits the buffers of this pair. */
static int send_some(weft_frag *frag)
{
    uint32_t max = chunk_of(frag), alone = frag->rndv->peer->ep->iface->caps.chunk_alone;
    alone -= alone ? weft_hdr_csum_bytes() : 0;
    int rc = send_chunk(frag, max);
    return rc == WEFT_AGAIN && alone && alone < max ? send_chunk(frag, alone) : rc;
}

/* Sends up to PUMP_BURST DATA frames. AGAIN: more remain; 0: all are sent or it failed, and the fragment may be freed. */
static int push(weft_frag *frag, int *n)
{
    int rc = frag->req->rc; /* the transfer failed: stop */
    for (int burst = 0; burst < PUMP_BURST && frag->from < frag->to && rc == 0; burst++)
        *n += (rc = send_some(frag)) == 0;
    if (rc == WEFT_AGAIN || (rc == 0 && frag->from < frag->to))
        return WEFT_AGAIN;
    frag->rc = rc;
    frag->is_out = true;
    if (!frag->bodies_in_use)
        frag->on_done(frag, rc);
    return 0;
}

/* -- both -- */

static void enqueue(weft_frag *frag)
{
    frag->rndv->peer->fragments++;
    weft_list_append(&frag->req->worker->fragments, &frag->link);
}

void weft_frag_start(weft_frag *frag)
{
    int n = 0, rc = frag->kind == WEFT_FRAG_DATA ? push(frag, &n) : try_move(frag, 0);
    if (rc == WEFT_AGAIN)
        enqueue(frag);
}

void weft_frag_await(weft_frag *frag, void (*on_registered)(weft_frag *frag, int rc))
{
    weft_worker *worker = frag->req->worker;
    frag->on_registered = on_registered;
    worker->awaited_regs++;
    worker->idle_fragments++;
    enqueue(frag);
}

/* AGAIN: the registration is not made yet. */
static int settle(weft_frag *frag)
{
    weft_worker *worker = frag->req->worker;
    void (*on_registered)(weft_frag *frag, int rc) = frag->on_registered;
    int rc = weft_reg_settle(frag->rndv->iface, frag->reg);
    if (rc == WEFT_INPROGRESS)
        return WEFT_AGAIN;
    worker->awaited_regs--;
    worker->idle_fragments--;
    frag->on_registered = NULL;
    on_registered(frag, rc);
    return 0;
}

/* Empties worker->fragments first, since on_done() may start new fragments. Fragments not reached in this slice come first in the next. */
int weft_frag_pump(weft_worker *worker)
{
    uint64_t until_ns = slice_end(worker);
    weft_list_link todo, *link;
    int n = 0;
    weft_list_init(&todo);
    weft_list_splice(&todo, &worker->fragments);
    while ((link = weft_list_take(&todo))) {
        weft_frag *frag = weft_container(link, weft_frag, link);
        weft_peer *peer = frag->rndv->peer;
        uint64_t from = frag->from;
        int rc = frag->on_registered ? settle(frag) : frag->kind == WEFT_FRAG_DATA ? push(frag, &n) : try_move(frag, until_ns);
        if (rc == WEFT_AGAIN) {
            weft_list_append(&worker->fragments, link);
            n += frag->kind != WEFT_FRAG_DATA && frag->from > from;
        } else {
            peer->fragments--;
            n++;
        }
        if (!weft_list_is_empty(&todo) && weft_clock_ns() >= until_ns) {
            weft_list_splice(&todo, &worker->fragments);
            weft_list_splice(&worker->fragments, &todo);
            break;
        }
    }
    return n;
}
