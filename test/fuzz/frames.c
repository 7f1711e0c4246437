/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frames: frames of another rank, as an iface hands them up (p2p/dispatch and the handlers of all kinds). The worker has posted receives
 * and sends under way; the iface accepts every frame and completes no get or put. The input: one byte, a set of requests; then frames, each
 * a header (24 bytes, its length cut to what follows) and a body.
 */
#include "base/status.h"
#include "p2p/dispatch.h"
#include "p2p/frag.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/made_rank.h"
#include "type/type.h"

static void requests_start(made_rank *self, uint8_t set)
{
    const weft_type *byte = weft_type_of((void *)(uintptr_t)0x247);
    weft_chan *chan = &self->chan;
    if (set & 1)
        weft_irecv(chan, WEFT_ANY, WEFT_ANY_TAG, self->bufs[0], 500, byte, &self->reqs[0]);
    if (set & 2)
        weft_irecv(chan, 1, 7, self->bufs[1], MADE_BYTES, byte, &self->reqs[1]);
    if (set & 4)
        weft_irecv(chan, 1, 8, self->bufs[2], 1, made_rank_strided, &self->reqs[2]);
    if (set & 8)
        weft_isend(chan, 1, 9, self->bufs[3], 100, byte, WEFT_SEND_SYNC, &self->reqs[3]);
    if (set & 16)
        weft_isend(chan, 1, 9, self->bufs[4], MADE_BYTES, byte, WEFT_SEND_STANDARD, &self->reqs[4]);
    if (set & 32)
        weft_isend(chan, 1, 9, self->bufs[5], 1, made_rank_strided, WEFT_SEND_STANDARD, &self->reqs[5]);
}

static void frames_deliver(made_rank *self, fuzz_input *in)
{
    while (in->left) {
        weft_hdr hdr;
        size_t bytes;
        fuzz_take(in, &hdr, sizeof hdr);
        void *body = fuzz_take_copy(in, hdr.bytes < MADE_FRAME_MAX ? hdr.bytes : MADE_FRAME_MAX, &bytes);
        hdr.bytes = (uint32_t)bytes; /* as every iface makes sure */
        if (hdr.kind != WEFT_FRAME_BYE && !setjmp(made_rank_refused)) /* BYE ends the peer: test/sim */
            weft_dispatch_frame(NULL, &self->peer, &hdr, body);
        else
            in->left = 0;
        free(body);
        weft_frag_pump(&self->worker);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t set;
    made_rank *self;

    fuzz_take(&in, &set, 1);
    self = made_rank_open();
    requests_start(self, set);
    frames_deliver(self, &in);
    made_rank_close(self);
    return 0;
}
