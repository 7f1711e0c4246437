/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stall: the receiver's side of messages that wait for credit (sendq.h has the sender's). Where a receive or a probe finds nothing, each
 * sender of the channel that keeps messages back is asked for one with that tag, once. What is asked for is a hint: the sender sends beyond
 * its credit only for an ask that is newer than all that it has sent on the channel, and says STALLED with the tag again when such an ask
 * is due, so that one which was meanwhile answered, or cancelled, costs nothing.
 */
#ifndef WEFT_P2P_STALL_H
#define WEFT_P2P_STALL_H

#include <stdint.h>

#include "core/peer.h"
#include "p2p/chan.h"

/* Body of STALLED. tag of the header: which asks are to be made anew (WEFT_ANY_TAG: those by wildcard); the first one of a stall: all. */
typedef struct weft_stalled {
    uint32_t chan; /* the sender's id of its channel, and ... */
    uint32_t dst;  /* ... our rank in it: both come back in asks */
} weft_stalled;

/* Body of ASK. tag of the header: a tag, WEFT_ANY_TAG, or WEFT_ASK_ALL. */
typedef struct weft_ask {
    uint32_t seq; /* of the last frame from the sender that was handled before the ask */
} weft_ask;

#define WEFT_ASK_ALL WEFT_NOBODY /* the channel is gone: send everything, it costs no room */

/* Nothing at hand matches (src, tag): asks the senders that keep messages of this channel back. src may be WEFT_ANY. */
void weft_stall_ask(weft_chan *chan, int32_t src, int32_t tag);
void weft_stall_on_stalled(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_stall_on_drained(weft_peer *peer, const weft_hdr *hdr);
/* The channel refuses messages from now on (weft_chan.refuses): nothing is worth keeping back. */
void weft_stall_ask_all(weft_chan *chan);
/* The channel closes. */
void weft_stall_close(weft_chan *chan);

#endif
