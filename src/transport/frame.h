/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame: what crosses a transport in one piece: a 24-byte header and a body. This is the wire; docs/wire.md tells its
 * meaning kind by kind. All integers are little-endian (a big-endian host is refused at configure time).
 * The header may only ever grow by using the free bits of `flags`.
 */
#ifndef WEFT_TRANSPORT_FRAME_H
#define WEFT_TRANSPORT_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum weft_frame_kind {
    WEFT_FRAME_EAGER = 1, /* a whole message */
    WEFT_FRAME_RTS,       /* request to send: the message stays with the sender; body is a weft_rts (p2p/rndv.h) */
    WEFT_FRAME_CTS,       /* clear to send, the receiver matched: chan names the sender's request; body is a weft_cts */
    WEFT_FRAME_DATA,      /* a chunk of a rendezvous by copy: chan names the receiver's request, src:tag is the 64-bit offset */
    WEFT_FRAME_FIN,       /* one side of a rendezvous is over: chan names the other's request, tag is the result */
    WEFT_FRAME_CREDIT,    /* nothing but the credits in its header */
    WEFT_FRAME_BYE,       /* the sender sends no more after this frame */
    WEFT_FRAME_EAGER_CSUM, /* EAGER with a CRC32C of channel, source, tag and message behind it; bytes counts it (p2p/sum.h) */
    WEFT_FRAME_CSUM,       /* the sum that a receiver asked for (WEFT_CTS_CSUM): chan names its request, src is the sum */
    WEFT_FRAME_NOTIFY,    /* for the owner of channel `chan`, from its member src: no message of a program (p2p/chan.h) */
    WEFT_FRAME_EAGER_FRAGS, /* an eager message comes in fragments; body is its length, u64 */
    WEFT_FRAME_FRAG,      /* the next fragment of the message that EAGER_FRAGS announced */
    WEFT_FRAME_STALLED,   /* a channel's messages wait at their sender for credit; body is a weft_stalled (p2p/stall.h) */
    WEFT_FRAME_DRAINED,   /* ... and wait no more */
    WEFT_FRAME_ASK,       /* a receiver's word that it needs a message of such a channel; body is a weft_ask (p2p/stall.h) */
    WEFT_FRAME_CANCEL,    /* the sender wants the RTS back whose request `chan` names; answered if it has matched nothing */
    WEFT_FRAME_LAST
};

typedef struct weft_hdr {
    uint32_t seq;     /* per peer, counts every frame from 1, wraps; looked at only when a peer's iface changes */
    uint8_t kind;     /* enum weft_frame_kind */
    uint8_t flags;    /* WEFT_HEAD_..., else 0 */
    uint16_t credits; /* eager credits that this frame gives back, in units of WEFT_CREDIT_BYTES */
    uint32_t chan;    /* the id that the *receiver* gave the channel */
    int32_t src;      /* the sender's rank in that channel */
    int32_t tag;
    uint32_t bytes;   /* of the body */
} weft_hdr;

_Static_assert(sizeof(weft_hdr) == 24, "the wire header is 24 bytes");

#define WEFT_HDR_MSG_CSUM 1 /* RTS: weft_rts.sum is set */
#define WEFT_HDR_CSUM 2 /* a CRC32C of the header stands behind the body; bytes counts it (core/seal.h) */

/* The header as three words, for hot paths that keep it in registers. */
static inline uint64_t weft_hdr_word0(uint32_t seq, enum weft_frame_kind kind, uint32_t credits)
{
    return seq | (uint64_t)kind << 32 | (uint64_t)credits << 48;
}
static inline uint64_t weft_hdr_word1(uint32_t chan, uint32_t src) { return chan | (uint64_t)src << 32; }
static inline uint64_t weft_hdr_word2(uint32_t tag, uint32_t bytes) { return tag | (uint64_t)bytes << 32; }

#define WEFT_CREDIT_BYTES 128

typedef struct weft_frame weft_frame;

/* A frame to be sent. The transport chooses the body's final place and has it filled there:
 * by memcpy of body when fill is NULL, else by fill(frame, place), which writes exactly hdr.bytes. */
struct weft_frame {
    weft_hdr hdr;
    const void *body;
    void (*pack)(const weft_frame *frame, void *place);
    void *zcopy_ctx; /* not NULL: the body may be kept and read until callbacks.done names this (send's INPROGRESS); never together with fill */
    bool more; /* another frame to the same ep follows at once, or else a poll: the iface may start both together */
};

#endif
