/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: get, put, amo, flush. An op is cut into fragments, spread over the ep's QPs by weight; bytes and reads in flight are bounded. The
 * last completed fragment ends the op. In the next epoch unfinished fragments are posted again: both sides' memory still belongs to the
 * op. An atomic is never repeated: it fails, its result is unknown.
 * Notifications (docs/verbs.md, "A put that notifies"): with the put's last fragment if all fragments in flight are on the home QP, as
 * immediate data, or (iWARP, or credits or the token are due) as a frame right behind it; else (several QPs, no credit) as a numbered
 * frame when all fragments have completed. A delivered notification ends its put: its fragments must not be written again into memory
 * that the peer may use. One that comes after all earlier puts goes with its fragment if these are all on the home QP, and ends them too;
 * else as a frame when they have ended.
 * Invariant: an op is not reported as finished, with or without error, while a fragment of it is posted.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/rma_op.h"

#define QP_BYTES (8u << 20)  /* in flight on one QP */
#define IFACE_BYTES (64u << 20) /* in flight on all QPs of an iface */
#define SHORT_BYTES (64u << 10) /* shorter ops use the home QP only: lowest latency */
#define BLOCKED_MAX 16u       /* after this many ops without queue entries the ep's other ops are not tried */
#define FENCES 4u              /* completed read fences before a fragment is tried that may end the connection */
#define FRAG_TRIES 8u         /* own errors, or ends of the connection while alone in flight, after which a fragment is the cause */

static void wait_turn(verbs_ep *ep)
{
    if (ep->by_rma.next == &ep->by_rma)
        weft_list_append(&ep->iface->rma->waiting, &ep->by_rma);
}

/* Nothing is left to post and nothing in flight; a notification may be. */
static bool is_over(const verbs_op *op)
{
    return weft_list_is_empty(&op->in_flight) && (op->rc || verbs_op_is_posted(op));
}

/* -- posting -- */

static bool may_carry(const verbs_op *op, const verbs_rc_qp *qp)
{
    if (!qp->ibv_qp || qp->is_broken || !verbs_rkey(&op->rkey, qp->remote_rail))
        return false;
    if (op->kind == OP_AMO)
        return qp->remote_rail == 0; /* atomics are atomic with each other on one device of the target only */
    if (!op->lkeys[qp->rail->index])
        return false;
    return qp == op->ep->home || op->bytes > SHORT_BYTES;
}

/* True if it counts in reads_used: also a put with a read fence. */
static bool is_read(const verbs_op *op, const verbs_rc_qp *qp) { return op->kind != OP_PUT || qp->rail->completes_early; }

static bool has_room(const verbs_op *op, const verbs_rc_qp *qp)
{
    return qp->sq_used < qp->sq_capacity * 3 / 4 && verbs_rc_qp_has_room(qp, 2) &&
           (!is_read(op, qp) || qp->reads_used < qp->reads_capacity) &&
           qp->in_flight_bytes < QP_BYTES && op->ep->iface->rma->in_flight_bytes < IFACE_BYTES;
}

/* The target's first rail may be down for a while: an atomic waits for it for the peer timeout. */
static bool is_too_late(verbs_op *op)
{
    verbs_iface *iface = op->ep->iface;
    uint64_t now = iface->now_ns();
    if (!op->late_ns)
        op->late_ns = now;
    return now - op->late_ns > (uint64_t)weft_knob.peer_timeout_s * 1000000000u;
}

/* Suspects are posted one at a time, and after the connection has carried FENCES read fences. */
static bool may_try_suspects(const verbs_ep *ep)
{
    if (ep->frags || !ep->home || ep->fences_done >= FENCES || !verbs_read_fence_needed(ep->home))
        return !ep->frags;
    verbs_rc_qp_fence(ep->home);
    return false;
}

