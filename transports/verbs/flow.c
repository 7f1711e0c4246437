/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: frames between two ports. Each takes a credit, which is a receive slot of the other side's; credits come back with any frame.
 *
 * Credits and the token. A side that has received much and has nothing to say gives credits back in a frame of its own. That frame needs
 * a receive slot too; were it an ordinary one, two sides could use up their last credits at one time and nobody could tell the other
 * that slots are free again. So each peer has one slot more, the token's, for a frame that gives at least one credit; the token comes back
 * with the next frame of the other side. Who has no token has given a credit, so the other can send, and its next frame brings
 * the token. A token is never spent on anything else, so this has no exception.
 *
 * How many credits. A peer that uses up all that it was lent was lent too little: its target doubles, as long as receives can be had.
 * When they cannot, idle peers are asked to give up what they hold beyond one.
 *
 * Invariants: every rail has as many receives posted as are lent over all peers, so nobody finds a queue empty. A numbered frame's slot is
 * kept until it has surely arrived: its work request is over (iWARP, where that says nothing: the peer, or a read behind it, says so).
 */
#include "transports/verbs/flow.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"

#define TARGET_MOST 64u
#define UNSIGNALLED_MOST 32u
#define HOLD_BYTES 1024u /* a longer frame takes longer to fill than a doorbell costs: nothing waits for it */
#define PATIENT_POLLS 32u /* for a reply that takes credits along */

typedef struct verbs_held { /* a frame that came ahead of others */
    weft_link link;
    uint32_t seq, bytes;
    _Alignas(8) uint8_t wire[];
} verbs_held;

/* The full number whose low half is `low`, near one that is known. */
static uint32_t expand(uint32_t near, uint16_t low)
{
    return near + (uint32_t)(int32_t)(int16_t)(uint16_t)(low - (uint16_t)near);
}

/* -- what peers are owed -- */

/* Credits are worth a frame of their own at once when the peer has little left; else after a while, as a reply may take them along. */
static bool is_urgent(const verbs_path *path)
{
    return path->lent <= path->target / 4 || path->port->polls - path->tell_since > PATIENT_POLLS;
}

void verbs_flow_tell(verbs_path *path)
{
    if (path->by_tell.next == &path->by_tell) {
        weft_list_append(&path->port->tells, &path->by_tell);
        path->tell_since = path->port->polls;
    }
}

/* -- out -- */

void verbs_flow_begin(verbs_path *path)
{
    weft_list_init(&path->sent);
    weft_list_init(&path->held);
    weft_list_init(&path->control);
    weft_list_init(&path->by_tell);
    weft_list_init(&path->ops);
    weft_list_init(&path->by_move);
}

void verbs_flow_stamp(verbs_path *path, verbs_slot *slot, enum verbs_kind kind, uint8_t flags)
{
    if (path->owes_token)
        flags |= VERBS_FLAG_TOKEN;
    path->owes_token = false;
    slot->wire->prefix = (verbs_prefix){.seq = (uint16_t)slot->seq, .ack = (uint16_t)(path->rx_seq - path->in_ring), .credits = (uint16_t)verbs_lend(path),
                                        .kind = (uint8_t)kind, .flags = flags};
}

/* Slots or completions are used up, maybe by requests that nobody asked to hear of: ask. */
static void press(verbs_port *port)
{
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        verbs_path *path = weft_container(link, verbs_path, by_port);
        if (path->state == VERBS_UP && path->home)
            verbs_link_sync(path->home);
    }
}

/* Of the last frame (docs/wire.md) the end must be heard: to ask for it later would ask a peer that may have gone by then. */
static bool wants_signal(const verbs_link *link, const verbs_slot *slot)
{
    uint32_t most = link->sq_room / 4 < UNSIGNALLED_MOST ? link->sq_room / 4 : UNSIGNALLED_MOST;
    bool is_last = slot->wire->prefix.kind == VERBS_KIND_PLAIN && slot->wire->head.kind == WEFT_FRAME_BYE;
    return is_last || link->unsignalled + 1 >= most || verbs_slots_are_scarce(link->path->port);
}

