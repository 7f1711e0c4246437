/* SPDX-License-Identifier: BSD-3-Clause
 *
 * drain: the end of a path's epoch. All its queue pairs are put into error; a marker behind everything that was posted comes
 * back when all that is flushed; the device says (or some time tells) that no receive of the shared queue is in a pair's hands
 * any more; what arrived before is taken out of the completion queues and delivered; then the queue pairs go. After that
 * nothing of the epoch can turn up, and the numbers told to the peer are final. Called by conn.c, from poll only.
 */
#include "transports/verbs/conn.h"

#define LAST_WQE_SILENT_NS 1000000ull  /* a device that never said so has done its work before this */
#define LAST_WQE_IWARP_NS 20000000ull  /* has no marker either */
#define LAST_WQE_NS 100000000ull       /* one that does say so */
#define DEAD_NS 5000000000ull          /* a marker that has not come back by now never will */

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

/* A queue pair may still hold a receive that it took from the shared queue for a message of which it saw the beginning. */
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

/* Everything that stands in the queues now; what comes meanwhile is other paths'. */
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
