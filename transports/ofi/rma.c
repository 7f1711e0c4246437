/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: gets and puts in fragments, a few at a time per peer; atomics; flush. A put's fragment completes when its bytes are visible at the
 * target (FI_DELIVERY_COMPLETE). So flush waits for earlier ops only, and a notification is a frame after the last completion. A failed
 * fragment may have been hit by another request's connection error, or the network's: it is retried alone after a handshake; one that
 * fails that often (TRIES) has a key that the target refuses. Each retry posts a smaller part of the fragment, so that a put also ends over a
 * network that breaks often. An atomic whose result is unknown is never retried.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define TRIES 8u       /* of one part */
#define TRIES_KEPT 64u /* the same where a connection may break at any time without loss (keep.c). Resets come in bursts, beside load. */
#define PART_MIN 256u  /* bytes */

static const struct { enum fi_op op; } amo_ops[] = {
    [WEFT_AMO_ADD] = {FI_SUM}, [WEFT_AMO_SWAP] = {FI_ATOMIC_WRITE}, [WEFT_AMO_CAS] = {FI_CSWAP},
    [WEFT_AMO_AND] = {FI_BAND}, [WEFT_AMO_OR] = {FI_BOR}, [WEFT_AMO_XOR] = {FI_BXOR},
};

/* All atomics or none: a window uses one kind of atomics only. */
enum weft_amo_domain ofi_amo_domain(ofi_iface *iface)
{
    size_t count;
    if (!(iface->info->caps & FI_ATOMIC))
        return WEFT_AMO_NONE;
    for (size_t i = 0; i < weft_count(amo_ops); i++) {
        int rc = i == WEFT_AMO_CAS ? fi_compare_atomicvalid(iface->ep, FI_UINT64, amo_ops[i].op, &count)
                                   : fi_fetch_atomicvalid(iface->ep, FI_UINT64, amo_ops[i].op, &count);
        if (rc || !count)
            return WEFT_AMO_NONE;
    }
    return WEFT_AMO_NIC;
}

/* -- fragments -- */

static ssize_t post_amo(ofi_iface *iface, ofi_frag *frag, uint64_t addr, uint64_t key, fi_addr_t to)
{
    ofi_op *op = frag->op;
    uint64_t *words = frag->words;
    void *desc = iface->arena_desc;
    words[0] = op->operand;
    words[1] = op->compare;
    if (op->amo == WEFT_AMO_CAS)
        return fi_compare_atomic(iface->ep, &words[0], 1, desc, &words[1], desc, &words[2], desc, to, addr, key, FI_UINT64, FI_CSWAP,
                                 &frag->work);
    return fi_fetch_atomic(iface->ep, &words[0], 1, desc, &words[2], desc, to, addr, key, FI_UINT64, amo_ops[op->amo].op, &frag->work);
}

