/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager: messages that leave in one frame, and the choice between that and an announcement (rndv). Called by send for what has a
 * request, and by sendq for what waited for credit.
 */
#ifndef WEFT_P2P_EAGER_H
#define WEFT_P2P_EAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"

static inline uint32_t weft_chan_id_at(const weft_chan *chan, int dst)
{
    return weft_unlikely(chan->ids_out != NULL) ? chan->ids_out[dst] : chan->id_out;
}

static inline weft_hdr weft_eager_hdr(const weft_chan *chan, int dst, int tag, uint64_t bytes)
{
    return (weft_hdr){.kind = WEFT_FRAME_EAGER, .chan = weft_chan_id_at(chan, dst),
                       .src = (int32_t)chan->rank, .tag = tag, .bytes = (uint32_t)bytes};
}

/* A message that leaves in one frame, but not in one line: its body is copied into the frame. */
static inline void weft_eager_count(weft_worker *worker, uint64_t bytes)
{
    worker->counters[WEFT_COUNT_EAGER]++;
    worker->counters[WEFT_COUNT_EAGER_BYTES] += bytes;
    worker->counters[WEFT_COUNT_BYTES_COPIED] += bytes;
}

/* Starts the send that req describes: eager when it fits and credit allows, else announced. 0; WEFT_AGAIN: it must be announced and no name
 * is free; or an error. credit: what the peer lends, above 0, or 0: beyond the credit, so that only a short message is sent whole. */
int weft_eager_start(weft_peer *peer, weft_req *req, int32_t credit);

#endif
