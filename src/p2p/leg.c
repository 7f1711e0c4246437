/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leg: carrying out stretches of rendezvous. See leg.h.
 */
#include "p2p/leg.h"

#include "base/clock.h"
#include "base/status.h"
#include "core/hdr_csum.h"
#include "core/world.h"
#include "mem/pool.h"
#include "type/pack.h"

#define PIECES 4
#define CHUNK_MIN 4096
#define PUMP_BURST 4 /* chunks of one transfer between two looks at what arrives: both ways must move */
#define PIECES_ALONE 4ull /* caps.move_piece counts so often where one thread calls */
#define TURN_NS 50000u    /* how long copies by this CPU go on before the worker is polled and its lock offered ... */
#define TURN_LONG_NS 1000000u /* ... where no other thread can want it */

weft_leg *weft_leg_new(weft_req *req, enum weft_leg_kind kind, uint64_t from, uint64_t to, void (*over)(weft_leg *leg, int rc))
{
    weft_leg *leg = weft_pool_take(req->worker->pool, sizeof *leg);
    if (!leg)
        return NULL;
    leg->req = req;
    leg->pin = NULL;
    leg->loan = NULL;
    leg->from = from;
    leg->to = to;
    leg->bytes = to - from;
    leg->over = over;
    leg->index = 0;
    leg->held = 0;
    leg->is_out = leg->is_starting = leg->has_moved = false;
    leg->kind = (uint8_t)kind;
    leg->key.length = 0;
    req->fragment_count++;
    return leg;
}

void weft_leg_free(weft_leg *leg)
{
    weft_req *req = leg->req;
    weft_reg_revoke(req->iface, leg->loan);
    weft_reg_release(req->iface, leg->pin);
    req->fragment_count--;
    weft_pool_give(req->worker->pool, leg, sizeof *leg);
}

/* -- get and put -- */

/* Our side's registration: the leg's, or the whole message's. */
static const weft_region *region_of(const weft_leg *leg)
{
    const weft_pin *pin = leg->pin ? leg->pin : leg->req->pin;
    return pin ? weft_reg_mr(pin) : NULL;
}

/* Most bytes of one get or put. Where one thread calls there is no other to offer the lock to: fewer, longer calls. */
static uint64_t piece_max(const weft_req *req)
{
    const weft_caps *caps = &req->peer->ep->iface->caps;
    uint64_t piece = req->worker->is_threaded ? caps->move_piece : caps->move_piece * PIECES_ALONE;
    return piece && piece < caps->move_max ? piece : caps->move_max;
}

/* In the simulator, whose runs do not depend on real time, each piece ends a turn. */
static uint64_t turn_end(const weft_worker *worker)
{
    return weft_unlikely(worker->world->sleep_ops->aside) ? 1 : weft_clock_ns() + (worker->is_threaded ? TURN_NS : TURN_LONG_NS);
}

/* One get or put of at most one piece. AGAIN, an error, or 0: leg->has_moved says whether it ended inside the call. */
static int move_piece(weft_leg *leg)
{
    weft_req *req = leg->req;
    weft_ep *ep = req->peer->ep;
    const weft_iface_ops *ops = ep->iface->ops;
    uint64_t max = piece_max(req);
    weft_move move = {.local = (char *)weft_leg_start_of(req) + leg->from, .region = region_of(leg), .remote = leg->far + leg->from,
                      .key = &leg->key, .bytes = leg->to - leg->from < max ? leg->to - leg->from : max, .done = leg};
    int rc;
    leg->piece = move.bytes;
    leg->has_moved = false;
    leg->is_starting = true;
    rc = leg->kind == WEFT_LEG_GET ? ops->get(ep->iface, ep, &move) : ops->put(ep->iface, ep, &move);
    leg->is_starting = false;
    return rc ? rc : leg->has_moved ? leg->rc : 0;
}

static void count_piece(weft_leg *leg)
{
    leg->req->worker->counters[weft_reg_needed(leg->req->iface) ? WEFT_COUNT_BYTES_RMA : WEFT_COUNT_BYTES_CMA] += leg->piece;
    leg->from += leg->piece;
}

/* AGAIN, or it is under way, or over (and perhaps gone). Copies by this CPU end with the turn (until_ns; 0: it begins here): AGAIN then. */
static int try_move(weft_leg *leg, uint64_t until_ns)
{
    for (;;) {
        int rc;
        if (!until_ns && leg->req->peer->ep->iface->caps.move_piece && leg->to - leg->from > piece_max(leg->req))
            until_ns = turn_end(leg->req->worker);
        rc = move_piece(leg);
        if (rc > 0)
            return rc;
        if (rc == 0 && !leg->has_moved)
            return 0;
        if (rc == 0)
            count_piece(leg);
        if (rc < 0 || leg->from == leg->to) {
            leg->over(leg, rc);
            return 0;
        }
        if (until_ns && weft_clock_ns() >= until_ns)
            return WEFT_AGAIN;
    }
}

static void body_is_free(weft_leg *leg)
{
    if (--leg->held == 0 && leg->is_out)
        leg->over(leg, leg->rc);
}

