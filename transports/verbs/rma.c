/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: get, put, amo and flush. A move is cut into pieces that are spread over the path's links by weight, so many bytes and reads
 * under way at one time and no more; the last piece that ends ends the move. After a break the pieces that had not ended are posted again:
 * both sides' memory still belongs to the move. An atomic is never repeated: what became of it is unknown, and it says so.
 *
 * A notification goes with the put's last piece when all its pieces that are under way stand on the link of our frames: as immediate data,
 * or, where these cannot be (iWARP, or the peer is owed the token), as a frame right behind it. Then none of them can be seen after it. It
 * is counted as a frame (flow.c), so a break neither loses nor repeats it, and one that was delivered ends its put: the pieces are
 * not posted again into memory that the peer may use already. Else (several links, no credit) it is a numbered frame, sent when all
 * pieces have been acknowledged.
 * Invariant: a move is not told as ended, well or badly, while a piece of it is in a queue.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/op.h"

#define LINK_BYTES (8u << 20)  /* under way on one link */
#define PORT_BYTES (64u << 20) /* and on all */
#define SHORT_BYTES (64u << 10) /* shorter moves are not spread: the nearest link alone is soonest done */
#define BLOCKED_MAX 16u       /* so many ops without room, and the rest of the path's are not tried */
#define PROOFS 4u              /* that a connection carries something, before one that may end it is tried */
#define PIECE_TRIES 8u         /* errors of its own, or breaks while it was alone, after which a piece is not the victim but the cause */

static void wait_turn(verbs_ep *ep)
{
    if (ep->by_move.next == &ep->by_move)
        weft_list_append(&ep->iface->moves->waiting, &ep->by_move);
}

static bool is_all_posted(const verbs_op *op)
{
    return op->next == op->bytes && weft_list_is_empty(&op->redo);
}

/* Nothing is left to post and nothing under way; a notification may still be. */
static bool is_over(const verbs_op *op)
{
    return weft_list_is_empty(&op->in_flight) && (op->rc || is_all_posted(op));
}

/* -- posting -- */

static bool may_carry(const verbs_op *op, const verbs_rc_qp *link)
{
    if (!link->qp || link->is_broken || !verbs_rkey(&op->rkey, link->far_rail))
        return false;
    if (op->kind == OP_AMO)
        return link->far_rail == 0; /* one device at the target makes atomics atomic with each other */
    if (!op->lkeys[link->rail->index])
        return false;
    return link == op->ep->home || op->bytes > SHORT_BYTES;
}

/* Takes one of the reads that may be under way: also a put whose end a read behind it must tell. */
static bool is_read(const verbs_op *op, const verbs_rc_qp *link) { return op->kind != OP_PUT || link->rail->tells_early; }

static bool has_room(const verbs_op *op, const verbs_rc_qp *link)
{
    return link->sq_used < link->sq_room * 3 / 4 && verbs_rc_qp_has_room(link, 2) && (!is_read(op, link) || link->reads_used < link->reads_room) &&
           link->in_flight_bytes < LINK_BYTES && op->ep->iface->moves->in_flight_bytes < PORT_BYTES;
}

/* The target's first rail may be down for a while: an atomic waits for it as long as for a peer. */
static bool is_too_late(verbs_op *op)
{
    verbs_iface *iface = op->ep->iface;
    uint64_t now = iface->now_ns();
    if (!op->late_ns)
        op->late_ns = now;
    return now - op->late_ns > (uint64_t)weft_knob.peer_timeout_s * 1000000000u;
}

/* One at a time, and not before the connection has shown that it carries other things. */
static bool may_try_suspects(const verbs_ep *ep)
{
    if (ep->pieces || !ep->home || ep->proofs >= PROOFS || !verbs_read_fence_needed(ep->home))
        return !ep->pieces;
    verbs_rc_qp_prove(ep->home);
    return false;
}

/* The link with the least under way for its weight. NULL: none has room; *never: none ever will. */
static verbs_rc_qp *choose(verbs_op *op, bool *never)
{
    verbs_ep *ep = op->ep;
    verbs_rc_qp *best = NULL, *home = ep->home;
    bool is_home_sick = !home || !may_carry(op, home), must_wait = ep->suspects && !may_try_suspects(ep);
    *never = home && home->qp && !home->is_broken;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_rc_qp *link = &ep->links[i];
        uint64_t weight = link->weight ? link->weight : 1;
        if (!may_carry(op, link) && !(is_home_sick && op->kind != OP_AMO && link->qp && !link->is_broken && op->lkeys[link->rail->index] &&
                                      verbs_rkey(&op->rkey, link->far_rail)))
            continue;
        *never = false;
        if (!must_wait && has_room(op, link) && (!best || link->in_flight_bytes * (best->weight ? best->weight : 1) < best->in_flight_bytes * weight))
            best = link;
    }
    if (*never && op->kind == OP_AMO)
        *never = is_too_late(op);
    return best;
}

