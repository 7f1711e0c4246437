/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stall: receiver side of messages that wait for credit (sender side: sendq.h; protocol: docs/wire.md, "Credits"). A receive or probe
 * that finds no message sends ASK with its tag, once, to the stalled senders of the channel that may have it. The sender overdraws its
 * credit only for an ASK newer than its last message on the channel. Else it sends STALLED with the tag later, and the receiver asks
 * again if a receive is still posted. Called by recv, chan and dispatch under worker->lock.
 */
#ifndef WEFT_P2P_STALL_H
#define WEFT_P2P_STALL_H

#include <stdint.h>

#include "core/peer.h"
#include "p2p/chan.h"

/* Body of STALLED. The header's tag: ASKs with this tag (WEFT_ANY_TAG: wildcard ASKs) are sent again. First of a stall: all are sent. */
typedef struct weft_stalled {
    uint32_t chan; /* the sender's id of the channel, returned in ASK */
    uint32_t dst;  /* the receiver's rank in the channel, returned in ASK */
} weft_stalled;

/* Body of ASK. The header's tag: a tag, WEFT_ANY_TAG, or WEFT_ASK_ALL. */
typedef struct weft_ask {
    uint32_t seq; /* of the sender's last frame that the receiver had handled */
} weft_ask;

#define WEFT_ASK_ALL WEFT_PROC_NULL /* requests everything: the receiver drops the messages, or cannot track the stall */

/* No message matches (src, tag): sends ASK to src if it is stalled (WEFT_ANY: to all stalled senders of the channel). */
void weft_stall_ask(weft_chan *chan, int32_t src, int32_t tag);
/* Handlers of STALLED and DRAINED. */
void weft_stall_on_stalled(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_stall_on_drained(weft_peer *peer, const weft_hdr *hdr);
/* Sends ASK_ALL to all stalled senders: the channel refuses messages from now on (weft_chan.refuses). */
void weft_stall_ask_all(weft_chan *chan);
/* The channel closes: sends ASK_ALL to all stalled senders and frees the stalls. */
void weft_stall_close(weft_chan *chan);

#endif
