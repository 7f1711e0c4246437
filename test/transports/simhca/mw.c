/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mw: memory windows of type 2B. A request of a queue pair binds a window to a part of a region, for access by that queue pair; another
 * request there frees it. The key is index << 8
 * tag; the user chooses the tag at each bind. Bind and invalidation take effect when they leave the send queue, before later requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define WINDOW_BITS 0xc0000000u /* no region's key has both */
#define PLACES 4096u

static hca_mw *find(const hca_device *device, uint32_t key)
{
    uint32_t place = (key & ~WINDOW_BITS) >> 8;
    if ((key & WINDOW_BITS) != WINDOW_BITS || !place || place > device->mw_capacity)
        return NULL;
    return device->mws[place - 1];
}

static struct ibv_mw *alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
    hca_context *context = hca_context_of(pd->context);
    hca_device *device = context->device;
    uint32_t at = 0;
    hca_mw *mw = type == IBV_MW_TYPE_2 && !hca.profile.no_windows && !device->is_dead ? calloc(1, sizeof *mw) : NULL;
    hca_lock();
    while (mw && at < device->mw_capacity && device->mws[at])
        at++;
    if (mw && at == device->mw_capacity && at < hca_limit(hca.profile.max_mw, PLACES)) {
        device->mws = realloc(device->mws, (at + 1) * sizeof(hca_mw *));
        device->mws[at] = NULL;
        device->mw_capacity++;
    }
    if (!mw || at == device->mw_capacity) {
        free(mw);
        hca_unlock();
        errno = device->is_dead ? EIO : mw ? ENOMEM : EOPNOTSUPP;
        return NULL;
    }
    mw->base = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = WINDOW_BITS | (at + 1) << 8, .type = type};
    mw->place = at;
    mw->rkey = mw->base.rkey;
    device->mws[at] = mw;
    ((hca_pd *)pd)->users++;
    context->objects[HCA_MW]++;
    weft_list_append(&context->mws, &mw->link);
    hca_unlock();
    return &mw->base;
}

static void unbind(hca_mw *mw)
{
    if (mw->mr)
        mw->mr->mws--;
    mw->mr = NULL;
}

void hca_mw_free(hca_mw *mw)
{
    hca_context *context = hca_context_of(mw->base.context);
    unbind(mw);
    context->device->mws[mw->place] = NULL;
    context->objects[HCA_MW]--;
    ((hca_pd *)mw->base.pd)->users--;
    weft_list_remove(&mw->link);
    free(mw);
}

static int dealloc(struct ibv_mw *base)
{
    hca_lock();
    hca_mw_free((hca_mw *)base);
    hca_unlock();
    return 0;
}

void hca_mw_fill(struct ibv_context_ops *ops)
{
    ops->alloc_mw = alloc;
    ops->dealloc_mw = dealloc;
}

/* -- execution of requests -- */

static bool bind(hca_qp *qp, const hca_wqe *wqe)
{
    const hca_bind *what = &wqe->bind;
    hca_mw *mw = find(qp->device, what->old_key);
    hca_mr *mr = hca_mr_of(qp->device, qp->base.pd, what->lkey, false, what->addr, what->bytes, IBV_ACCESS_MW_BIND);
    bool writes = what->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    if (!mw || mw->mr || mw->rkey != what->old_key || mw->base.pd != qp->base.pd || !mr || !what->bytes)
        return false;
    if ((what->new_key ^ what->old_key) & ~0xffu || (writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
        return false;
    mw->mr = mr;
    mr->mws++;
    mw->rkey = what->new_key;
    mw->qp_id = qp->id;
    mw->addr = what->addr;
    mw->bytes = what->bytes;
    mw->access = what->access;
    hca.counts[SIMHCA_BINDS]++;
    return true;
}

static bool take_back(hca_qp *qp, uint32_t key)
{
    hca_mw *mw = find(qp->device, key);
    if (!mw || !mw->mr || mw->rkey != key || mw->qp_id != qp->id)
        return false;
    unbind(mw);
    return true;
}

bool hca_mw_execute(hca_qp *qp, const hca_wqe *wqe)
{
    return wqe->opcode == IBV_WR_BIND_MW ? bind(qp, wqe) : take_back(qp, wqe->imm);
}

hca_mr *hca_mr_of_mw(const hca_qp *qp, uint32_t key, uint64_t addr, uint64_t bytes, unsigned access)
{
    const hca_mw *mw = find(qp->device, key);
    if (!mw || !mw->mr || mw->rkey != key || mw->qp_id != qp->id || (mw->access & access) != access)
        return NULL;
    return addr >= mw->addr && bytes <= mw->bytes && addr - mw->addr <= mw->bytes - bytes ? mw->mr : NULL;
}

bool hca_has_mws(const hca_qp *qp)
{
    for (uint32_t i = 0; i < qp->device->mw_capacity; i++)
        if (qp->device->mws[i] && qp->device->mws[i]->mr && qp->device->mws[i]->qp_id == qp->id)
            return true;
    return false;
}
