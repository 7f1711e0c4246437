/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_frags: eager messages in fragments, for ifaces on which both sides copy (caps.frag). A waiting receiver copies one fragment
 * while the sender copies the next. EAGER_FRAGS announces the message, so that it is matched early; its FRAG frames follow
 * without another frame of this peer between them. Called by send and dispatch; guarded by the worker.
 */
#ifndef WEFT_P2P_EAGER_FRAGS_H
#define WEFT_P2P_EAGER_FRAGS_H

#include "core/peer.h"

#define WEFT_EAGER_FRAGS_OUT 3  /* messages of a length that the peer may have to consume when another one goes in fragments */
#define WEFT_EAGER_FRAGS_SHIFT 14
#define WEFT_EAGER_FRAGS_SURE 4 /* announced messages in a row that the peer must copy: a trial of its (rndv_select) suffices */

/* Is the peer likely to wait for this message? True if it has returned all credits. If both ranks send at once, or in a stream of
 * messages, copies overlap anyway and fragments only add frames. */
static inline bool weft_eager_frags_help(const weft_peer *peer, uint64_t bytes)
{
    return weft_unlikely(bytes > peer->frag) && peer->credit == peer->credit_full;
}

/* Longest message sent to the peer eagerly in fragments, bytes; 0: the knobs or its iface want none longer than an eager one. */
uint32_t weft_eager_frags_max(const weft_peer *peer);

static inline weft_copied *weft_eager_frags_copied(weft_peer *peer, uint64_t bytes)
{
    uint32_t class = bytes >> WEFT_EAGER_FRAGS_SHIFT ? 63 - (uint32_t)__builtin_clzll(bytes >> WEFT_EAGER_FRAGS_SHIFT) : 0;
    return &peer->copied[class < WEFT_COPIED_CLASSES ? class : WEFT_COPIED_CLASSES - 1];
}

/* The peer has answered an announced message. If it copies again and again, runs of unannounced ones become longer,
 * up to 32. */
static inline void weft_eager_frags_answered(weft_peer *peer, uint64_t bytes, bool is_copied)
{
    weft_copied *copied = weft_eager_frags_copied(peer, bytes);
    copied->answers = is_copied ? copied->answers + (copied->answers < WEFT_EAGER_FRAGS_SURE + 3) : 0;
    copied->run = copied->answers < WEFT_EAGER_FRAGS_SURE ? 0 : (uint8_t)(4 << (copied->answers - WEFT_EAGER_FRAGS_SURE));
}

/* The same for a message longer than an eager one, which fragments save RTS and CTS: if the peer copies announced ones of this length, and
 * has few to consume, as where both ranks send at once. One in some is announced nevertheless: the peer measures and chooses anew. */
static inline bool weft_eager_frags_help_long(weft_peer *peer, uint64_t bytes)
{
    weft_copied *copied = weft_eager_frags_copied(peer, bytes);
    if (bytes > peer->frags_max || !copied->run || peer->credit_full - peer->credit > WEFT_EAGER_FRAGS_OUT * weft_peer_cost(bytes))
        return false;
    copied->run--;
    return true;
}

/* Sends the message of `whole` in fragments. 0; WEFT_AGAIN: nothing was sent; or an error. Fragments that the iface refuses are copied
 * and queued, so the body may be reused on return. Aborts the job on a failure midway. */
int weft_eager_frags_send(weft_peer *peer, const weft_frame *whole);

/* Handlers of EAGER_FRAGS and FRAG frames. */
void weft_eager_frags_on_first(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_eager_frags_on_next(weft_peer *peer, const weft_hdr *hdr, const void *body);

/* The peer is lost: the message of which fragments have come ends with rc. */
void weft_eager_frags_lost(weft_peer *peer, int rc);

#endif