static void fill_atomic(verbs_op *op, struct ibv_send_wr *request, uint32_t rkey)
{
    const weft_atomic *atomic = &op->atomic;
    uint64_t have = op->expected, want = 0;
    request->wr.atomic.remote_addr = op->remote;
    request->wr.atomic.rkey = rkey;
    request->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    switch (atomic->op) {
    case WEFT_AMO_ADD:
        request->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        request->wr.atomic.compare_add = atomic->operand;
        return;
    case WEFT_AMO_CAS:
        request->wr.atomic.compare_add = atomic->compare;
        request->wr.atomic.swap = atomic->operand;
        return;
    case WEFT_AMO_SWAP: want = atomic->operand; break;
    case WEFT_AMO_AND: want = have & atomic->operand; break;
    case WEFT_AMO_OR: want = have | atomic->operand; break;
    case WEFT_AMO_XOR: want = have ^ atomic->operand; break;
    }
    request->wr.atomic.compare_add = have;
    request->wr.atomic.swap = want;
}

/* Does this, the last piece, come behind all others of its op, on the queue pair that numbered frames go by? */
static bool is_behind_all(const verbs_op *op, const verbs_rc_qp *link)
{
    if (link != op->ep->home || !is_all_posted(op))
        return false;
    for (const weft_list_link *at = op->in_flight.next; at != &op->in_flight; at = at->next)
        if (weft_container(at, verbs_piece, link)->work.link != link)
            return false;
    return true;
}

/* The frame that is to follow the piece, or NULL: the piece says it itself, or it goes later, or there is none. */
static verbs_slot *notify_along(verbs_op *op, const verbs_rc_qp *link, struct ibv_send_wr *request)
{
    bool may = op->kind == OP_PUT && op->notify && !op->rc && is_behind_all(op, link);
    verbs_slot *notice = may ? verbs_flow_notice(op->ep, op) : NULL;
    if (notice && notice->wire->prefix.kind == VERBS_KIND_NOP) {
        request->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request->imm_data = htonl(op->notify);
        notice = NULL;
    }
    return notice;
}

/* The piece is in op->in flight before it is posted; a post that fails breaks the link, and the break brings the piece back. */
static int post_piece(verbs_op *op, verbs_piece *piece, verbs_rc_qp *link)
{
    uint8_t rail = link->rail->index;
    uint32_t rkey = verbs_rkey(&op->rkey, link->far_rail);
    bool is_amo = op->kind == OP_AMO;
    struct verbs_rma_ops *moves = op->ep->iface->moves;
    struct ibv_sge sge = {(uintptr_t)(is_amo ? (uint8_t *)op->cell : op->local + piece->at), piece->bytes,
                          is_amo ? moves->cells->lkey[rail] : op->lkeys[rail]};
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&piece->work, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
                                  .opcode = op->kind == OP_GET ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE};
    if (is_amo) {
        fill_atomic(op, &request, rkey);
    } else {
        request.wr.rdma.remote_addr = op->remote + piece->at;
        request.wr.rdma.rkey = rkey;
    }
    verbs_slot *notice = notify_along(op, link, &request);
    bool needs_proof = op->kind == OP_PUT && verbs_read_fence_needed(link);
    struct ibv_sge word;
    struct ibv_send_wr proof;
    if (op->kind == OP_PUT && piece->bytes <= link->rail->max_inline)
        request.send_flags |= IBV_SEND_INLINE;
    if (needs_proof) {
        verbs_read_fence_fill(link, &piece->work, &word, &proof);
        request.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
        request.next = &proof;
    }
    piece->work = (verbs_work){.kind = VERBS_WORK_MOVE, .rail = rail, .link = link};
    weft_list_append(&op->in_flight, &piece->link);
    link->in_flight_bytes += piece->bytes;
    link->reads_used += is_read(op, link);
    moves->in_flight_bytes += piece->bytes;
    op->ep->pieces++;
    if (verbs_post(link, &request, 1 + needs_proof))
        return WEFT_AGAIN;
    if (notice)
        verbs_flow_notice_frame(op->ep, notice);
    return 0;
}

