/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma_op: beginning and end of RMA ops, and the notification of a put that is sent with its last fragment, as immediate data or as a frame
 * right behind it. Called by rma.c; flow.c and replay.c report a notification's outcome.
 * Invariant: a notification has a frame number of the ep, so the peer counts it exactly once. Slot and op point to each other until the
 * fragment has completed, and at the end of an epoch the number shows whether the put has ended.
 */
#include "transports/verbs/rma_op.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/status.h"

#define FRAG_BYTES (1u << 20)
#define OPS_MAX 256u /* of one ep */
#define CELLS 64u     /* atomics in flight */

int verbs_rma_open(verbs_iface *iface)
{
    struct verbs_rma_ops *rma = iface->rma = calloc(1, sizeof *rma);
    if (!rma)
        return weft_fail(WEFT_E_NOMEM, "no memory for RMA operations");
    weft_list_init(&rma->waiting);
    weft_list_init(&rma->free_frags);
    rma->free_cells = UINT64_MAX;
    rma->frag_bytes = FRAG_BYTES;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        struct ibv_port_attr attr;
        if (!ibv_query_port(iface->rails[i].context, iface->rails[i].port_num, &attr) && attr.max_msg_sz &&
            attr.max_msg_sz < rma->frag_bytes)
            rma->frag_bytes = attr.max_msg_sz;
    }
    return 0;
}

void verbs_rma_close(verbs_iface *iface)
{
    struct verbs_rma_ops *rma = iface->rma;
    if (!rma)
        return;
    for (weft_list_link *link; (link = weft_list_take(&rma->free_frags)) != NULL;)
        free(weft_container(link, verbs_frag, link));
    if (rma->cells)
        verbs_slab_free(rma->cells);
    free(rma);
    iface->rma = NULL;
}

static void free_frags(struct verbs_rma_ops *rma, weft_list_link *list)
{
    weft_list_splice(&rma->free_frags, list);
}

void verbs_op_discard(verbs_op *op)
{
    struct verbs_rma_ops *rma = op->ep->iface->rma;
    free_frags(rma, &op->in_flight);
    free_frags(rma, &op->redo);
    if (op->cell)
        verbs_cell_free(op->ep->iface, op->cell);
    if (op->notify_slot)
        verbs_notify_detach(op->notify_slot);
    weft_list_remove(&op->link);
    op->ep->ops_open--;
    free(op);
}

static void set_error(const verbs_op *op)
{
    static const char *const what[] = {"read from", "write to", "atomic on", "flush to"};
    uint32_t rank = op->ep->proc_id.rank;
    if (op->kind == OP_AMO && op->rc == WEFT_E_OTHER)
        weft_fail(op->rc, "the connection to rank %u broke during an atomic operation: whether it was done there is not known, "
                  "so it is not repeated",
                  rank);
    else if (op->rc == WEFT_E_KEY && op->bad_status == IBV_WC_LOC_PROT_ERR)
        weft_fail(op->rc, "a %s rank %u of %llu bytes was refused by the local device (%s, vendor's code 0x%x): the local memory is not "
                  "registered, or not any more", what[op->kind], rank, (unsigned long long)op->bytes,
                  ibv_wc_status_str(op->bad_status), op->vendor);
    else if (op->rc == WEFT_E_KEY)
        weft_fail(op->rc, "a %s rank %u of %llu bytes at 0x%llx was refused (%s, vendor's code 0x%x): wrong key, bounds or access, or "
                  "that memory was unmapped", what[op->kind], rank, (unsigned long long)op->bytes, (unsigned long long)op->remote,
                  ibv_wc_status_str(op->bad_status), op->vendor);
    else if (op->rc == WEFT_E_STALE)
        weft_fail(op->rc, "the connection of rank %u's memory window broke during a %s it", rank, what[op->kind]);
    else if (op->rc == WEFT_E_UNSUPPORTED)
        weft_fail(op->rc, "atomics on rank %u use its first RDMA port, which cannot be reached now", rank);
    else if (op->bad_status)
        weft_fail(op->rc, "a %s rank %u of %llu bytes failed repeatedly (%s, vendor's code 0x%x)", what[op->kind], rank,
                  (unsigned long long)op->bytes, ibv_wc_status_str(op->bad_status), op->vendor);
}

void verbs_op_finish_one(verbs_op *op)
{
    weft_iface *iface = &op->ep->iface->iface;
    void *done = op->done;
    int rc = op->rc;
    if (rc)
        set_error(op);
    verbs_op_discard(op);
    if (done)
        iface->callbacks->done(iface->owner, done, rc);
}

void verbs_op_finish(verbs_op *op)
{
    verbs_ep *ep = op->ep;
    verbs_op_finish_one(op);
    for (weft_list_link *link; (link = weft_list_first(&ep->ops)) != NULL;) { /* flushes that waited for it */
        verbs_op *first = weft_container(link, verbs_op, link);
        if (first->kind != OP_FLUSH)
            break;
        verbs_op_finish_one(first);
    }
}

uint64_t *verbs_cell_alloc(verbs_iface *iface)
{
    struct verbs_rma_ops *rma = iface->rma;
    int bit;
    if (!rma->cells && verbs_slab_alloc(iface, CELLS * sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE, &rma->cells))
        return NULL;
    if (!rma->free_cells)
        return NULL;
    bit = __builtin_ctzll(rma->free_cells);
    rma->free_cells &= rma->free_cells - 1;
    return (uint64_t *)rma->cells->memory + bit;
}