/* A frame whose post was refused has broken the link: it stands in its list, and is sent again or dropped after the break. */
void verbs_flow_post(verbs_path *path, verbs_slot *slot, bool must_signal)
{
    verbs_link *link = path->home;
    verbs_rail *rail = link->rail;
    struct ibv_sge sge = {(uintptr_t)slot->wire, slot->bytes, slot->slab->lkey[rail->index]};
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&slot->work, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    if (slot->bytes <= rail->max_inline)
        request.send_flags |= IBV_SEND_INLINE;
    if (must_signal || wants_signal(link, slot))
        request.send_flags |= IBV_SEND_SIGNALED;
    slot->work = (verbs_work){.kind = VERBS_WORK_SEND, .rail = rail->index, .link = link};
    slot->is_posted = true;
    verbs_post(link, &request, 1);
}

/* AGAIN: the bell is to ring when it may be tried again. Credits, connecting and breaks ring by what comes in; slots and queue room by
 * completions, which are asked for here. */
static int starve(verbs_path *path, bool is_for_room)
{
    path->is_starved = true;
    if (is_for_room)
        press(path->port);
    return WEFT_AGAIN;
}

/* A slot for a numbered frame, or NULL: try later. A ring's frame takes a cell, no credit, and a word behind it. */
static verbs_slot *take_slot(verbs_path *path, uint32_t bytes, bool by_ring)
{
    verbs_slot *slot = NULL;
    bool has_room;
    if (!verbs_flow_is_open(path) || !(path->credits || by_ring)) {
        starve(path, false);
        return NULL;
    }
    has_room = verbs_link_has_room(path->home, 1) && verbs_flow_has_number(path);
    slot = has_room ? verbs_slot_take(path->port, by_ring ? weft_round_up(bytes, 8) + 8 : bytes) : NULL;
    if (!slot) {
        starve(path, true);
        return NULL;
    }
    slot->bytes = bytes;
    slot->seq = ++path->tx_seq;
    return slot;
}

static void launch(verbs_path *path, verbs_slot *slot, enum verbs_kind kind, bool by_ring)
{
    path->credits -= !by_ring;
    path->is_starved = false;
    verbs_flow_stamp(path, slot, kind, 0);
    weft_list_append(&path->sent, &slot->link);
    if (by_ring)
        verbs_ring_launch(path, slot, wants_signal(path->home, slot));
    else
        verbs_flow_post(path, slot, false);
}

/* Not up: says why, or begins to be. */
static int not_open(verbs_path *path)
{
    if (path->state == VERBS_LOST)
        return weft_fail(WEFT_E_PEER, "rank %u is lost: %s", path->name.rank, path->last_error[0] ? path->last_error : "it does not answer");
    if (path->state == VERBS_NEW)
        verbs_conn_begin(path);
    return starve(path, false);
}

/* What was kept back for this frame to follow must not wait for it. */
static int try_later(verbs_path *path)
{
    verbs_post_flush(path->port);
    return WEFT_AGAIN;
}

int verbs_send(weft_port *port, weft_path *to, const weft_frame *frame)
{
    verbs_path *path = (verbs_path *)to;
    uint32_t bytes = frame->head.bytes;
    verbs_slot *slot;
    bool by_ring;
    if (weft_unlikely(bytes > port->caps.frame_max))
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", bytes, port->caps.frame_max);
    if (weft_unlikely(path->state != VERBS_UP))
        return not_open(path);
    by_ring = path->ring && verbs_ring_takes(path, (uint32_t)sizeof(verbs_wire) + bytes);
    slot = take_slot(path, (uint32_t)sizeof(verbs_wire) + bytes, by_ring);
    if (!slot)
        return try_later(path);
    slot->wire->head = frame->head;
    if (frame->fill)
        frame->fill(frame, slot->wire->body);
    else if (bytes)
        memcpy(slot->wire->body, frame->body, bytes);
    if (weft_unlikely(frame->more && bytes <= HOLD_BYTES)) {
        verbs_post_gather(path->port);
        launch(path, slot, VERBS_KIND_PLAIN, by_ring);
        verbs_post_hold(path->port);
    } else {
        launch(path, slot, VERBS_KIND_PLAIN, by_ring);
    }
    return 0;
}

int verbs_flow_notify(verbs_path *path, uint32_t value)
{
    verbs_slot *slot = take_slot(path, (uint32_t)sizeof(verbs_wire), false);
    if (!slot)
        return WEFT_AGAIN;
    slot->wire->head = (weft_head){.tag = (int32_t)value};
    launch(path, slot, VERBS_KIND_NOTIFY, false);
    return 0;
}