/* Posts what is left of an op. False: no room now. */
static bool post_op(verbs_op *op)
{
    struct verbs_rma_ops *moves = op->ep->iface->moves;
    while (!is_all_posted(op)) {
        if (op->key_epoch && op->key_epoch != op->ep->epoch) {
            op->rc = WEFT_E_STALE;
            return true;
        }
        weft_list_link *redo = weft_list_first(&op->redo);
        bool never;
        verbs_rc_qp *link = choose(op, &never);
        verbs_piece *piece;
        if (never) { /* a key or memory that none of the links knows */
            op->rc = op->kind == OP_AMO ? WEFT_E_UNSUPPORTED : WEFT_E_KEY;
            op->bad_status = IBV_WC_REM_ACCESS_ERR;
            return true;
        }
        piece = !link ? NULL : redo ? weft_container(redo, verbs_piece, link) : verbs_piece_take(moves);
        if (!piece)
            return false;
        if (redo) {
            weft_list_remove(redo);
            op->ep->iface->counts[VERBS_COUNT_REPOSTED_MOVES]++;
        } else {
            uint64_t left = op->bytes - op->next;
            *piece = (verbs_piece){.op = op, .at = op->next, .bytes = left < moves->piece_bytes ? (uint32_t)left : moves->piece_bytes};
            op->next += piece->bytes;
        }
        if (post_piece(op, piece, link))
            return false;
    }
    return true;
}

static bool is_ready(const verbs_ep *ep)
{
    return ep->state == VERBS_UP && ep->is_confirmed && ep->rest < VERBS_EVICT_REQUESTED;
}

enum step { STEP_DONE, STEP_LATER, STEP_CHANGED /* ops have ended: look at the list anew */ };

static enum step step(verbs_op *op)
{
    if (op->kind == OP_FLUSH)
        return STEP_DONE;
    if (!op->rc && !is_all_posted(op) && !post_op(op))
        return STEP_LATER;
    if (!is_over(op))
        return STEP_DONE;
    if (!op->rc && op->notify && !op->is_noticed && verbs_flow_notify(op->ep, op->notify))
        return STEP_LATER;
    verbs_op_finish(op);
    return STEP_CHANGED;
}

/* Posts all that may be posted on a path. True when nothing is left waiting. */
static bool pump(verbs_ep *ep)
{
    weft_list_link *link = ep->ops.next;
    uint32_t blocked = 0;
    verbs_post_gather(ep->iface);
    while (is_ready(ep) && link != &ep->ops && blocked < BLOCKED_MAX) {
        enum step what = step(weft_container(link, verbs_op, link));
        blocked += what == STEP_LATER;
        if (what == STEP_CHANGED)
            blocked = 0;
        link = what == STEP_CHANGED ? ep->ops.next : link->next;
    }
    verbs_post_go(ep->iface);
    return !blocked && is_ready(ep);
}

int verbs_rma_progress(verbs_iface *iface)
{
    weft_list_link now;
    if (weft_list_is_empty(&iface->moves->waiting))
        return 0;
    weft_list_init(&now);
    weft_list_splice(&now, &iface->moves->waiting);
    for (weft_list_link *link; (link = weft_list_take(&now)) != NULL;) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_move);
        if (!pump(ep))
            wait_turn(ep);
    }
    return 0;
}

/* -- what has ended -- */

/* The fault of this very request, and not of the connection? */
static bool is_own_fault(const verbs_piece *piece, enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
        return true;
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return false;
    default:
        return piece->tries >= PIECE_TRIES;
    }
}

/* CAS until nobody came between: true when the value is ours. */
static bool atomic_is_done(verbs_op *op)
{
    uint64_t was = *op->cell;
    if (op->atomic.op != WEFT_AMO_ADD && op->atomic.op != WEFT_AMO_CAS && was != op->expected) {
        op->expected = was;
        return false;
    }
    if (op->atomic.before)
        *op->atomic.before = was;
    return true;
}

void verbs_rma_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    verbs_piece *piece = (verbs_piece *)(uintptr_t)wc->wr_id;
    struct verbs_rma_ops *moves = rail->iface->moves;
    verbs_rc_qp *link = piece->work.link;
    verbs_op *op = piece->op;
    if (wc->status != IBV_WC_SUCCESS) { /* the break that follows brings it back */
        if (wc->status != IBV_WC_WR_FLUSH_ERR && wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_RNR_RETRY_EXC_ERR)
            piece->tries++;
        if (is_own_fault(piece, wc->status) && !op->rc) {
            op->rc = piece->tries >= PIECE_TRIES ? WEFT_E_OTHER : WEFT_E_KEY;
            op->bad_status = (uint8_t)wc->status;
            op->vendor = wc->vendor_err;
        }
        return;
    }
    link->in_flight_bytes -= piece->bytes;
    link->reads_used -= is_read(op, link);
    moves->in_flight_bytes -= piece->bytes;
    op->ep->alive++;
    op->ep->pieces--;
    op->ep->suspects -= op->ep->suspects > 0;
    weft_list_remove(&piece->link);
    if (op->kind == OP_AMO && !atomic_is_done(op)) {
        weft_list_append(&op->redo, &piece->link);
        wait_turn(op->ep);
        return;
    }
    weft_list_append(&moves->free_pieces, &piece->link);
    if (!is_over(op))
        return;
    if (op->notice) {
        op->is_noticed = true;
        verbs_flow_notice_over(op->notice);
    }
    if (!op->rc && op->notify && !op->is_noticed)
        wait_turn(op->ep);
    else
        verbs_op_finish(op);
}