/* The QP with the least bytes in flight for its weight. NULL: none has queue entries; *never: none will ever carry it. */
static verbs_rc_qp *choose(verbs_op *op, bool *never)
{
    verbs_ep *ep = op->ep;
    verbs_rc_qp *best = NULL, *home = ep->home;
    bool is_home_sick = !home || !may_carry(op, home), must_wait = ep->suspects && !may_try_suspects(ep);
    *never = home && home->ibv_qp && !home->is_broken;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[i];
        uint64_t weight = qp->weight ? qp->weight : 1;
        if (!may_carry(op, qp) && !(is_home_sick && op->kind != OP_AMO && qp->ibv_qp && !qp->is_broken && op->lkeys[qp->rail->index] &&
                                      verbs_rkey(&op->rkey, qp->remote_rail)))
            continue;
        *never = false;
        if (!must_wait && has_room(op, qp) &&
            (!best || qp->in_flight_bytes * (best->weight ? best->weight : 1) < best->in_flight_bytes * weight))
            best = qp;
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

/* True if this last fragment is behind all others of its op, on the QP of numbered frames. */
static bool is_behind_all(const verbs_op *op, const verbs_rc_qp *qp)
{
    if (qp != op->ep->home || !verbs_op_is_posted(op))
        return false;
    for (const weft_list_link *at = op->in_flight.next; at != &op->in_flight; at = at->next)
        if (weft_container(at, verbs_frag, link)->work.qp != qp)
            return false;
    return true;
}

/* The notification frame that must follow the fragment. NULL: the fragment carries it, or it is sent later, or there is none. */
static verbs_slot *notify_along(verbs_op *op, const verbs_rc_qp *qp, struct ibv_send_wr *request)
{
    bool may = op->kind == OP_PUT && op->notify && !op->rc && is_behind_all(op, qp) && (!op->after_all || verbs_op_is_in_order(op));
    verbs_slot *slot = may ? verbs_notify_alloc(op->ep, op) : NULL;
    if (slot && slot->wire->prefix.kind == VERBS_KIND_NOP) {
        request->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request->imm_data = htonl(op->notify);
        slot = NULL;
    }
    return slot;
}

/* The fragment is in op->in_flight before it is posted; a failed post ends the epoch, which returns it to op->redo. */
static int post_frag(verbs_op *op, verbs_frag *frag, verbs_rc_qp *qp)
{
    uint8_t rail = qp->rail->index;
    uint32_t rkey = verbs_rkey(&op->rkey, qp->remote_rail);
    bool is_amo = op->kind == OP_AMO;
    struct verbs_rma_ops *rma = op->ep->iface->rma;
    struct ibv_sge sge = {(uintptr_t)(is_amo ? (uint8_t *)op->cell : op->local + frag->at), frag->bytes,
                          is_amo ? rma->cells->lkey[rail] : op->lkeys[rail]};
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&frag->work, .sg_list = &sge, .num_sge = frag->bytes > 0,
                                  .send_flags = IBV_SEND_SIGNALED, .opcode = op->kind == OP_GET ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE};
    if (is_amo) {
        fill_atomic(op, &request, rkey);
    } else {
        request.wr.rdma.remote_addr = op->remote + frag->at;
        request.wr.rdma.rkey = rkey;
    }
    verbs_slot *slot = notify_along(op, qp, &request);
    bool needs_fence = op->kind == OP_PUT && verbs_read_fence_needed(qp);
    struct ibv_sge word;
    struct ibv_send_wr fence;
    if (op->kind == OP_PUT && frag->bytes <= qp->rail->max_inline)
        request.send_flags |= IBV_SEND_INLINE;
    if (needs_fence) {
        verbs_read_fence_fill(qp, &frag->work, &word, &fence);
        request.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
        request.next = &fence;
    }
    frag->work = (verbs_work){.kind = VERBS_WORK_RMA, .rail = rail, .qp = qp};
    weft_list_append(&op->in_flight, &frag->link);
    qp->in_flight_bytes += frag->bytes;
    qp->reads_used += is_read(op, qp);
    rma->in_flight_bytes += frag->bytes;
    op->ep->frags++;
    if (op->kind == OP_PUT)
        op->ep->is_put_behind = request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
    if (verbs_post(qp, &request, 1 + needs_fence))
        return WEFT_AGAIN;
    if (slot)
        verbs_notify_send(op->ep, slot);
    return 0;
}

