/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lend: the receive slots that peers may fill: how many each has, where more come from, who gives some up. Called by flow.c; conn.c asks for
 * the first ones (verbs_flow_lend).
 * Invariant: every rail has as many receives posted as are lent over all peers, and one more: the one that is being delivered.
 */
#include "transports/verbs/flow.h"

/* Reserves up to `want` more receives; how many. Beyond the bound nothing is made but for `must`. */
static uint32_t reserve(verbs_port *port, uint32_t want, bool must)
{
    uint32_t bound = verbs_receives_bound(port);
    while (want && (must || port->receives_lent + want <= bound) && !verbs_receives_reach(port, port->receives_lent + want + 1))
        want = must ? 0 : want / 2;
    if (!must && port->receives_lent + want > bound)
        want = 0;
    port->receives_lent += want;
    return want;
}

/* Credits to put into a frame: the first is reserved for as long as the path is up, others are found now. They are posted before they
 * are told. */
uint32_t verbs_lend(verbs_path *path)
{
    uint32_t want = path->target > path->lent ? path->target - path->lent : 0, first = !path->lent;
    if (!want || !path->is_lent)
        return 0;
    if (want > first)
        want = first + reserve(path->port, want - first, false);
    verbs_receives_post(path->port);
    path->lent += want;
    return want;
}

/* The peer has used a credit. */
void verbs_lend_back(verbs_path *path, uint32_t count)
{
    for (; count && path->lent; count--)
        if (path->lent-- > 1)
            path->port->receives_lent--;
}

static void recall(verbs_port *port, const verbs_path *but)
{
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        verbs_path *path = weft_container(link, verbs_path, by_port);
        if (path == but || path->target <= 1)
            continue;
        path->target = 1;
        if (path->lent > 1)
            verbs_flow_control(path, VERBS_KIND_RECALL, NULL);
    }
}

uint32_t verbs_flow_lend(verbs_path *path)
{
    verbs_port *port = path->port;
    if (!path->is_lent) {
        if (!reserve(port, VERBS_CREDITS_FIRST, true)) {
            recall(port, path);
            return 0;
        }
        path->is_lent = true;
        path->lent = VERBS_CREDITS_FIRST - 1;
        path->owes_token = false;
        if (!path->target)
            path->target = port->is_small ? 1 : 2;
    }
    return VERBS_CREDITS_FIRST;
}

void verbs_lend_end(verbs_path *path)
{
    if (!path->is_lent)
        return;
    verbs_lend_back(path, path->lent);
    path->port->receives_lent -= VERBS_CREDITS_FIRST;
    path->is_lent = path->owes_token = false;
}
