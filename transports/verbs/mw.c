/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mw: opens a part of a registration to one peer by a memory window of type 2B (docs/verbs.md, "What is exposed"). A work request on the
 * ep's home QP binds it: the key works only on that QP. The bind is not waited for: the frame with the key is behind it in the same
 * queue. Invalidated by a work request, too; the registration is held until that completes (verbs_memory_acquire). The key is the rails'
 * rkeys, of which only the home QP's is not 0, and the epoch: the window dies with its QP, and the peer detects that by the epoch.
 * A window is on one list: free (rail), bound (QP), dead (destroyed, not yet invalidated by its owner). Structs are freed at close only:
 * completions point to them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/flow.h"

struct weft_mw {
    verbs_work work; /* of its bind, then of its invalidation */
    weft_list_link link;
    weft_list_link by_iface;
    struct ibv_mw *ibv_mw;
    uint32_t rkey;   /* as bound; ibv_mw->rkey is set at the next bind, as a provider may read it when a delayed bind is posted */
    verbs_memory *memory;
    bool is_invalidated;
};

#define RKEY_BYTES(rails) (sizeof(uint32_t) * (rails))

static bool has_mws(const verbs_rail *rail)
{
    return (rail->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) && rail->attr.max_mw > 0 && !rail->is_iwarp;
}

int verbs_mw_open(verbs_iface *iface)
{
    bool all = iface->iface.caps.put && weft_knob.verbs_mw != WEFT_VERBS_MW_NEVER;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        all = all && has_mws(&iface->rails[i]);
        if (weft_knob.verbs_mw == WEFT_VERBS_MW_ALWAYS && !has_mws(&iface->rails[i]))
            return weft_fail(WEFT_E_UNSUPPORTED, "RDMA device %s has no memory windows of type 2B, and WEFT_VERBS_MW=always asks for them",
                             iface->rails[i].name);
    }
    iface->iface.caps.has_mw = all;
    if (all)
        iface->iface.caps.key_bytes = (uint8_t)(RKEY_BYTES(iface->rail_count) + sizeof(uint32_t));
    return 0;
}

static void free_all(weft_list_link *list)
{
    for (weft_list_link *link; (link = weft_list_take(list)) != NULL;) {
        weft_mw *mw = weft_container(link, weft_mw, link);
        if (mw->ibv_mw)
            ibv_dealloc_mw(mw->ibv_mw);
        free(mw);
    }
}

void verbs_mw_close(verbs_iface *iface)
{
    for (uint8_t i = 0; i < iface->rail_count; i++)
        free_all(&iface->rails[i].free_mws);
    free_all(&iface->mws_dead);
    free_all(&iface->mws_spare);
}

/* -- binding -- */

static weft_mw *alloc(verbs_rail *rail)
{
    weft_list_link *link = weft_list_take(&rail->free_mws);
    weft_mw *mw;
    struct ibv_mw *ibv_mw;
    if (link)
        return weft_container(link, weft_mw, link);
    ibv_mw = ibv_alloc_mw(rail->pd, IBV_MW_TYPE_2);
    if (!ibv_mw)
        return NULL;
    link = weft_list_take(&rail->iface->mws_spare);
    mw = link ? weft_container(link, weft_mw, link) : calloc(1, sizeof *mw);
    if (!mw) {
        ibv_dealloc_mw(ibv_mw);
        return NULL;
    }
    mw->ibv_mw = ibv_mw;
    mw->rkey = ibv_mw->rkey;
    return mw;
}