/* Posts the rest of an op. False: no queue entries now. */
static bool post_op(verbs_op *op)
{
    struct verbs_rma_ops *rma = op->ep->iface->rma;
    while (!verbs_op_is_posted(op)) {
        if (op->key_epoch && op->key_epoch != op->ep->epoch) {
            op->rc = WEFT_E_STALE;
            return true;
        }
        weft_list_link *redo = weft_list_first(&op->redo);
        bool never;
        verbs_rc_qp *qp = choose(op, &never);
        verbs_frag *frag;
        if (never) { /* no QP has a key for it */
            op->rc = op->kind == OP_AMO ? WEFT_E_UNSUPPORTED : WEFT_E_KEY;
            op->bad_status = IBV_WC_REM_ACCESS_ERR;
            return true;
        }
        frag = !qp ? NULL : redo ? weft_container(redo, verbs_frag, link) : verbs_frag_alloc(rma);
        if (!frag)
            return false;
        if (redo) {
            weft_list_remove(redo);
            op->ep->iface->counts[VERBS_COUNT_REPOSTED_FRAGS]++;
        } else {
            uint64_t left = op->bytes - op->next;
            *frag = (verbs_frag){.op = op, .at = op->next, .bytes = left < rma->frag_bytes ? (uint32_t)left : rma->frag_bytes};
            op->next += frag->bytes;
            op->is_unposted = false;
        }
        if (post_frag(op, frag, qp))
            return false;
    }
    return true;
}

static bool is_ready(const verbs_ep *ep)
{
    return ep->state == VERBS_UP && ep->is_confirmed && ep->evict < VERBS_EVICT_REQUESTED;
}

enum step { STEP_DONE, STEP_LATER, STEP_CHANGED /* ops have finished: restart at the list's head */ };

static enum step step(verbs_op *op)
{
    if (op->kind == OP_FLUSH)
        return STEP_DONE;
    op->is_unposted = op->is_unposted && verbs_op_is_in_order(op); /* else its notification is a frame */
    if (!op->rc && !verbs_op_is_posted(op) && !post_op(op))
        return STEP_LATER;
    if (!is_over(op))
        return STEP_DONE;
    if (!op->rc && op->notify && !op->is_notified &&
        ((op->after_all && !verbs_op_is_oldest(op)) || verbs_flow_notify(op->ep, op->notify)))
        return STEP_LATER;
    verbs_op_finish(op);
    return STEP_CHANGED;
}

/* Posts all that can be posted on an ep. True: nothing is left waiting. */
static bool post_all(verbs_ep *ep)
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
    if (weft_list_is_empty(&iface->rma->waiting))
        return 0;
    weft_list_init(&now);
    weft_list_splice(&now, &iface->rma->waiting);
    for (weft_list_link *link; (link = weft_list_take(&now)) != NULL;) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_rma);
        if (!post_all(ep))
            wait_turn(ep);
    }
    return 0;
}

/* -- completions -- */

/* True if the request itself is at fault, not the connection. */
static bool is_own_fault(const verbs_frag *frag, enum ibv_wc_status status)
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
        return frag->tries >= FRAG_TRIES;
    }
}

