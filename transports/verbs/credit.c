/* SPDX-License-Identifier: BSD-3-Clause
 *
 * credit: receive credits of all peers: how many each holds, growth and recall. Called by flow.c; by conn.c for the first credits
 * (verbs_flow_grant_credit).
 * Invariant: every rail has as many receives posted as credits are granted over all peers, and one more: the one being delivered.
 */
#include "transports/verbs/flow.h"

/* Reserves up to `want` more receives; returns their number. `must` ignores the bound. */
static uint32_t reserve(verbs_iface *iface, uint32_t want, bool must)
{
    uint32_t bound = verbs_receives_bound(iface);
    while (want && (must || iface->receives_lent + want <= bound) && !verbs_receives_reach(iface, iface->receives_lent + want + 1))
        want = must ? 0 : want / 2;
    if (!must && iface->receives_lent + want > bound)
        want = 0;
    iface->receives_lent += want;
    return want;
}

/* The first credit is reserved while the ep is up, others are reserved now. */
uint32_t verbs_lend_credit(verbs_ep *ep)
{
    uint32_t want = ep->target > ep->lent ? ep->target - ep->lent : 0, first = !ep->lent;
    if (!want || !ep->is_lent)
        return 0;
    if (want > first)
        want = first + reserve(ep->iface, want - first, false);
    verbs_receives_post(ep->iface);
    ep->lent += want;
    return want;
}

void verbs_credit_return(verbs_ep *ep, uint32_t count)
{
    for (; count && ep->lent; count--)
        if (ep->lent-- > 1)
            ep->iface->receives_lent--;
}

static void recall(verbs_iface *iface, const verbs_ep *but)
{
    for (weft_list_link *link = iface->paths.next; link != &iface->paths; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_port);
        if (ep == but || ep->target <= 1)
            continue;
        ep->target = 1;
        if (ep->lent > 1)
            verbs_flow_control(ep, VERBS_KIND_RECALL, NULL);
    }
}

uint32_t verbs_flow_grant_credit(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    if (!ep->is_lent) {
        if (!reserve(iface, VERBS_CREDITS_FIRST, true)) {
            recall(iface, ep);
            return 0;
        }
        ep->is_lent = true;
        ep->lent = VERBS_CREDITS_FIRST - 1;
        ep->owes_token = false;
        if (!ep->target)
            ep->target = iface->is_small ? 1 : 2;
    }
    return VERBS_CREDITS_FIRST;
}

void verbs_credit_end(verbs_ep *ep)
{
    if (!ep->is_lent)
        return;
    verbs_credit_return(ep, ep->lent);
    ep->iface->receives_lent -= VERBS_CREDITS_FIRST;
    ep->is_lent = ep->owes_token = false;
}