int verbs_flow_control(verbs_path *path, enum verbs_kind kind, const weft_head *head)
{
    bool by_token = kind == VERBS_KIND_CREDITS;
    verbs_link *link = path->home;
    verbs_slot *slot;
    if (path->state != VERBS_UP || !path->is_confirmed || !link || !link->qp || link->is_broken || path->rest == VERBS_AGREES)
        return WEFT_AGAIN;
    if (by_token ? !path->has_token || path->lent >= path->target : !path->credits || path->unsent)
        return WEFT_AGAIN;
    if (link->sq_used + 2 > link->sq_room || link->rail->cq_used + 2 > link->rail->cq_room)
        return WEFT_AGAIN;
    slot = verbs_slot_take(path->port, sizeof(verbs_wire));
    if (!slot)
        return WEFT_AGAIN;
    slot->bytes = by_token ? sizeof(verbs_prefix) : sizeof(verbs_wire);
    slot->seq = path->tx_seq - path->unsent;
    if (head)
        slot->wire->head = *head;
    else
        slot->wire->head = (weft_head){0};
    verbs_flow_stamp(path, slot, kind, by_token ? VERBS_FLAG_BY_TOKEN : 0);
    if (by_token && !slot->wire->prefix.credits) { /* none to be had now; a token that comes back may wait */
        path->owes_token = slot->wire->prefix.flags & VERBS_FLAG_TOKEN;
        verbs_slot_give(path->port, slot);
        return WEFT_AGAIN;
    }
    if (by_token)
        path->has_token = false;
    else
        path->credits--;
    path->port->counts[VERBS_COUNT_CONTROL]++;
    weft_list_append(&path->control, &slot->link);
    verbs_flow_post(path, slot, true);
    return 0;
}

/* -- what is over -- */

static bool has_arrived(const verbs_path *path, const verbs_slot *slot)
{
    if (!slot->is_posted || verbs_seq_diff(slot->seq, path->tx_done) > 0)
        return false;
    return !path->home || !path->home->rail->tells_early || verbs_seq_diff(slot->seq, path->tx_acked) <= 0;
}

static void free_arrived(verbs_path *path)
{
    for (weft_link *link; (link = weft_list_first(&path->sent)) != NULL;) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (!has_arrived(path, slot))
            break;
        if (verbs_seq_diff(slot->seq, path->tx_acked) > 0)
            path->tx_acked = slot->seq;
        weft_list_remove(link);
        verbs_flow_let_go(path, slot, true);
    }
}

void verbs_flow_done(verbs_path *path, uint32_t seq)
{
    if (verbs_seq_diff(seq, path->tx_done) > 0)
        path->tx_done = seq;
    free_arrived(path);
}

static void send_completed(const struct ibv_wc *wc)
{
    verbs_slot *slot = (verbs_slot *)(uintptr_t)wc->wr_id;
    verbs_path *path = slot->work.link->path;
    uint32_t seq = slot->seq;
    if (!verbs_kind_is_numbered(slot->wire->prefix.kind)) {
        weft_list_remove(&slot->link);
        verbs_slot_give(path->port, slot);
    }
    verbs_flow_done(path, seq);
}

/* -- in -- */

void verbs_flow_news(verbs_path *path, const verbs_prefix *prefix)
{
    uint32_t ack = expand(path->tx_acked, prefix->ack);
    path->credits += prefix->credits;
    if (prefix->flags & VERBS_FLAG_TOKEN)
        path->has_token = true;
    if (verbs_seq_diff(ack, path->tx_acked) > 0 && verbs_seq_diff(ack, path->tx_seq) <= 0) {
        path->tx_acked = ack;
        free_arrived(path);
    }
    ack = expand(path->far_rx, prefix->ack);
    if (verbs_seq_diff(ack, path->far_rx) > 0)
        path->far_rx = ack;
}

static void deliver(verbs_path *path, const verbs_wire *wire)
{
    weft_port *port = &path->port->port;
    path->rx_seq++;
    if (wire->prefix.kind == VERBS_KIND_NOTIFY)
        port->up->notified(port->owner, path->path.peer, (uint32_t)wire->head.tag);
    else if (wire->prefix.kind == VERBS_KIND_PLAIN)
        port->up->arrive(port->owner, path->path.peer, &wire->head, wire->body);
    if (++path->recent >= VERBS_RING_BUSY)
        verbs_ring_think(path);
}

