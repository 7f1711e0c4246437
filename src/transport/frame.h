/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame: unit of transfer of a transport: a 24-byte header and a body. Wire format, described in docs/wire.md.
 * All integers are little-endian (configure refuses big-endian hosts). Extensions must use free bits of `flags`; the size is fixed.
 */
#ifndef WEFT_TRANSPORT_FRAME_H
#define WEFT_TRANSPORT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_frame_kind {
    WEFT_FRAME_EAGER = 1, /* a whole message */
    WEFT_FRAME_RTS,       /* request to send: announces a message; body is a weft_rts (p2p/rndv.h) */
    WEFT_FRAME_CTS,       /* clear to send: the receive matched; chan is the sender's request id; body is a weft_cts */
    WEFT_FRAME_DATA,      /* fragment of a rendezvous by copy: chan is the receiver's request id, src:tag the 64-bit offset */
    WEFT_FRAME_FIN,       /* one side of a rendezvous has finished: chan is the other side's request id, tag the result */
    WEFT_FRAME_CREDIT,    /* no body; returns the credits in its header */
    WEFT_FRAME_BYE,       /* last frame of the sender; tag is an enum weft_bye */
    WEFT_FRAME_EAGER_CSUM, /* EAGER, followed by a CRC32C of channel, source, tag and message; bytes includes it (p2p/msg_csum.h) */
    WEFT_FRAME_CSUM,       /* checksum that the receiver requested (WEFT_CTS_CSUM): chan is its request id, src the checksum */
    WEFT_FRAME_NOTIFY,    /* library-internal message to the owner of channel `chan` from member src (p2p/chan.h) */
    WEFT_FRAME_EAGER_FRAGS, /* announces an eager message in fragments; body is its length, u64 */
    WEFT_FRAME_FRAG,      /* next fragment of the message announced by EAGER_FRAGS */
    WEFT_FRAME_STALLED,   /* messages of a channel wait for credit at the sender; body is a weft_stalled (p2p/stall.h) */
    WEFT_FRAME_DRAINED,   /* messages of that channel no longer wait for credit */
    WEFT_FRAME_ASK,       /* the receiver requests a message of a stalled channel; body is a weft_ask (p2p/stall.h) */
    WEFT_FRAME_CANCEL,    /* the sender cancels its RTS of request id `chan`; the receiver replies if it has not matched */
    WEFT_FRAME_PROMISE,   /* a started persistent receive promises its buffer to a persistent send; body is a weft_cts (p2p/promise.h) */
    WEFT_FRAME_USE,       /* the send uses the promise of the receiver's request id `chan` */
    WEFT_FRAME_REVOKE,    /* the receiver withdraws a promise; the sender replies */
    WEFT_FRAME_REVOKED,   /* the sender will not use the promise of the receiver's request id `chan`, unless it did before */
    WEFT_FRAME_LAST,
    WEFT_FRAME_HELD = WEFT_FRAME_LAST /* never sent: a message in a buffer of the library, as matching sees it (p2p/held.h) */
};

/* tag of BYE. FINAL: the sender's last frame. REST: its last one until it returns, for a session after MPI_Finalize. BACK: it returned.
 * SEEN: the answer to a REST over a network. */
enum weft_bye { WEFT_BYE_FINAL, WEFT_BYE_REST, WEFT_BYE_BACK, WEFT_BYE_SEEN };

/* Is it a frame that matches receives, or a part of one? */
static inline bool weft_frame_is_message(uint8_t kind)
{
    return kind == WEFT_FRAME_EAGER || kind == WEFT_FRAME_RTS || kind == WEFT_FRAME_EAGER_CSUM || kind == WEFT_FRAME_EAGER_FRAGS ||
           kind == WEFT_FRAME_FRAG;
}

typedef struct weft_hdr {
    uint32_t seq;     /* frame number, per peer, from 1; wraps; used only when a peer's iface changes */
    uint8_t kind;     /* enum weft_frame_kind */
    uint8_t flags;    /* WEFT_HDR_... bits */
    uint16_t credits; /* eager credits returned to the receiver of this frame, in units of WEFT_CREDIT_BYTES */
    uint32_t chan;    /* the *receiver's* id of the channel, or a request id (see the kinds) */
    int32_t src;      /* sender's rank in that channel */
    int32_t tag;
    uint32_t bytes;   /* length of the body */
} weft_hdr;

_Static_assert(sizeof(weft_hdr) == 24, "the wire header is 24 bytes");

#define WEFT_HDR_MSG_CSUM 1 /* RTS: weft_rts has a message checksum */
#define WEFT_HDR_CSUM 2     /* a CRC32C of the header follows the body; bytes includes it (core/hdr_csum.h) */

/* The header as three 64-bit words, so that hot paths keep it in registers. */
static inline uint64_t weft_hdr_word0(uint32_t seq, enum weft_frame_kind kind, uint32_t credits)
{
    return seq | (uint64_t)kind << 32 | (uint64_t)credits << 48;
}
static inline uint64_t weft_hdr_word1(uint32_t chan, uint32_t src) { return chan | (uint64_t)src << 32; }
static inline uint64_t weft_hdr_word2(uint32_t tag, uint32_t bytes) { return tag | (uint64_t)bytes << 32; }

#define WEFT_CREDIT_BYTES 128

typedef struct weft_frame weft_frame;

/* A frame to send. The transport allocates the buffer of the body and copies `body` there, or calls pack(frame, place) if pack is not
 * NULL; pack writes exactly hdr.bytes. */
struct weft_frame {
    weft_hdr hdr;
    const void *body;
    void (*pack)(const weft_frame *frame, void *place);
    void *zcopy_ctx; /* argument of callbacks.done; not NULL: send may return INPROGRESS and read the body until then; not with pack */
    bool more;       /* another frame to the same ep follows at once, or a poll: the iface may start both together */
};

#endif