static int access_of(uint32_t rights)
{
    return (rights & WEFT_ACCESS_READ ? IBV_ACCESS_REMOTE_READ : 0) | (rights & WEFT_ACCESS_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (rights & WEFT_ACCESS_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static int bind(verbs_rc_qp *qp, weft_mw *mw, void *addr, uint64_t bytes, uint32_t rights)
{
    uint8_t rail = qp->rail->index;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&mw->work, .opcode = IBV_WR_BIND_MW};
    mw->ibv_mw->rkey = mw->rkey;
    mw->rkey = ibv_inc_rkey(mw->rkey);
    request.bind_mw.mw = mw->ibv_mw;
    request.bind_mw.rkey = mw->rkey;
    request.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = mw->memory->mr[rail], .addr = (uintptr_t)addr, .length = bytes,
                                                          .mw_access_flags = (unsigned)access_of(rights)};
    mw->work = (verbs_work){.kind = VERBS_WORK_MW, .rail = rail, .qp = qp};
    mw->is_invalidated = false;
    weft_list_init(&mw->by_iface);
    weft_list_append(&qp->bound_mws, &mw->link);
    return verbs_post(qp, &request, 1);
}

static int check(const verbs_ep *ep, const weft_mr *mr, const void *addr, uint64_t bytes)
{
    const verbs_memory *memory = mr->device;
    uint64_t at = (uintptr_t)addr - (uintptr_t)mr->addr;
    if (!ep->iface->iface.caps.has_mw || !memory || !memory->can_bind)
        return weft_fail(WEFT_E_UNSUPPORTED, "this memory was not registered for memory windows");
    if (!bytes || (uintptr_t)addr < (uintptr_t)mr->addr || at > mr->bytes || bytes > mr->bytes - at)
        return weft_fail(WEFT_E_KEY, "%llu bytes of a memory window leave their registration", (unsigned long long)bytes);
    return 0;
}

int verbs_mw_bind(weft_iface *base, weft_ep *to, const weft_mr *mr, void *addr, uint64_t bytes, uint32_t rights,
                    weft_rkey *rkey, weft_mw **out)
{
    verbs_iface *iface = (verbs_iface *)base;
    verbs_ep *ep = (verbs_ep *)to;
    verbs_rc_qp *qp = ep->home;
    uint32_t keys[VERBS_RAILS + 1] = {0};
    weft_mw *mw;
    int rc = check(ep, mr, addr, bytes);
    if (rc)
        return rc;
    if (ep->state != VERBS_UP || !ep->is_confirmed || !qp || !qp->ibv_qp || qp->is_broken)
        return WEFT_AGAIN;
    if (!verbs_rc_qp_has_room(qp, 1)) {
        verbs_rc_qp_sync(qp);
        return WEFT_AGAIN;
    }
    if (!((verbs_memory *)mr->device)->mr[qp->rail->index] || !(mw = alloc(qp->rail)))
        return WEFT_AGAIN;
    mw->memory = mr->device;
    verbs_memory_acquire(mw->memory);
    if (bind(qp, mw, addr, bytes, rights)) { /* the QP is in error, and destroys the window */
        mw->is_invalidated = true;
        return WEFT_AGAIN;
    }
    iface->counts[VERBS_COUNT_MW_BINDS]++;
    keys[qp->rail->index] = mw->rkey;
    keys[iface->rail_count] = ep->epoch;
    rkey->length = (uint8_t)(RKEY_BYTES(iface->rail_count) + sizeof ep->epoch);
    memcpy(rkey->bytes, keys, rkey->length);
    *out = mw;
    return 0;
}

uint32_t verbs_key_epoch(const verbs_ep *ep, const weft_rkey *rkey)
{
    uint32_t epoch = 0;
    if (rkey->length == RKEY_BYTES(ep->remote.rails) + sizeof epoch)
        memcpy(&epoch, rkey->bytes + RKEY_BYTES(ep->remote.rails), sizeof epoch);
    return epoch;
}

/* -- invalidating -- */

/* False: no queue entry now. In an epoch that ends nothing is posted: the window dies with its QP. */
static bool invalidate(weft_mw *mw)
{
    verbs_rc_qp *qp = mw->work.qp;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&mw->work, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
                                  .invalidate_rkey = mw->rkey};
    if (qp->is_broken || qp->ep->state != VERBS_UP)
        return true;
    if (qp->sq_used >= qp->sq_capacity || qp->rail->cq_used >= qp->rail->cq_capacity) {
        verbs_rc_qp_sync(qp);
        return false;
    }
    verbs_post(qp, &request, 1);
    return true;
}

void verbs_mw_invalidate(weft_iface *base, weft_mw *mw)
{
    verbs_iface *iface = (verbs_iface *)base;
    if (!mw->ibv_mw) {
        weft_list_remove(&mw->link);
        weft_list_append(&iface->mws_spare, &mw->link);
        return;
    }
    mw->is_invalidated = true;
    if (!invalidate(mw))
        weft_list_append(&iface->mws_to_invalidate, &mw->by_iface);
}

void verbs_mw_progress(verbs_iface *iface)
{
    for (weft_list_link *link; (link = weft_list_first(&iface->mws_to_invalidate)) != NULL;) {
        if (!invalidate(weft_container(link, weft_mw, by_iface)))
            return;
        weft_list_remove(link);
    }
}

void verbs_mw_completion(const struct ibv_wc *wc)
{
    weft_mw *mw = (weft_mw *)(uintptr_t)wc->wr_id;
    verbs_rail *rail = mw->work.qp->rail;
    weft_list_remove(&mw->link);
    verbs_memory_release(mw->memory);
    mw->memory = NULL;
    weft_list_append(&rail->free_mws, &mw->link);
}

void verbs_mw_fail(verbs_rc_qp *qp)
{
    verbs_iface *iface = qp->rail->iface;
    for (weft_list_link *at; (at = weft_list_take(&qp->bound_mws)) != NULL;) {
        weft_mw *mw = weft_container(at, weft_mw, link);
        iface->counts[VERBS_COUNT_MW_LOST] += !mw->is_invalidated;
        ibv_dealloc_mw(mw->ibv_mw); /* fails on a dead device; the kernel frees it with the rest */
        mw->ibv_mw = NULL;
        verbs_memory_release(mw->memory);
        mw->memory = NULL;
        weft_list_remove(&mw->by_iface);
        weft_list_append(mw->is_invalidated ? &iface->mws_spare : &iface->mws_dead, &mw->link);
    }
}