/* A copy, so that its receive slot can be lent again. In order of numbers. */
static bool hold(verbs_path *path, const verbs_wire *wire, uint32_t bytes, uint32_t seq)
{
    verbs_held *held = malloc(sizeof *held + bytes);
    weft_link *at = path->held.prev;
    if (!held)
        return false;
    held->seq = seq;
    held->bytes = bytes;
    memcpy(held->wire, wire, bytes);
    while (at != &path->held && verbs_seq_diff(weft_container(at, verbs_held, link)->seq, seq) > 0)
        at = at->prev;
    held->link.prev = at;
    held->link.next = at->next;
    at->next->prev = &held->link;
    at->next = &held->link;
    return true;
}

void verbs_flow_drop_held(verbs_path *path)
{
    for (weft_link *link; (link = weft_list_take(&path->held)) != NULL;)
        free(weft_container(link, verbs_held, link));
}

static void deliver_held(verbs_path *path)
{
    for (weft_link *link; (link = weft_list_first(&path->held)) != NULL;) {
        verbs_held *held = weft_container(link, verbs_held, link);
        if (held->seq != path->rx_seq + 1)
            break;
        weft_list_remove(link);
        deliver(path, (const verbs_wire *)held->wire);
        free(held);
    }
}

bool verbs_flow_take(verbs_path *path, const verbs_wire *wire, uint32_t bytes)
{
    uint32_t seq = expand(path->rx_seq, wire->prefix.seq);
    int32_t ahead = verbs_seq_diff(seq, path->rx_seq);
    if (wire->head.bytes != bytes - sizeof *wire || ahead > 2 * VERBS_IN_FLIGHT_MOST)
        return false;
    if (ahead > 1) { /* what comes first stands in a ring, most likely */
        verbs_ring_catch_up(path);
        ahead = verbs_seq_diff(seq, path->rx_seq);
    }
    if (ahead <= 0) /* seen before */
        return true;
    if (ahead > 1) { /* its sender may know by now that it arrived, and keep no copy: without one of ours it is gone */
        if (!hold(path, wire, bytes, seq)) {
            path->is_garbled = true;
            verbs_conn_doom(path, "no memory to keep a frame that came ahead of others");
        }
        return true;
    }
    deliver(path, wire);
    deliver_held(path);
    return true;
}

/* A write with immediate data came by the queue pair of the peer's frames. All numbered frames before it there have come, too, or stand
 * in the ring: that a write's immediate data are told says that all writes before it are visible. So its number is the next. What was
 * kept from being read leaves no certain number: the write is not counted, and the next epoch does it again. */
static void notice_came(verbs_path *path, uint32_t value)
{
    verbs_wire wire = {.prefix = {.kind = VERBS_KIND_NOTIFY}, .head = {.tag = (int32_t)value}};
    verbs_ring_catch_up(path);
    if (path->is_garbled)
        return;
    deliver(path, &wire);
    deliver_held(path);
}

static void give_up_credits(verbs_path *path)
{
    uint32_t many = path->credits > 2 ? path->credits - 2 : 0; /* one is for the frame that says so */
    weft_head head = {.tag = (int32_t)many};
    if (!many)
        return;
    path->credits -= many;
    if (verbs_flow_control(path, VERBS_KIND_RETURN, &head))
        path->credits += many;
}

/* A frame that has no number; also the ring's. false: unreadable. */
static bool control_came(verbs_path *path, const verbs_wire *wire, uint32_t bytes)
{
    if (wire->prefix.kind == VERBS_KIND_CREDITS)
        return true;
    if (bytes < sizeof *wire)
        return false;
    switch (wire->prefix.kind) {
    case VERBS_KIND_RECALL:
        give_up_credits(path);
        return true;
    case VERBS_KIND_RETURN:
        verbs_lend_back(path, (uint32_t)wire->head.tag);
        return true;
    case VERBS_KIND_RING_OPEN:
    case VERBS_KIND_RING_SHUT:
    case VERBS_KIND_RING_DONE:
        return verbs_ring_news(path, wire->prefix.kind, &wire->head);
    case VERBS_KIND_REST:
    case VERBS_KIND_RESTED:
        verbs_rest_heard(path, wire->prefix.kind);
        return true;
    default:
        return false;
    }
}

