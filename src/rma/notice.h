/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notice: order of the notifications of operations that arrive by messages (inbox.c). An operation of an origin that waits for a message
 * of its own (DATA of a put, REPLY of a get) is a notice in the origin's list; a notification is counted when no notice before it is left.
 * Private to src/rma. Requires worker->lock.
 */
#ifndef WEFT_RMA_NOTICE_H
#define WEFT_RMA_NOTICE_H

#include "rma/message.h"

typedef struct weft_rma_notice {
    weft_list_link link;   /* in peer->notices, in order of the HEADs */
    uint32_t notify;       /* counter + 1; 0: none is counted */
    bool is_over;
    uint64_t sequence;     /* of a put, among the operations without REPLY; 0: of a get */
} weft_rma_notice;

/* An operation has begun. *notice NULL: the window has no counters. False: out of memory. */
bool weft_rma_notice_begin(weft_window *window, weft_rma_peer *peer, uint32_t notify, uint64_t sequence, weft_rma_notice **notice);
/* It has ended; is_good: it is performed. notice may be NULL. Frees it when those before it have ended. */
void weft_rma_notice_end(weft_window *window, weft_rma_peer *peer, weft_rma_notice *notice, bool is_good);
/* The operation was performed at once: counts, or leaves a notice. False: out of memory. */
bool weft_rma_notice_now(weft_window *window, weft_rma_peer *peer, uint32_t notify, uint64_t sequence);
/* Of `performed` operations without REPLY, how many have been counted too, in their order. */
uint64_t weft_rma_notice_counted(const weft_rma_peer *peer, uint64_t performed);
void weft_rma_notices_free(weft_rma_peer *peer);

#endif