static ssize_t post(ofi_iface *iface, ofi_frag *frag)
{
    ofi_op *op = frag->op;
    fi_addr_t to = op->ep->candidates[op->ep->candidate].to;
    uint64_t addr, key;
    struct iovec near = {(uint8_t *)op->rma.local + frag->at, frag->part};
    struct fi_rma_iov far = {.len = frag->part};
    struct fi_msg_rma message = {.msg_iov = &near, .desc = &op->desc, .iov_count = 1, .addr = to, .rma_iov = &far, .rma_iov_count = 1,
                                 .context = &frag->work};
    if (ofi_key_check(&op->rkey, op->rma.remote + frag->at, frag->part, 0, &addr, &key))
        return -FI_EINVAL; /* checked before by the caller */
    if (op->kind == OFI_AMO)
        return post_amo(iface, frag, addr, key, to);
    far.addr = addr;
    far.key = key;
    return op->kind == OFI_GET ? fi_readmsg(iface->ep, &message, FI_COMPLETION)
                               : fi_writemsg(iface->ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static void free_frag(ofi_iface *iface, ofi_frag *frag)
{
    frag->op = NULL;
    weft_list_append(&iface->free_frags, &frag->link);
}

static void fail(ofi_op *op, int rc, const char *text)
{
    if (op->rc)
        return; /* the first cause counts */
    op->rc = rc;
    op->is_issued = true;
    snprintf(op->text, sizeof op->text, "%s", text);
}

/* Posts a fragment. 0, or AGAIN: it is in ep->again. */
static int start(ofi_iface *iface, ofi_frag *frag)
{
    ofi_ep *ep = frag->op->ep;
    ssize_t rc = post(iface, frag);
    frag->work.ep = ep;
    if (rc == 0) {
        ep->frags_out++;
        ep->bytes_out += frag->part;
        iface->counts[OFI_COUNT_FRAGS]++;
        return 0;
    }
    weft_list_append(&ep->again, &frag->link);
    ofi_refused(iface, ep, rc);
    return WEFT_AGAIN;
}

/* Failed fragments are posted alone, so that the cause of a further break is known. Fragments that were only refused have tries 0. */
static int start_again(ofi_iface *iface, ofi_ep *ep)
{
    while (!weft_list_is_empty(&ep->again)) {
        ofi_frag *frag = weft_container(ep->again.next, ofi_frag, link);
        ofi_op *op = frag->op;
        if (op->rc) {
            weft_list_remove(&frag->link);
            op->frags--;
            free_frag(iface, frag);
            continue;
        }
        if (frag->tries && ep->frags_out)
            return WEFT_AGAIN;
        weft_list_remove(&frag->link);
        if (start(iface, frag) || frag->tries)
            return WEFT_AGAIN;
    }
    return 0;
}

static bool has_room(const ofi_iface *iface, const ofi_ep *ep)
{
    return ep->frags_out < OFI_FRAGS_EP && ep->bytes_out + iface->frag_bytes <= iface->ep_bytes;
}

static int start_new(ofi_iface *iface, ofi_op *op)
{
    ofi_ep *ep = op->ep;
    while (!op->is_issued) {
        uint64_t left = op->rma.bytes - op->issued;
        weft_list_link *link = has_room(iface, ep) ? weft_list_take(&iface->free_frags) : NULL;
        ofi_frag *frag = link ? weft_container(link, ofi_frag, link) : NULL;
        if (!frag)
            return WEFT_AGAIN;
        frag->op = op;
        frag->tries = 0;
        frag->at = op->issued;
        frag->bytes = left < iface->frag_bytes ? left : iface->frag_bytes;
        frag->part = frag->bytes;
        op->issued += frag->bytes;
        op->is_issued = op->issued == op->rma.bytes;
        op->frags++;
        if (start(iface, frag))
            return WEFT_AGAIN;
    }
    return 0;
}

/* -- operations -- */

static bool is_over(ofi_iface *iface, ofi_op *op)
{
    if (op->kind == OFI_FLUSH)
        return op->ep->ops.next == &op->link;
    if (!op->is_issued || op->frags)
        return false;
    if (op->notify_due && !op->rc &&
        ((op->rma.notify_after_all && op->ep->ops.next != &op->link) || ofi_notify(iface, op->ep, op->rma.notify)))
        return false;
    op->notify_due = false;
    return true;
}

/* Finishes completed ops. A callback may post new ones: restarts at the list's head. */
static int settle(ofi_iface *iface, ofi_ep *ep)
{
    int n = 0;
    for (weft_list_link *link = ep->ops.next; link != &ep->ops;) {
        ofi_op *op = weft_container(link, ofi_op, link);
        void *done = op->rma.done;
        int rc;
        link = link->next;
        if (!is_over(iface, op))
            continue;
        rc = op->rc ? weft_fail(op->rc, "%s", op->text) : 0;
        weft_list_remove(&op->link);
        free(op);
        iface->ops_open--;
        n++;
        if (done)
            iface->iface.callbacks->done(iface->iface.owner, done, rc);
        link = ep->ops.next;
    }
    if (weft_list_is_empty(&ep->ops) && ep->has_rma) {
        weft_list_remove(&ep->by_rma);
        ep->has_rma = false;
    }
    return n;
}

int ofi_rma_progress(ofi_iface *iface, ofi_ep *ep)
{
    if (ep->state == OFI_OPEN && start_again(iface, ep) == 0)
        for (weft_list_link *link = ep->ops.next; link != &ep->ops && ep->state == OFI_OPEN; link = link->next) {
            ofi_op *op = weft_container(link, ofi_op, link);
            if (op->kind != OFI_FLUSH && start_new(iface, op))
                break;
        }
    return settle(iface, ep);
}

void ofi_rma_fail(ofi_iface *iface, ofi_ep *ep, int rc, const char *text)
{
    for (weft_list_link *link = ep->ops.next; link != &ep->ops; link = link->next)
        fail(weft_container(link, ofi_op, link), rc, text ? text : "");
    ep->state = ep->state == OFI_OPEN ? OFI_BROKEN : ep->state;
    while (!weft_list_is_empty(&ep->again)) {
        ofi_frag *frag = weft_container(ep->again.next, ofi_frag, link);
        weft_list_remove(&frag->link);
        frag->op->frags--;
        free_frag(iface, frag);
    }
    if (text) {
        settle(iface, ep);
        return;
    }
    for (size_t i = 0; i < OFI_FRAGS; i++)
        if (iface->frags[i].op && iface->frags[i].op->ep == ep)
            iface->frags[i].op = NULL; /* in flight: freed at its completion */
    for (weft_list_link *link; (link = weft_list_take(&ep->ops)); iface->ops_open--)
        free(weft_container(link, ofi_op, link));
    if (ep->has_rma)
        weft_list_remove(&ep->by_rma);
    ep->has_rma = false;
}

static bool is_key_error(int error) { return error == FI_EACCES || error == FI_EPERM || error == FI_ENOKEY || error == FI_EKEYREJECTED; }

static void failed(ofi_iface *iface, ofi_frag *frag, const struct fi_cq_err_entry *error)
{
    ofi_op *op = frag->op;
    ofi_ep *ep = op->ep;
    char words[128] = "", text[192];
    const char *more = fi_cq_strerror(iface->cq, error->prov_errno, error->err_data, words, sizeof words);
    snprintf(text, sizeof text, "%s (%s)", ofi_error_text(error->err), more ? more : "no more words");
    if (ep->state == OFI_FAILED || op->rc) {
        fail(op, WEFT_E_PEER, text);
    } else if (op->kind == OFI_AMO) {
        char fate[256];
        snprintf(fate, sizeof fate, "an atomic operation on rank %u failed, its result is unknown: %s", ep->proc_id.rank, text);
        fail(op, is_key_error(error->err) ? WEFT_E_KEY : WEFT_E_SYSTEM, fate);
        ofi_break(iface, ep, text);
    } else if (is_key_error(error->err) || ++frag->tries >= (iface->keeps ? TRIES_KEPT : TRIES)) {
        char fate[256];
        snprintf(fate, sizeof fate, "rank %u refuses a key to %" PRIu64 " bytes at 0x%" PRIx64 ": %s", ep->proc_id.rank, op->rma.bytes,
                 op->rma.remote, text);
        fail(op, WEFT_E_KEY, fate);
        if (!is_key_error(error->err))
            ofi_break(iface, ep, text);
    } else {
        if (frag->part > PART_MIN)
            frag->part /= 4;
        weft_list_append(&ep->again, &frag->link);
        ofi_break(iface, ep, text);
        return;
    }
    op->frags--;
    free_frag(iface, frag);
}

/* A part has completed. The rest of the fragment follows, in parts that grow again. */
static void completed(ofi_iface *iface, ofi_frag *frag)
{
    ofi_op *op = frag->op;
    if (op->kind == OFI_AMO && op->before)
        *op->before = frag->words[2];
    frag->at += frag->part;
    frag->bytes -= frag->part;
    frag->tries = 0;
    if (frag->bytes && !op->rc) {
        frag->part = 2 * frag->part < frag->bytes ? 2 * frag->part : frag->bytes;
        weft_list_append(&op->ep->again, &frag->link);
        return;
    }
    op->frags--;
    free_frag(iface, frag);
}

void ofi_frag_done(ofi_iface *iface, ofi_frag *frag, const struct fi_cq_err_entry *error)
{
    ofi_op *op = frag->op;
    ofi_ep *ep = op ? op->ep : NULL;
    if (!op) { /* its ep was freed */
        free_frag(iface, frag);
        return;
    }
    ep->frags_out--;
    ep->bytes_out -= frag->part;
    if (error)
        failed(iface, frag, error);
    else
        completed(iface, frag);
    ofi_rma_progress(iface, ep);
}

/* -- operations -- */

bool ofi_can_rma(weft_iface *base, weft_ep *ep)
{
    (void)ep;
    return base->caps.put;
}

static int add_op(ofi_iface *iface, ofi_ep *ep, const ofi_op *what)
{
    ofi_op *op;
    if (ep->state == OFI_FAILED || ep->peer_closed)
        return weft_fail(WEFT_E_PEER, "rank %u has ended", ep->proc_id.rank);
    if (ep->state != OFI_OPEN) {
        ofi_handshake_begin(iface, ep);
        return WEFT_AGAIN;
    }
    op = malloc(sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory for a transfer with rank %u", ep->proc_id.rank);
    *op = *what;
    op->ep = ep;
    op->rma.rkey = &op->rkey;
    weft_list_append(&ep->ops, &op->link);
    if (!ep->has_rma)
        weft_list_append(&iface->rma_active, &ep->by_rma);
    ep->has_rma = true;
    iface->ops_open++;
    ofi_rma_progress(iface, ep);
    return 0;
}

static int move(weft_iface *base, weft_ep *base_ep, const weft_rma *what, enum ofi_op_kind kind)
{
    ofi_iface *iface = (ofi_iface *)base;
    const weft_mr *mr = what->mr;
    uint64_t addr, key, at = (uintptr_t)what->local;
    ofi_op op = {.kind = kind, .rma = *what, .is_issued = what->bytes == 0, .notify_due = what->notify != 0};
    int rc;
    if (kind == OFI_GET && !base->caps.get)
        return weft_fail(WEFT_E_UNSUPPORTED, "reads by libfabric's %s do not survive a connection that breaks", iface->addr.provider);
    rc = ofi_key_check(what->rkey, what->remote, what->bytes, kind == OFI_GET ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE, &addr, &key);
    if (rc)
        return rc;
    if (iface->needs_desc && (what->bytes || !what->notify_after_all) &&
        (!mr || at < (uintptr_t)mr->addr || what->bytes > mr->bytes || at - (uintptr_t)mr->addr > mr->bytes - what->bytes))
        return weft_fail(WEFT_E_KEY, "%s needs registered memory for RMA, and %" PRIu64 " bytes at %p were not registered",
                         iface->addr.provider, what->bytes, what->local);
    op.desc = mr && mr->device ? fi_mr_desc(mr->device) : NULL;
    op.rkey = *what->rkey;
    return add_op(iface, (ofi_ep *)base_ep, &op);
}

int ofi_get(weft_iface *iface, weft_ep *ep, const weft_rma *what) { return move(iface, ep, what, OFI_GET); }
int ofi_put(weft_iface *iface, weft_ep *ep, const weft_rma *what) { return move(iface, ep, what, OFI_PUT); }

int ofi_amo(weft_iface *base, weft_ep *ep, const weft_atomic *atomic)
{
    ofi_iface *iface = (ofi_iface *)base;
    uint64_t addr, key;
    ofi_op op = {.kind = OFI_AMO, .amo = atomic->op, .operand = atomic->operand, .compare = atomic->compare, .before = atomic->before,
                 .rma = {.remote = atomic->remote, .bytes = 8, .done = atomic->done}};
    int rc;
    if (base->caps.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "%s does not support all atomics", iface->addr.provider);
    if (atomic->remote % 8)
        return weft_fail(WEFT_E_ARG, "an atomic operation needs an address that is a multiple of 8, not 0x%" PRIx64, atomic->remote);
    rc = ofi_key_check(atomic->rkey, atomic->remote, 8, WEFT_ACCESS_ATOMIC, &addr, &key);
    if (rc)
        return rc;
    op.rkey = *atomic->rkey;
    return add_op(iface, (ofi_ep *)ep, &op);
}

/* A put completes when it is visible: local and remote completion are the same. */
int ofi_flush(weft_iface *base, weft_ep *base_ep, bool remotely, void *done)
{
    ofi_ep *ep = (ofi_ep *)base_ep;
    ofi_op op = {.kind = OFI_FLUSH, .is_issued = true, .rma = {.done = done}};
    (void)remotely;
    if (weft_list_is_empty(&ep->ops) && ep->state != OFI_FAILED) {
        if (done)
            base->callbacks->done(base->owner, done, 0);
        return 0;
    }
    return add_op((ofi_iface *)base, ep, &op);
}
