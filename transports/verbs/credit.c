/* SPDX-License-Identifier: BSD-3-Clause
 *
 * credit: receive credits of all peers: how many each holds, growth and recall. Called by flow.c; by conn.c for the first credits
 * (verbs_credit_grant_first).
 * Invariant: every SRQ has as many receives posted as credits are granted over all peers, and one more: the one being delivered. A QP's own
 * receive queue has as many as its ep grants, and one more.
 */
#include "transports/verbs/flow.h"

uint32_t verbs_credit_reserved(const verbs_ep *ep)
{
    return ep->has_grant ? VERBS_CREDITS_FIRST + (ep->granted > 1 ? ep->granted - 1 : 0) : 0;
}

static bool has_receives(verbs_ep *ep, uint32_t more)
{
    return verbs_receives_reach(ep->iface, ep->iface->receives_granted + more + 1) &&
           verbs_recv_queues_reach(ep, verbs_credit_reserved(ep) + more + 1);
}

/* Reserves up to `want` more receives; returns their number. `must` ignores the bound. */
static uint32_t reserve(verbs_ep *ep, uint32_t want, bool must)
{
    verbs_iface *iface = ep->iface;
    uint32_t bound = verbs_receives_bound(iface);
    while (want && (must || iface->receives_granted + want <= bound) && !has_receives(ep, want))
        want = must ? 0 : want / 2;
    if (!must && iface->receives_granted + want > bound)
        want = 0;
    iface->receives_granted += want;
    return want;
}

/* The first credit is reserved while the ep is up, others are reserved now. */
uint32_t verbs_credit_grant(verbs_ep *ep)
{
    uint32_t want = ep->target > ep->granted ? ep->target - ep->granted : 0, first = !ep->granted;
    if (!want || !ep->has_grant)
        return 0;
    if (want > first)
        want = first + reserve(ep, want - first, false);
    verbs_receives_post(ep->iface);
    ep->granted += want;
    return want;
}

void verbs_credit_return(verbs_ep *ep, uint32_t count)
{
    for (; count && ep->granted; count--)
        if (ep->granted-- > 1)
            ep->iface->receives_granted--;
}

static void recall(verbs_iface *iface, const verbs_ep *but)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
        if (ep == but || ep->target <= 1)
            continue;
        ep->target = 1;
        if (ep->granted > 1)
            verbs_flow_control(ep, VERBS_KIND_RECALL, NULL);
    }
}

uint32_t verbs_credit_grant_first(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    if (!ep->has_grant) {
        if (!reserve(ep, VERBS_CREDITS_FIRST, true)) {
            recall(iface, ep);
            return 0;
        }
        ep->has_grant = true;
        ep->granted = VERBS_CREDITS_FIRST - 1;
        ep->token_due = false;
        if (!ep->target)
            ep->target = iface->is_small ? 1 : 2;
    }
    return VERBS_CREDITS_FIRST;
}

void verbs_credit_end(verbs_ep *ep)
{
    if (!ep->has_grant)
        return;
    verbs_credit_return(ep, ep->granted);
    ep->iface->receives_granted -= VERBS_CREDITS_FIRST;
    ep->has_grant = ep->token_due = false;
}