/* -- breaks -- */

/* Who asks an iWARP device for what he may not sees his connection end, and is not told why. So after a break all that was under way is
 * tried again piece by piece, and one at which the connection ends each time that it goes alone has been refused. */
static void find_cause(verbs_ep *ep)
{
    bool is_alone = ep->pieces == 1;
    if (!ep->pieces || !ep->links[0].rail->tells_early)
        return;
    ep->suspects = ep->pieces;
    for (weft_list_link *link = ep->ops.next; is_alone && link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        weft_list_link *only = weft_list_first(&op->in_flight);
        if (!only || ++weft_container(only, verbs_piece, link)->tries < PIECE_TRIES || op->rc)
            continue;
        op->rc = WEFT_E_KEY;
        op->bad_status = IBV_WC_REM_ACCESS_ERR;
        ep->suspects = 0;
    }
}

void verbs_rma_down(verbs_ep *ep)
{
    struct verbs_rma_ops *moves = ep->iface->moves;
    weft_list_link *link, *next;
    find_cause(ep);
    ep->pieces = 0;
    for (link = ep->ops.next; link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        for (weft_list_link *at = op->in_flight.next; at != &op->in_flight; at = at->next)
            moves->in_flight_bytes -= weft_container(at, verbs_piece, link)->bytes;
        if (op->kind == OP_AMO && !op->rc && !weft_list_is_empty(&op->in_flight))
            op->rc = WEFT_E_OTHER;
        weft_list_splice(&op->redo, &op->in_flight);
    }
    do { /* those that ended badly; whoever is told may post more */
        next = NULL;
        for (link = ep->ops.next; link != &ep->ops && !next; link = link->next)
            if (weft_container(link, verbs_op, link)->rc)
                next = link;
        if (next)
            verbs_op_finish(weft_container(next, verbs_op, link));
    } while (next);
    if (ep->ops_open)
        wait_turn(ep);
}

/* A notification that was delivered stood behind all pieces. */
static verbs_op *find_noticed(const verbs_ep *ep)
{
    for (weft_list_link *link = ep->ops.next; link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        if (op->is_noticed)
            return op;
    }
    return NULL;
}

void verbs_rma_up(verbs_ep *ep)
{
    for (verbs_op *op; (op = find_noticed(ep)) != NULL;) {
        ep->alive++;
        verbs_op_finish(op);
    }
    if (ep->ops_open)
        wait_turn(ep);
}

static void stop_waiting(verbs_ep *ep)
{
    if (ep->by_move.next != &ep->by_move)
        weft_list_remove(&ep->by_move);
}

void verbs_rma_give_up(verbs_ep *ep, int rc)
{
    weft_list_link *link;
    verbs_rma_down(ep);
    stop_waiting(ep);
    while ((link = weft_list_first(&ep->ops)) != NULL) {
        verbs_op *op = weft_container(link, verbs_op, link);
        op->rc = rc;
        verbs_op_finish_one(op);
    }
}

void verbs_rma_drop(verbs_ep *ep)
{
    weft_list_link *link;
    while ((link = weft_list_first(&ep->ops)) != NULL)
        verbs_op_forget(weft_container(link, verbs_op, link));
    stop_waiting(ep);
}

/* -- the table's calls -- */

bool verbs_can_rma(weft_iface *iface, weft_ep *to)
{
    verbs_ep *ep = (verbs_ep *)to;
    return iface->caps.put && ep->state != VERBS_LOST;
}

/* Starts the op, or queues it until the path is up. */
static int start(verbs_ep *ep)
{
    if (ep->state == VERBS_NEW)
        verbs_conn_begin(ep);
    if (ep->by_move.next == &ep->by_move && !pump(ep))
        wait_turn(ep);
    return 0;
}

