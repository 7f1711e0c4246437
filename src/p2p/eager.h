/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager: sends a message in one frame, or by rendezvous if it is too long. Called by send for sends with a request, and by sendq
 * for sends that waited for credit. Requires worker->lock.
 */
#ifndef WEFT_P2P_EAGER_H
#define WEFT_P2P_EAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"

static inline weft_hdr weft_eager_hdr(const weft_chan *chan, int dst, int tag, uint64_t bytes)
{
    return (weft_hdr){.kind = WEFT_FRAME_EAGER, .chan = weft_chan_id_at(chan, dst),
                       .src = (int32_t)chan->rank, .tag = tag, .bytes = (uint32_t)bytes};
}

/* Counts an eager message that is not inline (send_short): its body is copied into the frame. */
static inline void weft_eager_count(weft_worker *worker, uint64_t bytes)
{
    worker->counters[WEFT_COUNT_EAGER]++;
    worker->counters[WEFT_COUNT_EAGER_BYTES] += bytes;
    worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
}

/* Starts the send of req: eager if it fits and credit allows, else by RTS. 0; WEFT_AGAIN: no state free for the RTS; or an error.
 * credit: credits left; 0: overdraft, only messages up to OVERDRAFT_MAX bytes go eagerly. req may be ended and freed on return. */
int weft_eager_start(weft_peer *peer, weft_req *req, int32_t credit);

#endif