void verbs_cell_free(verbs_iface *iface, const uint64_t *cell)
{
    iface->rma->free_cells |= 1ull << (cell - (uint64_t *)iface->rma->cells->memory);
}

verbs_frag *verbs_frag_alloc(struct verbs_rma_ops *rma)
{
    weft_list_link *link = weft_list_take(&rma->free_frags);
    verbs_frag *frag = link ? weft_container(link, verbs_frag, link) : calloc(1, sizeof *frag);
    if (frag)
        weft_list_init(&frag->link);
    return frag;
}

int verbs_op_begin(verbs_ep *ep, enum op_kind kind, void *done, verbs_op **out)
{
    verbs_op *op;
    if (ep->state == VERBS_FAILED)
        return weft_fail(WEFT_E_PEER, "rank %u is lost: %s", ep->proc_id.rank, ep->last_error[0] ? ep->last_error : "it does not answer");
    if (ep->ops_open >= OPS_MAX)
        return WEFT_AGAIN;
    op = calloc(1, sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory for an RMA operation on rank %u", ep->proc_id.rank);
    op->ep = ep;
    op->kind = kind;
    op->done = done;
    weft_list_init(&op->in_flight);
    weft_list_init(&op->redo);
    weft_list_append(&ep->ops, &op->link);
    ep->ops_open++;
    *out = op;
    return 0;
}

/* -- order -- */

static bool is_on_home(const verbs_op *op)
{
    for (const weft_list_link *at = op->in_flight.next; at != &op->in_flight; at = at->next)
        if (weft_container(at, verbs_frag, link)->work.qp != op->ep->home)
            return false;
    return !op->rc && verbs_op_is_posted(op);
}

bool verbs_op_is_in_order(const verbs_op *op)
{
    for (const weft_list_link *link = op->link.prev; link != &op->ep->ops; link = link->prev) {
        const verbs_op *earlier = weft_container(link, verbs_op, link);
        if (earlier->kind == OP_AMO || (earlier->kind == OP_PUT && !is_on_home(earlier)))
            return false;
        if (earlier->after_all && earlier->notify_slot)
            return true; /* found so when that was posted */
    }
    return true;
}

bool verbs_op_is_oldest(const verbs_op *op)
{
    for (const weft_list_link *link = op->link.prev; link != &op->ep->ops; link = link->prev) {
        enum op_kind kind = weft_container(link, verbs_op, link)->kind;
        if (kind == OP_PUT || kind == OP_AMO)
            return false;
    }
    return true;
}

void verbs_ops_mark_arrived(verbs_ep *ep)
{
    bool has_arrived = false;
    for (weft_list_link *link = ep->ops.prev; link != &ep->ops; link = link->prev) {
        verbs_op *op = weft_container(link, verbs_op, link);
        if (has_arrived && op->kind == OP_PUT) {
            op->has_arrived = true;
            free_frags(ep->iface->rma, &op->redo);
        }
        has_arrived = has_arrived || (op->after_all && op->is_notified);
    }
}

/* -- notifications -- */

/* Immediate data has no number on the wire: the peer counts, so the write must be on the QP of numbered frames, in their order. It carries
 * neither token nor credits: if these are due, a frame follows the write instead. (Were the last credit spent on a write while the token is
 * due, neither side could send.) */
verbs_slot *verbs_notify_alloc(verbs_ep *ep, verbs_op *op)
{
    bool by_frame = ep->token_due || verbs_flow_credits_due(ep) || (ep->home && ep->home->rail->is_iwarp);
    verbs_slot *slot = NULL;
    if (verbs_flow_may_notify(ep) && ep->credits && verbs_flow_has_number(ep))
        slot = verbs_slot_alloc(ep->iface, sizeof(verbs_wire));
    if (!slot)
        return NULL;
    slot->bytes = sizeof(verbs_wire);
    slot->seq = ++ep->tx_seq;
    slot->wire->hdr = (weft_hdr){.tag = (int32_t)op->notify};
    slot->wire->prefix.kind = by_frame ? VERBS_KIND_NOTIFY : VERBS_KIND_NOP;
    slot->is_posted = true;
    slot->op = op;
    op->notify_slot = slot;
    ep->credits--;
    weft_list_append(&ep->sent, &slot->link);
    return slot;
}

void verbs_notify_send(verbs_ep *ep, verbs_slot *slot)
{
    verbs_flow_stamp(ep, slot, VERBS_KIND_NOTIFY, 0);
    verbs_flow_post(ep, slot, false);
}

void verbs_notify_done(verbs_slot *slot)
{
    verbs_ep *ep = slot->op->ep;
    slot->op->notify_slot = NULL;
    slot->op = NULL;
    if (slot->wire->prefix.kind == VERBS_KIND_NOP)
        verbs_flow_done(ep, slot->seq);
}

void verbs_notify_detach(verbs_slot *slot)
{
    if (!slot->op)
        return;
    slot->op->notify_slot = NULL;
    slot->op = NULL;
    slot->wire->prefix.kind = VERBS_KIND_NOP;
}

void verbs_notify_free(verbs_ep *ep, verbs_slot *slot, bool is_delivered)
{
    if (slot->op) {
        slot->op->notify_slot = NULL;
        slot->op->is_notified = is_delivered;
        slot->op = NULL;
    }
    verbs_slot_free(ep->iface, slot);
}
