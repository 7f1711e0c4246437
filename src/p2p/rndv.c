/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: both sides of a rendezvous. See rndv.h. Every request here stands in the lane's table of names until it ends; a frame that
 * names an unknown request is dropped (its operation was given up).
 */
#include "p2p/rndv.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world.h"
#include "p2p/ladder.h"
#include "type/pack.h"
#include "type/type.h"

#define PIECES 4
#define CHUNK_LEAST 4096
#define PUMP_BURST 4 /* chunks of one transfer between two looks at what arrives: both ways must move */

static void *dense_start(const weft_req *req) { return (char *)req->buf + req->type->true_lb; }

static void send_small(weft_peer *peer, enum weft_frame_kind kind, uint32_t chan, int32_t tag, const void *body, uint32_t bytes)
{
    weft_frame frame = {.head = {.kind = (uint8_t)kind, .chan = chan, .tag = tag, .bytes = bytes}, .body = body};
    int rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc && peer->state == WEFT_PEER_ALIVE)
        weft_peer_doom(peer, rc);
}

/* -- the sender -- */

int weft_rndv_announce(weft_peer *peer, weft_req *req)
{
    weft_rts rts = {.bytes = req->bytes};
    weft_frame frame = {.head = {.kind = WEFT_FRAME_RTS, .src = (int32_t)req->chan->rank, .tag = req->tag, .bytes = sizeof rts}, .body = &rts};
    int rc = weft_lane_name(req->lane, req);
    if (rc)
        return rc;
    frame.head.chan = req->chan->ids_out ? req->chan->ids_out[req->rank] : req->chan->id_out;
    rts.name = req->name;
    rts.addr = req->is_dense ? (uint64_t)(uintptr_t)dense_start(req) : 0;
    req->peer = peer;
    req->left = 1;
    req->moved = 0;
    rc = weft_peer_send(peer, &frame, NULL, NULL);
    if (rc)
        weft_lane_unname(req->lane, req);
    return rc;
}

static void end_send(weft_req *req, int rc)
{
    if (rc && !req->rc)
        req->rc = rc;
    if (--req->left == 0) {
        weft_lane_unname(req->lane, req);
        weft_req_end(req, req->rc);
    }
}

/* Our put was refused where the receiver's get is not: the half that is ours goes by DATA, which the receiver counts as well. */
static void push_instead(weft_req *req)
{
    req->peer->no_move = true;
    req->mode = WEFT_RUNG_COPY;
    req->moved = req->near;
    req->clock = req->near + req->span;
    weft_list_append(&req->lane->pumps, &req->link);
}

/* Starts our get or put: AGAIN, or it is under way or over (its end may already have been told). */
static int try_move(weft_req *req)
{
    static const weft_key no_key = {0};
    weft_path *path = req->peer->path;
    const weft_port_ops *ops = path->port->ops;
    weft_move move = {.local = (char *)dense_start(req) + req->near, .remote = req->far, .key = &no_key, .bytes = req->span, .done = req};
    int rc = req->kind == WEFT_REQ_RECV ? ops->get(path->port, path, &move) : ops->put(path->port, path, &move);
    if (rc == WEFT_E_UNSUPPORTED && req->kind == WEFT_REQ_SEND)
        push_instead(req);
    else if (rc < 0)
        weft_rndv_moved(req, rc);
    return rc > 0 ? rc : 0;
}

static void start_move(weft_req *req, uint64_t far, uint64_t near, uint64_t span)
{
    weft_lane *lane = req->lane;
    req->far = far;
    req->near = near;
    req->span = span;
    if (try_move(req) == WEFT_AGAIN)
        weft_list_append(&lane->pumps, &req->link);
}

void weft_rndv_cts(weft_peer *peer, const weft_head *head, const weft_cts *cts)
{
    weft_req *req = weft_lane_find(peer->lane, head->chan);
    if (!req)
        return;
    req->partner = cts->name;
    req->mode = (uint8_t)cts->rung;
    if (cts->rung == WEFT_RUNG_HALVES) {
        req->left = 2; /* our put, and the receiver's FIN */
        if (cts->from == cts->to) /* short messages have no second half: a refused put of nothing would send no DATA to end it */
            weft_rndv_moved(req, 0);
        else
            start_move(req, cts->addr + cts->from, cts->from, cts->to - cts->from);
        return;
    }
    req->moved = cts->from;
    req->clock = cts->to;
    weft_list_append(&peer->lane->pumps, &req->link);
    weft_rndv_pump(peer->lane);
}

