/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notice: see notice.h.
 */
#include "rma/notice.h"

#include <stdlib.h>

#include "rma/notify.h"

static weft_rma_notice *first_of(const weft_rma_peer *peer) { return weft_container(peer->notices.next, weft_rma_notice, link); }

static void count(weft_window *window, uint32_t notify)
{
    if (notify && notify <= window->notify->targets[window->rank].count)
        weft_notify_count(window, window->rank, notify - 1);
}

bool weft_rma_notice_begin(weft_window *window, weft_rma_peer *peer, uint32_t notify, uint64_t sequence, weft_rma_notice **out)
{
    weft_rma_notice *notice;
    *out = NULL;
    if (!window->notify)
        return true;
    *out = notice = malloc(sizeof *notice);
    if (!notice)
        return false;
    *notice = (weft_rma_notice){.notify = notify, .sequence = sequence};
    weft_list_append(&peer->notices, &notice->link);
    return true;
}

void weft_rma_notice_end(weft_window *window, weft_rma_peer *peer, weft_rma_notice *notice, bool is_good)
{
    if (!notice)
        return;
    notice->is_over = true;
    if (!is_good)
        notice->notify = 0;
    while (!weft_list_is_empty(&peer->notices) && first_of(peer)->is_over) {
        weft_rma_notice *first = first_of(peer);
        weft_list_remove(&first->link);
        count(window, first->notify);
        free(first);
    }
}

bool weft_rma_notice_now(weft_window *window, weft_rma_peer *peer, uint32_t notify, uint64_t sequence)
{
    weft_rma_notice *notice;
    if (!notify || !window->notify)
        return true;
    if (weft_list_is_empty(&peer->notices)) {
        count(window, notify);
        return true;
    }
    if (!weft_rma_notice_begin(window, peer, notify, sequence, &notice))
        return false;
    notice->is_over = true;
    return true;
}

uint64_t weft_rma_notice_counted(const weft_rma_peer *peer, uint64_t performed)
{
    for (const weft_list_link *link = peer->notices.next; link != &peer->notices; link = link->next) {
        const weft_rma_notice *notice = weft_container(link, weft_rma_notice, link);
        if (notice->notify && notice->sequence)
            return performed < notice->sequence ? performed : notice->sequence - 1;
    }
    return performed;
}

void weft_rma_notices_free(weft_rma_peer *peer)
{
    while (!weft_list_is_empty(&peer->notices)) {
        weft_rma_notice *first = first_of(peer);
        weft_list_remove(&first->link);
        free(first);
    }
}