void weft_leg_done(weft_leg *leg, int rc)
{
    if (leg->kind == WEFT_LEG_DATA) {
        body_is_free(leg);
        return;
    }
    if (leg->kind == WEFT_LEG_HELD) {
        leg->over(leg, rc);
        return;
    }
    if (leg->is_starting) { /* move_piece goes on with it */
        leg->has_moved = true;
        leg->rc = rc;
        return;
    }
    if (!rc)
        count_piece(leg);
    if (!rc && leg->from < leg->to)
        weft_leg_start(leg);
    else
        leg->over(leg, rc);
}

/* -- DATA -- */

static void fill_packed(const weft_frame *frame, void *place)
{
    const weft_req *req = frame->body;
    uint64_t offset = (uint64_t)(uint32_t)frame->hdr.src << 32 | (uint32_t)frame->hdr.tag;
    weft_pack(req->type, req->buf, req->count, offset, frame->hdr.bytes, place);
}

/* The receiver copies a chunk out while the sender copies the next one in: at least PIECES of them, none shorter than CHUNK_MIN.
 * Where the sender does not copy, every chunk more is only a frame more. */
static uint32_t chunk_of(const weft_req *req)
{
    const weft_caps *caps = &req->peer->ep->iface->caps;
    uint32_t max = (caps->chunk ? caps->chunk : caps->frame_max) - weft_hdr_csum_bytes();
    uint64_t bytes = req->is_dense && weft_peer_is_zcopy(req->peer, max) ? max : req->bytes / PIECES;
    bytes = bytes < CHUNK_MIN ? CHUNK_MIN : bytes;
    return bytes < max ? (uint32_t)bytes : max;
}

/* One chunk of at most `most` bytes: 0, AGAIN or an error. */
static int send_chunk(weft_leg *leg, uint32_t max)
{
    weft_req *req = leg->req;
    weft_peer *peer = req->peer;
    uint64_t rest = leg->to - leg->from;
    uint32_t bytes = rest < max ? (uint32_t)rest : max;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_DATA, .chan = req->remote_req_id, .src = (int32_t)(leg->from >> 32),
                                 .tag = (int32_t)(uint32_t)leg->from, .bytes = bytes}};
    int rc;
    if (req->is_dense) {
        frame.body = (char *)weft_leg_start_of(req) + leg->from;
        frame.held = weft_peer_is_zcopy(peer, bytes) ? leg : NULL;
    } else {
        frame.body = req;
        frame.fill = fill_packed;
    }
    if (!weft_list_is_empty(&peer->waiting))
        return WEFT_AGAIN;
    rc = weft_peer_post(peer, &frame);
    if (rc && rc != WEFT_HELD)
        return rc;
    leg->from += bytes;
    leg->held += rc == WEFT_HELD;
    if (rc == 0)
        req->worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
    return 0;
}

/* Where peers that do not read hold all that is shared, what fits the pair's own room still gets through. */
static int send_some(weft_leg *leg)
{
    uint32_t max = chunk_of(leg->req), alone = leg->req->peer->ep->iface->caps.chunk_alone;
    alone -= alone ? weft_hdr_csum_bytes() : 0;
    int rc = send_chunk(leg, max);
    return rc == WEFT_AGAIN && alone && alone < max ? send_chunk(leg, alone) : rc;
}

/* A burst of chunks: AGAIN when more is to come, 0 when it is over. */
static int push(weft_leg *leg, int *n)
{
    int rc = leg->req->rc; /* the other side gave up: stop */
    for (int burst = 0; burst < PUMP_BURST && leg->from < leg->to && rc == 0; burst++)
        *n += (rc = send_some(leg)) == 0;
    if (rc == WEFT_AGAIN || (rc == 0 && leg->from < leg->to))
        return WEFT_AGAIN;
    leg->rc = rc;
    leg->is_out = true;
    if (!leg->held)
        leg->over(leg, rc);
    return 0;
}

/* -- both -- */

void weft_leg_start(weft_leg *leg)
{
    weft_worker *worker = leg->req->worker;
    int n = 0, rc = leg->kind == WEFT_LEG_DATA ? push(leg, &n) : try_move(leg, 0);
    if (rc == WEFT_AGAIN)
        weft_list_append(&worker->fragments, &leg->link);
}

/* Everything that waits here is taken out first: ends may start new legs. What has no part in this turn comes first in the next. */
int weft_leg_pump(weft_worker *worker)
{
    uint64_t until_ns = turn_end(worker);
    weft_list_link todo, *link;
    int n = 0;
    weft_list_init(&todo);
    weft_list_splice(&todo, &worker->fragments);
    while ((link = weft_list_take(&todo))) {
        weft_leg *leg = weft_container(link, weft_leg, link);
        uint64_t from = leg->from;
        int rc = leg->kind == WEFT_LEG_DATA ? push(leg, &n) : try_move(leg, until_ns);
        if (rc == WEFT_AGAIN) {
            weft_list_append(&worker->fragments, link);
            n += leg->kind != WEFT_LEG_DATA && leg->from > from;
        } else {
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