static void fill_packed(const weft_frame *frame, void *place)
{
    const weft_req *req = frame->body;
    uint64_t offset = (uint64_t)(uint32_t)frame->head.src << 32 | (uint32_t)frame->head.tag;
    weft_pack(req->type, req->buf, req->count, offset, frame->head.bytes, place);
}

/* The receiver copies a chunk out while the sender copies the next one in: at least PIECES of them, none shorter than CHUNK_LEAST. */
static uint32_t chunk_of(const weft_req *req)
{
    const weft_caps *caps = &req->peer->path->port->caps;
    uint32_t most = caps->chunk ? caps->chunk : caps->frame_max;
    uint64_t bytes = req->bytes / PIECES;
    bytes = bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes;
    return bytes < most ? (uint32_t)bytes : most;
}

/* One chunk of at most `most` bytes: 0, AGAIN or an error. req->clock holds the end of what the receiver wants. */
static int send_chunk(weft_req *req, uint32_t most)
{
    weft_peer *peer = req->peer;
    uint64_t rest = req->clock - req->moved;
    uint32_t bytes = rest < most ? (uint32_t)rest : most;
    weft_frame frame = {.head = {.kind = WEFT_FRAME_DATA, .chan = req->partner, .src = (int32_t)(req->moved >> 32),
                                 .tag = (int32_t)(uint32_t)req->moved, .bytes = bytes}};
    int rc;
    if (req->is_dense) {
        frame.body = (char *)dense_start(req) + req->moved;
    } else {
        frame.body = req;
        frame.fill = fill_packed;
    }
    if (!weft_list_is_empty(&peer->waiting))
        return WEFT_AGAIN;
    weft_peer_stamp(peer, &frame.head);
    rc = weft_port_send(peer->path, &frame);
    if (rc)
        weft_peer_unstamp(peer, &frame.head);
    else
        req->moved += bytes;
    return rc;
}

/* Where peers that do not read hold all that is shared, what fits the pair's own room still gets through. */
static int pump_chunk(weft_req *req)
{
    uint32_t most = chunk_of(req), alone = req->peer->path->port->caps.chunk_alone;
    int rc = send_chunk(req, most);
    return rc == WEFT_AGAIN && alone && alone < most ? send_chunk(req, alone) : rc;
}

/* A burst of chunks: AGAIN or 0 when more is to come; the request ends when all has left. */
static int pump_chunks(weft_req *req, int *n)
{
    int rc = 0;
    for (int burst = 0; burst < PUMP_BURST && req->moved < req->clock && rc == 0; burst++)
        *n += (rc = pump_chunk(req)) == 0;
    if (rc == WEFT_AGAIN || (rc == 0 && req->moved < req->clock))
        return WEFT_AGAIN;
    if (rc < 0 && req->peer->state == WEFT_PEER_ALIVE) /* the receiver waits for what will never come */
        send_small(req->peer, WEFT_FRAME_FIN, req->partner, rc, NULL, 0);
    end_send(req, rc);
    return 0;
}

/* Everything that waits here is taken out first: ends may start new transfers. */
int weft_rndv_pump(weft_lane *lane)
{
    weft_link todo, *link;
    int n = 0;
    weft_list_init(&todo);
    weft_list_splice(&todo, &lane->pumps);
    while ((link = weft_list_take(&todo))) {
        weft_req *req = weft_container(link, weft_req, link);
        bool is_copy = req->mode == WEFT_RUNG_COPY;
        int rc = is_copy ? pump_chunks(req, &n) : try_move(req);
        if (rc == WEFT_AGAIN)
            weft_list_append(&lane->pumps, link);
        else
            n++;
    }
    return n;
}

/* -- the receiver -- */

static void end_recv(weft_req *req, int rc)
{
    if (rc && !req->rc)
        req->rc = rc;
    if (--req->left)
        return;
    if (!req->rc)
        weft_ladder_learn(req->lane->ladder, req->mode, req->moved, weft_clock_ns() - req->clock);
    if (req->name)
        weft_lane_unname(req->lane, req);
    if (!req->rc && req->found.bytes > req->bytes)
        req->rc = weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu", req->found.source,
                            req->found.tag, (unsigned long long)req->found.bytes, (unsigned long long)req->bytes);
    if (req->found.bytes > req->bytes)
        req->found.bytes = req->bytes;
    weft_req_end(req, req->rc);
}

