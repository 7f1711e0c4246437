/* SPDX-License-Identifier: BSD-3-Clause
 *
 * drain: end of an ep's epoch. (1) All its QPs go to ERR. (2) A marker posted behind all work completes when that is flushed. (3)
 * LAST_WQE_REACHED, or a timeout, shows that no QP holds a receive of the SRQ. (4) The CQs are polled until empty and received frames
 * delivered. (5) The QPs are destroyed. Then no completion of the epoch can follow, and the frame numbers sent to the peer are final.
 * Called by conn.c, from poll only.
 */
#include "transports/verbs/conn.h"

#define LAST_WQE_SILENT_NS 1000000ull  /* wait for a device that never reported LAST_WQE_REACHED */
#define LAST_WQE_IWARP_NS 20000000ull  /* wait on iWARP, which has no marker either */
#define LAST_WQE_NS 100000000ull       /* wait for a device that reports it */
#define DEAD_NS 5000000000ull          /* a marker that has not completed by now never will */

void verbs_drain_begin(verbs_ep *ep)
{
    verbs_handshake *meet = ep->meet;
    meet->drain_ns = ep->iface->now_ns();
    meet->flushed_ns = 0;
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            verbs_rc_qp_break(&ep->links[i]);
}

static bool is_flushed(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    bool all = true;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_rc_qp *link = &ep->links[i];
        if (!link->qp)
            continue;
        if (!meet->halves[i].is_marked)
            verbs_rc_qp_mark(link);
        all = all && meet->halves[i].is_flushed;
    }
    return all || now - meet->drain_ns > DEAD_NS;
}

/* A QP may hold a receive of the SRQ for a message of which it has received the first part. */
static bool holds_no_receives(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *meet = ep->meet;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        const verbs_rc_qp *link = &ep->links[i];
        uint64_t silent = link->rail->is_iwarp ? LAST_WQE_IWARP_NS : LAST_WQE_SILENT_NS;
        uint64_t patience = link->rail->tells_last_wqe ? LAST_WQE_NS : silent;
        if (link->qp && !meet->halves[i].is_made && !meet->halves[i].has_last_wqe && !link->rail->is_dead &&
            now - meet->flushed_ns < patience)
            return false;
    }
    return true;
}

/* Polls all completions that are in the CQs now; later ones belong to other eps. */
static void take_all(verbs_iface *iface)
{
    uint32_t max = 0, taken = 0;
    int n = 1;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        max += (uint32_t)iface->rails[i].cq->cqe;
    for (; n > 0 && taken <= max; taken += (uint32_t)n)
        n = verbs_drain(iface, 1 << 20);
}

bool verbs_drain_progress(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    meet->due_ns = now + LAST_WQE_SILENT_NS / 2;
    if (!is_flushed(ep, now))
        return false;
    if (!meet->flushed_ns)
        meet->flushed_ns = now;
    if (!holds_no_receives(ep, now))
        return false;
    take_all(ep->iface);
    verbs_rma_down(ep);
    verbs_flow_down(ep);
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            verbs_rc_qp_close(&ep->links[i]);
    ep->home = NULL;
    return true;
}