/* Emulation by CAS: repeated until the value did not change in between. True: done. */
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
    verbs_frag *frag = (verbs_frag *)(uintptr_t)wc->wr_id;
    struct verbs_rma_ops *rma = rail->iface->rma;
    verbs_rc_qp *qp = frag->work.qp;
    verbs_op *op = frag->op;
    if (wc->status != IBV_WC_SUCCESS) { /* verbs_rma_down returns it to op->redo */
        if (wc->status != IBV_WC_WR_FLUSH_ERR && wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_RNR_RETRY_EXC_ERR)
            frag->tries++;
        if (is_own_fault(frag, wc->status) && !op->rc) {
            op->rc = frag->tries >= FRAG_TRIES ? WEFT_E_OTHER : WEFT_E_KEY;
            op->bad_status = (uint8_t)wc->status;
            op->vendor = wc->vendor_err;
        }
        return;
    }
    qp->in_flight_bytes -= frag->bytes;
    qp->reads_used -= is_read(op, qp);
    rma->in_flight_bytes -= frag->bytes;
    op->ep->rma_done++;
    op->ep->frags--;
    op->ep->suspects -= op->ep->suspects > 0;
    weft_list_remove(&frag->link);
    if (op->kind == OP_AMO && !atomic_is_done(op)) {
        weft_list_append(&op->redo, &frag->link);
        wait_turn(op->ep);
        return;
    }
    weft_list_append(&rma->free_frags, &frag->link);
    if (!is_over(op))
        return;
    if (op->notify_slot) {
        op->is_notified = true;
        verbs_notify_done(op->notify_slot);
    }
    if (!op->rc && op->notify && !op->is_notified)
        wait_turn(op->ep);
    else
        verbs_op_finish(op);
}

/* -- change of epochs -- */

/* An iWARP device that refuses a request closes the connection without a reason. So fragments that were in flight are tried again one by
 * one, and one that alone ends the connection FRAG_TRIES times is reported as refused. */
static void find_cause(verbs_ep *ep)
{
    bool is_alone = ep->frags == 1;
    if (!ep->frags || !ep->qps[0].rail->completes_early)
        return;
    ep->suspects = ep->frags;
    for (weft_list_link *link = ep->ops.next; is_alone && link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        weft_list_link *only = weft_list_first(&op->in_flight);
        if (!only || ++weft_container(only, verbs_frag, link)->tries < FRAG_TRIES || op->rc)
            continue;
        op->rc = WEFT_E_KEY;
        op->bad_status = IBV_WC_REM_ACCESS_ERR;
        ep->suspects = 0;
    }
}