static void ask_for_data(weft_peer *peer, weft_req *req, uint32_t sender, uint64_t from, uint64_t to)
{
    weft_cts cts = {.addr = req->mode == WEFT_RUNG_HALVES ? (uint64_t)(uintptr_t)dense_start(req) : 0,
                    .from = from, .to = to, .name = req->name, .rung = req->mode};
    send_small(peer, WEFT_FRAME_CTS, sender, 0, &cts, sizeof cts);
}

/* The kernel or device refused: this pair copies from now on, and this message with it. */
static void fall_back(weft_peer *peer, weft_req *req)
{
    peer->no_move = true;
    req->mode = WEFT_RUNG_COPY;
    req->left = 1;
    ask_for_data(peer, req, req->partner, 0, req->moved);
}

/* Halves are told to the sender before we start on ours: both sides copy at one time. */
static void move_halves(weft_peer *peer, weft_req *req, const weft_rts *rts)
{
    uint64_t middle = weft_round_up(req->moved / 2, 4096);
    if (middle > req->moved)
        middle = req->moved;
    req->left = 2; /* our get, and the sender's FIN */
    ask_for_data(peer, req, rts->name, middle, req->moved);
    start_move(req, rts->addr, 0, middle);
}

void weft_rndv_accept(weft_peer *peer, weft_req *req, const weft_head *head, const weft_rts *rts)
{
    bool can_move = rts->addr && req->is_dense;
    req->found = (weft_found){.source = head->src, .tag = head->tag, .bytes = rts->bytes};
    req->moved = rts->bytes < req->bytes ? rts->bytes : req->bytes;
    req->peer = peer;
    req->partner = rts->name;
    req->left = 1;
    req->mode = WEFT_RUNG_COPY;
    req->clock = 0;
    req->arrived = 0;
    if (req->moved == 0) {
        send_small(peer, WEFT_FRAME_FIN, rts->name, 0, NULL, 0);
        end_recv(req, 0);
        return;
    }
    if (weft_lane_name(req->lane, req)) {
        send_small(peer, WEFT_FRAME_FIN, rts->name, WEFT_E_NOMEM, NULL, 0);
        weft_req_end(req, WEFT_E_NOMEM);
        return;
    }
    /* the pair's right to move is proven before a rung that needs it is promised to the sender */
    if (can_move && !peer->no_move && !peer->path->port->ops->can_move(peer->path->port, peer->path))
        peer->no_move = true;
    req->mode = (uint8_t)weft_ladder_choose(req->lane->ladder, peer, req->moved, can_move);
    req->clock = weft_clock_ns();
    req->lane->counters[WEFT_COUNT_RNDV_COPY + req->mode]++; /* it may be over, and gone, after what follows */
    if (req->mode == WEFT_RUNG_COPY)
        ask_for_data(peer, req, rts->name, 0, req->moved);
    else if (req->mode == WEFT_RUNG_GET)
        start_move(req, rts->addr, 0, req->moved);
    else
        move_halves(peer, req, rts);
}

void weft_rndv_data(weft_peer *peer, const weft_head *head, const void *body)
{
    weft_req *req = weft_lane_find(peer->lane, head->chan);
    uint64_t offset = (uint64_t)(uint32_t)head->src << 32 | (uint32_t)head->tag;
    if (!req)
        return;
    if (req->is_dense)
        memcpy((char *)dense_start(req) + offset, body, head->bytes);
    else
        weft_unpack(req->type, req->buf, req->count, offset, head->bytes, body);
    req->arrived += head->bytes;
    if (req->arrived == (req->mode == WEFT_RUNG_HALVES ? req->moved - req->span : req->moved))
        end_recv(req, 0);
}

void weft_rndv_refuse(weft_peer *peer, const weft_rts *rts)
{
    send_small(peer, WEFT_FRAME_FIN, rts->name, WEFT_E_COMM, NULL, 0);
}

/* -- both -- */

void weft_rndv_moved(weft_req *req, int rc)
{
    if (req->kind == WEFT_REQ_RECV && rc == WEFT_E_UNSUPPORTED && req->mode == WEFT_RUNG_GET) {
        fall_back(req->peer, req);
        return;
    }
    send_small(req->peer, WEFT_FRAME_FIN, req->partner, rc, NULL, 0);
    if (req->kind == WEFT_REQ_RECV)
        end_recv(req, rc);
    else
        end_send(req, rc);
}

void weft_rndv_fin(weft_peer *peer, const weft_head *head)
{
    weft_req *req = weft_lane_find(peer->lane, head->chan);
    if (!req)
        return;
    if (req->kind == WEFT_REQ_RECV)
        end_recv(req, head->tag);
    else
        end_send(req, head->tag);
}
