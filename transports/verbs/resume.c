/* SPDX-License-Identifier: BSD-3-Clause
 *
 * resume: frames across a break. Down: what was posted is flushed; numbered frames stay in path->sent, the others are dropped. Up: what the
 * peer says it has delivered is let go, the rest is sent again, in order, as credits come. Called by conn.c and drain.c.
 * Invariant: a number is given to one thing only. That of a notification which was lost with its write goes again as an empty frame.
 */
#include "base/log.h"
#include "transports/verbs/op.h"

static void reset_link(verbs_link *link)
{
    if (link->rail)
        link->rail->cq_used -= link->sq_used;
    link->sq_used = link->reads_used = link->unsignalled = 0;
    link->flying_bytes = 0;
    link->is_syncing = false;
}

void verbs_flow_down(verbs_path *path)
{
    verbs_ring_down(path);
    for (uint8_t i = 0; i < path->link_count; i++)
        reset_link(&path->links[i]);
    for (weft_link *link; (link = weft_list_take(&path->control)) != NULL;)
        verbs_slot_give(path->port, weft_container(link, verbs_slot, link));
    path->unsent = 0;
    for (weft_link *link = path->sent.next; link != &path->sent; link = link->next) {
        weft_container(link, verbs_slot, link)->is_posted = false;
        path->unsent++;
    }
    verbs_flow_drop_held(path);
    verbs_lend_end(path);
    path->is_garbled = false;
    path->credits = path->proofs = 0;
    path->has_token = false;
    if (path->by_tell.next != &path->by_tell)
        weft_list_remove(&path->by_tell);
}

/* Those that did not arrive: the puts notify anew, when their bytes have gone again; the numbers go as empty frames. */
static void disown_notices(verbs_path *path)
{
    for (weft_link *link = path->sent.next; link != &path->sent; link = link->next)
        verbs_flow_disown(weft_container(link, verbs_slot, link));
}

void verbs_flow_up(verbs_path *path, uint32_t far_rx_seq, uint32_t credits)
{
    path->credits = credits ? credits - 1 : 0;
    path->has_token = credits > 0;
    for (weft_link *link; (link = weft_list_first(&path->sent)) != NULL;) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (verbs_seq_diff(slot->seq, far_rx_seq) > 0)
            break;
        weft_list_remove(link);
        verbs_flow_let_go(path, slot, true);
        path->unsent--;
    }
    disown_notices(path);
    if (verbs_seq_diff(far_rx_seq, path->tx_acked) < 0 || verbs_seq_diff(far_rx_seq, path->tx_seq) > 0) {
        weft_log_error("rank %u says that it has received our frames up to %u; it acknowledged %u, and we sent %u", path->name.rank,
                       far_rx_seq, path->tx_acked, path->tx_seq);
        verbs_conn_doom(path, "a frame that was acknowledged did not arrive");
        return;
    }
    path->tx_acked = path->tx_done = path->far_rx = far_rx_seq;
    if (path->unsent)
        verbs_flow_tell(path);
}

void verbs_flow_give_up(verbs_path *path)
{
    verbs_flow_down(path);
    for (weft_link *link; (link = weft_list_take(&path->sent)) != NULL;)
        verbs_flow_let_go(path, weft_container(link, verbs_slot, link), false);
    path->unsent = 0;
}

/* Sends again what the last epoch did not bring over, as far as credits go. How many. */
int verbs_flow_resend(verbs_path *path)
{
    int n = 0;
    verbs_post_gather(path->port);
    for (weft_link *link = path->sent.next; link != &path->sent && path->unsent; link = link->next) {
        verbs_slot *slot = weft_container(link, verbs_slot, link);
        if (slot->is_posted)
            continue;
        if (!path->credits || path->state != VERBS_UP || !path->is_confirmed || !path->home->qp || path->home->is_broken ||
            !verbs_link_has_room(path->home, 1))
            break;
        path->credits--;
        verbs_flow_stamp(path, slot, slot->wire->prefix.kind, 0);
        path->unsent--;
        path->port->counts[VERBS_COUNT_RESENT]++;
        n++;
        verbs_flow_post(path, slot, false);
    }
    verbs_post_go(path->port);
    return n;
}
