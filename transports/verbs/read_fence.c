/* SPDX-License-Identifier: BSD-3-Clause
 *
 * read_fence: proof that posted work was placed at the peer (docs/verbs.md, "iWARP"). Most devices prove it by the completion. An iWARP
 * completion shows only that TCP has the bytes; a read behind them is answered after all before it was placed. So one byte of the peer's
 * memory is read, from a page for this purpose only, whose key is in the address. (siw answers a delayed read of zero bytes with bytes of
 * an earlier message.) Called by flow.c, rma.c, and files that need the completion of unsignalled work.
 */
#include <stddef.h>

#include "transports/verbs/flow.h"

/* Two pages: every peer may read the source, and the sink must be open to writes, as iWARP read responses are writes. */
int verbs_read_fence_open(verbs_iface *iface)
{
    bool is_needed = false;
    int rc;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        is_needed |= iface->rails[i].completes_early;
    if (!is_needed || iface->fence_sink)
        return 0;
    rc = verbs_slab_alloc(iface, sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &iface->fence_source);
    return rc ? rc : verbs_slab_alloc(iface, sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &iface->fence_sink);
}

void verbs_read_fence_close(verbs_iface *iface)
{
    if (iface->fence_source)
        verbs_slab_free(iface->fence_source);
    if (iface->fence_sink)
        verbs_slab_free(iface->fence_sink);
    iface->fence_source = iface->fence_sink = NULL;
}

void verbs_read_fence_get_addr(const verbs_rail *rail, verbs_address *address)
{
    const verbs_slab *slab = rail->iface->fence_source;
    if (!rail->completes_early || !slab || !slab->mr[rail->index])
        return;
    address->fence_addr = (uintptr_t)slab->memory;
    address->fence_rkey = slab->mr[rail->index]->rkey;
}

bool verbs_read_fence_needed(const verbs_rc_qp *qp)
{
    return qp->rail->completes_early && qp->reads_capacity && qp->ep->remote.address[qp->remote_rail].fence_rkey;
}

void verbs_read_fence_fill(const verbs_rc_qp *qp, verbs_work *work, struct ibv_sge *sge, struct ibv_send_wr *request)
{
    const verbs_address *remote = &qp->ep->remote.address[qp->remote_rail];
    const verbs_slab *sink = qp->ep->iface->fence_sink;
    *sge = (struct ibv_sge){(uintptr_t)sink->memory, 1, sink->lkey[qp->rail->index]};
    *request = (struct ibv_send_wr){.wr_id = (uintptr_t)work, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .sg_list = sge,
                                    .num_sge = 1, .wr.rdma = {.remote_addr = remote->fence_addr, .rkey = remote->fence_rkey}};
}

/* Last frame posted before a request that is posted now. Frames use the home QP only; frames to be resent are not posted yet. */
static uint32_t last_posted(const verbs_rc_qp *qp)
{
    const verbs_ep *ep = qp->ep;
    return qp == ep->home ? ep->tx_seq - ep->unsent : ep->tx_acked;
}

static void post_sync(verbs_rc_qp *qp, bool is_fence)
{
    struct ibv_sge sge;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&qp->sync, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    if (qp->is_syncing || qp->is_broken || !qp->ibv_qp || qp->sq_used >= qp->sq_capacity || qp->rail->cq_used >= qp->rail->cq_capacity)
        return;
    if (is_fence)
        verbs_read_fence_fill(qp, &qp->sync, &sge, &request);
    qp->sync = (verbs_work){.kind = VERBS_WORK_SYNC, .rail = qp->rail->index, .qp = qp};
    qp->sync_seq = last_posted(qp);
    qp->sync_is_fence = is_fence;
    qp->is_syncing = verbs_post(qp, &request, 1) == 0;
}

void verbs_rc_qp_sync(verbs_rc_qp *qp)
{
    const verbs_ep *ep = qp->ep;
    uint32_t last = last_posted(qp);
    bool is_fence = verbs_read_fence_needed(qp) && ep->tx_acked != last;
    bool is_pending = qp == ep->home && ep->tx_done != last; /* the completion of a fragment does not complete the frames before it */
    if (qp->unsignalled || is_pending || is_fence)
        post_sync(qp, is_fence);
}

void verbs_rc_qp_fence(verbs_rc_qp *qp)
{
    post_sync(qp, verbs_read_fence_needed(qp));
}
