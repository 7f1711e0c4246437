/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bidir: do rendezvous with a peer go both ways at once? Each transfer that overlaps one of the other direction raises the peer's score,
 * each that overlaps none lowers it, so that a program's next phase is judged by its own transfers. Both sides tell each other in RTS.
 * Called by rndv; guarded by the worker.
 */
#ifndef WEFT_P2P_BIDIR_H
#define WEFT_P2P_BIDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"

#define WEFT_BIDIR_MAX 8

static inline void weft_bidir_note(weft_bidir *bidir, bool overlaps)
{
    if (overlaps)
        bidir->score = bidir->score < WEFT_BIDIR_MAX - 1 ? bidir->score + 2 : WEFT_BIDIR_MAX;
    else if (bidir->score)
        bidir->score--;
    if (!bidir->score) /* it may send no RTS any more that says so */
        bidir->remote = false;
}

/* Send: announced. Keep what is returned for weft_bidir_send_end. */
static inline uint32_t weft_bidir_send_begin(weft_bidir *bidir)
{
    bidir->sends++;
    return bidir->received;
}

static inline void weft_bidir_send_end(weft_bidir *bidir, uint32_t received)
{
    bidir->sends--;
    if (bidir->accepted == received) /* none was under way at its begin, none began since */
        weft_bidir_note(bidir, false);
}

/* Receive: matched. remote: does the sender expect the other direction? */
static inline void weft_bidir_recv_begin(weft_bidir *bidir, bool remote)
{
    bidir->accepted++;
    weft_bidir_note(bidir, bidir->sends);
    bidir->remote = remote;
}

static inline void weft_bidir_recv_end(weft_bidir *bidir) { bidir->received++; }

/* Does the next send share both sides' time with a receive? Sends of ours under way say nothing of that. */
static inline bool weft_bidir_expects_recv(const weft_bidir *bidir)
{
    return bidir->score || bidir->remote || bidir->accepted != bidir->received;
}

/* Does the next receive share it with a send? */
static inline bool weft_bidir_expects_send(const weft_bidir *bidir) { return bidir->score || bidir->remote || bidir->sends; }

#endif