static int check_key(const verbs_ep *ep, const weft_rkey *rkey, uint64_t remote, uint64_t bytes)
{
    uint32_t epoch = rkey ? verbs_key_epoch(ep, rkey) : 0;
    if (!rkey || !rkey->length || rkey->length % 4 || (ep->far.rails && !epoch && rkey->length != 4 * ep->far.rails))
        return weft_fail(WEFT_E_KEY, "this is no key of rank %u's: it has %u bytes", ep->proc_id.rank, rkey ? rkey->length : 0);
    if (remote + bytes < remote)
        return weft_fail(WEFT_E_KEY, "%llu bytes at 0x%llx wrap around the addresses of rank %u", (unsigned long long)bytes,
                         (unsigned long long)remote, ep->proc_id.rank);
    if (epoch && (epoch != ep->epoch || ep->state != VERBS_UP))
        return weft_fail(WEFT_E_STALE, "what rank %u lent was lent by a connection that is no more", ep->proc_id.rank);
    return 0;
}

static int check_local(const weft_rma *rma)
{
    const weft_mr *mr = rma->mr;
    if (!mr || !mr->device)
        return weft_fail(WEFT_E_KEY, "local memory must be mapped before it can be moved");
    if ((uint8_t *)rma->local < (uint8_t *)mr->addr || (uint8_t *)rma->local + rma->bytes > (uint8_t *)mr->addr + mr->bytes)
        return weft_fail(WEFT_E_KEY, "the local memory of a move of %llu bytes leaves its region", (unsigned long long)rma->bytes);
    return 0;
}

static int move_begin(verbs_ep *ep, const weft_rma *rma, enum op_kind kind)
{
    verbs_op *op;
    int rc = check_key(ep, rma->rkey, rma->remote, rma->bytes);
    if (!rc)
        rc = check_local(rma);
    if (!rc)
        rc = verbs_op_begin(ep, kind, rma->done, &op);
    if (rc)
        return rc;
    op->local = rma->local;
    op->remote = rma->remote;
    op->bytes = rma->bytes;
    op->rkey = *rma->rkey;
    op->key_epoch = verbs_key_epoch(ep, rma->rkey);
    op->notify = rma->notify;
    for (uint8_t i = 0; i < ep->iface->rail_count; i++)
        op->lkeys[i] = verbs_lkey(rma->mr, i);
    return start(ep);
}

int verbs_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    if (!iface->caps.get)
        return weft_fail(WEFT_E_UNSUPPORTED, "this device does not read remote memory, or too little memory may be locked");
    return move_begin((verbs_ep *)ep, rma, OP_GET);
}

int verbs_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    if (!iface->caps.put)
        return weft_fail(WEFT_E_UNSUPPORTED, "too little memory may be locked to move it without copies");
    return move_begin((verbs_ep *)ep, rma, OP_PUT);
}

int verbs_amo(weft_iface *iface, weft_ep *to, const weft_atomic *atomic)
{
    verbs_ep *ep = (verbs_ep *)to;
    uint64_t *cell = NULL;
    verbs_op *op;
    int rc;
    if (iface->caps.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "this device has no atomics");
    if (atomic->remote % 8)
        return weft_fail(WEFT_E_KEY, "an atomic's address, 0x%llx, is no multiple of 8", (unsigned long long)atomic->remote);
    rc = check_key(ep, atomic->rkey, atomic->remote, 8);
    if (rc)
        return rc;
    cell = verbs_cell_take(ep->iface);
    if (!cell)
        return ep->iface->moves->cells ? WEFT_AGAIN : weft_fail(WEFT_E_NOSPACE, "no memory can be pinned for atomics");
    rc = verbs_op_begin(ep, OP_AMO, atomic->done, &op);
    if (rc) {
        verbs_cell_give(ep->iface, cell);
        return rc;
    }
    op->cell = cell;
    op->atomic = *atomic;
    op->remote = atomic->remote;
    op->bytes = sizeof *cell;
    op->rkey = *atomic->rkey;
    op->key_epoch = verbs_key_epoch(ep, atomic->rkey);
    return start(ep);
}

int verbs_flush(weft_iface *iface, weft_ep *to, bool remotely, void *done)
{
    verbs_ep *ep = (verbs_ep *)to;
    verbs_op *op;
    int rc;
    (void)remotely; /* a put has ended when it is visible there */
    if (ep->state == VERBS_LOST)
        return weft_fail(WEFT_E_PEER, "rank %u is lost", ep->proc_id.rank);
    if (!ep->ops_open) {
        if (done)
            iface->callbacks->done(iface->owner, done, 0);
        return 0;
    }
    rc = verbs_op_begin(ep, OP_FLUSH, done, &op);
    return rc;
}
