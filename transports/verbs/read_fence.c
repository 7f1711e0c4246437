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
        is_needed |= iface->rails[i].tells_early;
    if (!is_needed || iface->proof_sink)
        return 0;
    rc = verbs_slab_make(iface, sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &iface->proof_source);
    return rc ? rc : verbs_slab_make(iface, sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &iface->proof_sink);
}

void verbs_read_fence_close(verbs_iface *iface)
{
    if (iface->proof_source)
        verbs_slab_free(iface->proof_source);
    if (iface->proof_sink)
        verbs_slab_free(iface->proof_sink);
    iface->proof_source = iface->proof_sink = NULL;
}

void verbs_read_fence_tell(const verbs_rail *rail, verbs_address *address)
{
    const verbs_slab *slab = rail->iface->proof_source;
    if (!rail->tells_early || !slab || !slab->mr[rail->index])
        return;
    address->proof_addr = (uintptr_t)slab->memory;
    address->proof_key = slab->mr[rail->index]->rkey;
}

bool verbs_read_fence_needed(const verbs_rc_qp *link)
{
    return link->rail->tells_early && link->reads_room && link->ep->far.address[link->far_rail].proof_key;
}

void verbs_read_fence_fill(const verbs_rc_qp *link, verbs_work *work, struct ibv_sge *sge, struct ibv_send_wr *request)
{
    const verbs_address *far = &link->ep->far.address[link->far_rail];
    const verbs_slab *sink = link->ep->iface->proof_sink;
    *sge = (struct ibv_sge){(uintptr_t)sink->memory, 1, sink->lkey[link->rail->index]};
    *request = (struct ibv_send_wr){.wr_id = (uintptr_t)work, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .sg_list = sge,
                                    .num_sge = 1, .wr.rdma = {.remote_addr = far->proof_addr, .rkey = far->proof_key}};
}

/* Last frame posted before a request that is posted now. Frames use the home QP only; frames to be resent are not posted yet. */
static uint32_t last_posted(const verbs_rc_qp *link)
{
    const verbs_ep *ep = link->ep;
    return link == ep->home ? ep->tx_seq - ep->unsent : ep->tx_acked;
}

static void post_sync(verbs_rc_qp *link, bool proves)
{
    struct ibv_sge sge;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&link->sync, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    if (link->is_syncing || link->is_broken || !link->qp || link->sq_used >= link->sq_room || link->rail->cq_used >= link->rail->cq_room)
        return;
    if (proves)
        verbs_read_fence_fill(link, &link->sync, &sge, &request);
    link->sync = (verbs_work){.kind = VERBS_WORK_SYNC, .rail = link->rail->index, .link = link};
    link->sync_seq = last_posted(link);
    link->sync_proves = proves;
    link->is_syncing = verbs_post(link, &request, 1) == 0;
}

void verbs_rc_qp_sync(verbs_rc_qp *link)
{
    const verbs_ep *ep = link->ep;
    uint32_t last = last_posted(link);
    bool proves = verbs_read_fence_needed(link) && ep->tx_acked != last;
    bool is_untold = link == ep->home && ep->tx_done != last; /* the completion of a fragment does not complete the frames before it */
    if (link->unsignalled || is_untold || proves)
        post_sync(link, proves);
}

void verbs_rc_qp_prove(verbs_rc_qp *link)
{
    post_sync(link, verbs_read_fence_needed(link));
}