/* One that has used up all that it was lent was lent too little. */
static void credit_used(verbs_path *path)
{
    uint32_t before = path->lent;
    verbs_lend_back(path, 1);
    if (before && !path->lent && path->target < (path->port->is_small ? 2 : TARGET_MOST))
        path->target *= 2;
}

static bool came(verbs_path *path, const verbs_wire *wire, uint32_t bytes)
{
    if (bytes < sizeof wire->prefix)
        return false;
    verbs_flow_news(path, &wire->prefix);
    if (wire->prefix.flags & VERBS_FLAG_BY_TOKEN)
        path->owes_token = true;
    else
        credit_used(path);
    if (!verbs_kind_is_numbered(wire->prefix.kind))
        return control_came(path, wire, bytes);
    return bytes >= sizeof *wire && verbs_flow_take(path, wire, bytes);
}

static void receive_completed(verbs_rail *rail, const struct ibv_wc *wc)
{
    verbs_slot *slot = (verbs_slot *)(uintptr_t)wc->wr_id;
    verbs_link *link = verbs_link_of(rail, wc->qp_num);
    rail->receives--;
    if (link && wc->status == IBV_WC_SUCCESS) {
        verbs_path *path = link->path;
        if (!path->is_confirmed)
            verbs_conn_heard(path);
        if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
            credit_used(path);
            notice_came(path, ntohl(wc->imm_data));
        } else if (!came(path, slot->wire, wc->byte_len)) {
            path->is_garbled = true;
            verbs_conn_break(link, NULL, "a frame came that cannot be read");
        }
        if (verbs_flow_owes_much(path))
            verbs_flow_tell(path);
    } else if (link) {
        verbs_conn_break(link, wc, NULL);
    }
    verbs_receive_give(rail, slot);
}

static void sync_completed(verbs_link *link)
{
    verbs_path *path = link->path;
    link->is_syncing = false;
    path->proofs += link->sync_proves;
    if (link->sync_proves && verbs_seq_diff(link->sync_seq, path->tx_acked) > 0)
        path->tx_acked = link->sync_seq;
    verbs_flow_done(path, link->sync_seq);
}

void verbs_flow_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    const verbs_work *work = (const verbs_work *)(uintptr_t)wc->wr_id;
    if (work->kind == VERBS_WORK_RECV) {
        receive_completed(rail, wc);
    } else if (work->kind == VERBS_WORK_SYNC) {
        sync_completed(work->link);
    } else {
        send_completed(wc);
    }
}

/* -- turns -- */

/* What a path waits to say: frames again, the ring's answers, credits. True: it still waits. */
static bool tell(verbs_path *path, bool in_haste, int *n)
{
    bool waits;
    if (path->unsent)
        *n += verbs_flow_resend(path);
    waits = verbs_ring_chores(path) || path->unsent;
    if (!verbs_flow_owes_much(path))
        return waits;
    if (!in_haste && !is_urgent(path))
        return true;
    return verbs_flow_control(path, VERBS_KIND_CREDITS, NULL) || waits; /* no token, or no room: it comes back, or a frame of ours goes */
}

static int turn(verbs_port *port, bool in_haste)
{
    weft_link again;
    int n = 0;
    weft_list_init(&again);
    weft_list_splice(&again, &port->tells);
    for (weft_link *link; (link = weft_list_take(&again)) != NULL;) {
        verbs_path *path = weft_container(link, verbs_path, by_tell);
        uint32_t since = path->tell_since;
        if (tell(path, in_haste, &n)) {
            verbs_flow_tell(path);
            path->tell_since = since;
        }
    }
    verbs_receives_post(port);
    return n;
}

int verbs_flow_turn(verbs_port *port) { return turn(port, false); }
void verbs_flow_hush(verbs_port *port) { turn(port, true); }

/* Asked again and again by who is leaving: so it sees to it that it will be told. */
bool verbs_flow_is_quiet(verbs_path *path)
{
    if (path->state == VERBS_UP && path->home)
        verbs_link_sync(path->home);
    return weft_list_is_empty(&path->sent) && weft_list_is_empty(&path->control);
}

/* -- life -- */

int verbs_flow_open(verbs_port *port)
{
    weft_list_init(&port->tells);
    for (uint8_t i = 0; i < port->rail_count; i++)
        weft_list_init(&port->rails[i].emptied);
    return verbs_slots_open(port);
}

void verbs_flow_close(verbs_port *port)
{
    verbs_slots_close(port);
}
