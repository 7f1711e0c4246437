/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_frags: eager messages in fragments, for ifaces on which both sides copy (caps.frag). A waiting receiver copies one fragment
 * while the sender copies the next. EAGER_FRAGS announces the message, so that it is matched early; its FRAG frames follow
 * without another frame of this peer between them. Called by send and dispatch; guarded by the worker.
 */
#ifndef WEFT_P2P_EAGER_FRAGS_H
#define WEFT_P2P_EAGER_FRAGS_H

#include "core/peer.h"

/* Is the peer likely to wait for this message? True if it has returned all credits. If both ranks send at once, or in a stream of
 * messages, copies overlap anyway and fragments only add frames. */
static inline bool weft_eager_frags_help(const weft_peer *peer, uint64_t bytes)
{
    return weft_unlikely(bytes > peer->frag) && peer->credit == peer->credit_full;
}

/* Sends the message of `whole` in fragments. 0; WEFT_AGAIN: nothing was sent; or an error. A rest that the iface refuses is copied
 * and queued, so the body may be reused on return. Aborts the job on a failure midway. */
int weft_eager_frags_send(weft_peer *peer, const weft_frame *whole);

/* Handlers of EAGER_FRAGS and FRAG frames. */
void weft_eager_frags_on_first(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_eager_frags_on_next(weft_peer *peer, const weft_hdr *hdr, const void *body);

#endif
