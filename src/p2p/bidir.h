/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bidir: detects rendezvous with one peer in both directions at once. A transfer that overlaps one of the other direction raises the
 * score, any other lowers it. RTS carries the state to the peer (WEFT_RTS_BOTH_WAYS). Called by rndv; guarded by the worker.
 */
#ifndef WEFT_P2P_BIDIR_H
#define WEFT_P2P_BIDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"

#define WEFT_BIDIR_MAX 8

static inline void weft_bidir_update(weft_bidir *bidir, bool overlaps)
{
    if (overlaps)
        bidir->score = bidir->score < WEFT_BIDIR_MAX - 1 ? bidir->score + 2 : WEFT_BIDIR_MAX;
    else if (bidir->score)
        bidir->score--;
    if (!bidir->score) /* the peer may send no further RTS that clears the flag */
        bidir->remote = false;
}

/* A send was announced. The caller passes the result to weft_bidir_send_end. */
static inline uint32_t weft_bidir_send_begin(weft_bidir *bidir)
{
    bidir->sends++;
    return bidir->received;
}

static inline void weft_bidir_send_end(weft_bidir *bidir, uint32_t received)
{
    bidir->sends--;
    if (bidir->accepted == received) /* no receive was in flight when the send began, none has begun since */
        weft_bidir_update(bidir, false);
}

/* A receive matched. remote: the sender's RTS has WEFT_RTS_BOTH_WAYS. */
static inline void weft_bidir_recv_begin(weft_bidir *bidir, bool remote)
{
    bidir->accepted++;
    weft_bidir_update(bidir, bidir->sends);
    bidir->remote = remote;
}

static inline void weft_bidir_recv_end(weft_bidir *bidir) { bidir->received++; }

/* Is the next send likely to overlap a receive? Own sends in flight do not count. */
static inline bool weft_bidir_expects_recv(const weft_bidir *bidir)
{
    return bidir->score || bidir->remote || bidir->accepted != bidir->received;
}

/* Is the next receive likely to overlap a send? */
static inline bool weft_bidir_expects_send(const weft_bidir *bidir) { return bidir->score || bidir->remote || bidir->sends; }

#endif