void verbs_rma_down(verbs_ep *ep)
{
    struct verbs_rma_ops *rma = ep->iface->rma;
    weft_list_link *link, *next;
    find_cause(ep);
    ep->frags = 0;
    for (link = ep->ops.next; link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        for (weft_list_link *at = op->in_flight.next; at != &op->in_flight; at = at->next)
            rma->in_flight_bytes -= weft_container(at, verbs_frag, link)->bytes;
        if (op->kind == OP_AMO && !op->rc && !weft_list_is_empty(&op->in_flight))
            op->rc = WEFT_E_OTHER;
        weft_list_splice(&op->redo, &op->in_flight);
    }
    do { /* ops that failed; their callbacks may post more */
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

/* A put that has ended: its notification was delivered, which was behind all fragments, or one that was behind it. */
static verbs_op *find_arrived(const verbs_ep *ep)
{
    for (weft_list_link *link = ep->ops.next; link != &ep->ops; link = link->next) {
        verbs_op *op = weft_container(link, verbs_op, link);
        if (op->is_notified || (op->has_arrived && !op->notify))
            return op;
    }
    return NULL;
}

void verbs_rma_up(verbs_ep *ep)
{
    verbs_ops_mark_arrived(ep);
    for (verbs_op *op; (op = find_arrived(ep)) != NULL;) {
        ep->rma_done++;
        verbs_op_finish(op);
    }
    if (ep->ops_open)
        wait_turn(ep);
}

static void stop_waiting(verbs_ep *ep)
{
    if (ep->by_rma.next != &ep->by_rma)
        weft_list_remove(&ep->by_rma);
}

void verbs_rma_give_up(verbs_ep *ep, int rc, bool has_ended)
{
    weft_list_link *link;
    verbs_rma_down(ep);
    stop_waiting(ep);
    while ((link = weft_list_first(&ep->ops)) != NULL) {
        verbs_op *op = weft_container(link, verbs_op, link);
        op->rc = has_ended && op->kind == OP_PUT && op->notify ? 0 : rc;
        verbs_op_finish_one(op);
    }
}

void verbs_rma_drop(verbs_ep *ep)
{
    weft_list_link *link;
    while ((link = weft_list_first(&ep->ops)) != NULL)
        verbs_op_discard(weft_container(link, verbs_op, link));
    stop_waiting(ep);
}

/* -- operations -- */

bool verbs_can_rma(weft_iface *iface, weft_ep *to)
{
    verbs_ep *ep = (verbs_ep *)to;
    return iface->caps.put && ep->state != VERBS_FAILED;
}

/* Posts the op, or queues it until the ep is up. */
static int start(verbs_ep *ep)
{
    if (ep->state == VERBS_NEW)
        verbs_conn_begin(ep);
    if (ep->by_rma.next == &ep->by_rma && !post_all(ep))
        wait_turn(ep);
    return 0;
}

static int check_key(const verbs_ep *ep, const weft_rkey *rkey, uint64_t remote, uint64_t bytes)
{
    uint32_t epoch = rkey ? verbs_key_epoch(ep, rkey) : 0;
    if (!rkey || !rkey->length || rkey->length % 4 || (ep->remote.rails && !epoch && rkey->length != 4 * ep->remote.rails))
        return weft_fail(WEFT_E_KEY, "an rkey of %u bytes is not one of rank %u", rkey ? rkey->length : 0, ep->proc_id.rank);
    if (remote + bytes < remote)
        return weft_fail(WEFT_E_KEY, "%llu bytes at 0x%llx wrap around the addresses of rank %u", (unsigned long long)bytes,
                         (unsigned long long)remote, ep->proc_id.rank);
    if (epoch && (epoch != ep->epoch || ep->state != VERBS_UP))
        return weft_fail(WEFT_E_STALE, "the memory window of rank %u belongs to a connection that has ended", ep->proc_id.rank);
    return 0;
}

static int check_local(const weft_rma *rma)
{
    const weft_mr *mr = rma->mr;
    if (!rma->bytes && rma->notify_after_all)
        return 0;
    if (!mr || !mr->device)
        return weft_fail(WEFT_E_KEY, "local memory must be registered before RMA");
    if ((uint8_t *)rma->local < (uint8_t *)mr->addr || (uint8_t *)rma->local + rma->bytes > (uint8_t *)mr->addr + mr->bytes)
        return weft_fail(WEFT_E_KEY, "local memory of an RMA operation of %llu bytes leaves its registration",
                         (unsigned long long)rma->bytes);
    return 0;
}

static int rma_begin(verbs_ep *ep, const weft_rma *rma, enum op_kind kind)
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
    op->after_all = rma->notify && rma->notify_after_all;
    op->is_unposted = op->after_all && !rma->bytes;
    for (uint8_t i = 0; i < ep->iface->rail_count; i++)
        op->lkeys[i] = op->is_unposted ? 1 : verbs_lkey(rma->mr, i); /* 1: any, it is not used */
    return start(ep);
}

int verbs_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    if (!iface->caps.get)
        return weft_fail(WEFT_E_UNSUPPORTED, "this device does not read remote memory, or the limit on locked memory (ulimit -l) is low");
    return rma_begin((verbs_ep *)ep, rma, OP_GET);
}

int verbs_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    if (!iface->caps.put)
        return weft_fail(WEFT_E_UNSUPPORTED, "the limit on locked memory (ulimit -l) is too low for RMA");
    return rma_begin((verbs_ep *)ep, rma, OP_PUT);
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
    cell = verbs_cell_alloc(ep->iface);
    if (!cell)
        return ep->iface->rma->cells ? WEFT_AGAIN : weft_fail(WEFT_E_NOSPACE, "no memory can be registered for atomics");
    rc = verbs_op_begin(ep, OP_AMO, atomic->done, &op);
    if (rc) {
        verbs_cell_free(ep->iface, cell);
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
    (void)remotely; /* a put completes when it is visible at the target */
    if (ep->state == VERBS_FAILED)
        return weft_fail(WEFT_E_PEER, "rank %u is lost", ep->proc_id.rank);
    if (!ep->ops_open) {
        if (done)
            iface->callbacks->done(iface->owner, done, 0);
        return 0;
    }
    rc = verbs_op_begin(ep, OP_FLUSH, done, &op);
    return rc;
}
