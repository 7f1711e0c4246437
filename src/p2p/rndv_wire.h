/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_wire: bodies of RTS and CTS, and the protocols that they name (docs/wire.md). Types only.
 */
#ifndef WEFT_P2P_RNDV_WIRE_H
#define WEFT_P2P_RNDV_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* COPY   CTS; the sender sends DATA frames; the last one ends both sides.
 * GET    The receiver reads the sender's memory; its FIN ends the sender.
 * SPLIT  CTS carries the address; the receiver reads the lower half, the sender writes the upper half; one FIN each way.
 * PUT    One CTS with a key per segment; the sender writes it and sends FIN; the last FIN ends the receiver.
 * A message of 0 bytes (synchronous send) is answered by FIN at once. */
enum weft_rndv_proto { WEFT_RNDV_COPY, WEFT_RNDV_GET, WEFT_RNDV_SPLIT, WEFT_RNDV_PUT, WEFT_RNDV_LAST };

/* Flags of RTS. */
enum weft_rts_flag {
    WEFT_RTS_NO_RMA = 1,    /* the send buffer cannot or must not be registered: copy */
    WEFT_RTS_COLD = 2,      /* the send buffer was not registered before this message */
    WEFT_RTS_PERSISTENT = 8, /* send_id is valid: a persistent send that can use promises (p2p/promise) */
    WEFT_RTS_BOTH_WAYS = 4, /* recent rendezvous with the receiver overlapped in both directions (p2p/bidir.h) */
};
#define WEFT_RTS_HINT_SHIFT 4 /* flags >> 4: 1 + the protocol that the sender proposes; 0: none (p2p/rndv_select.h) */

/* Body of RTS. */
typedef struct weft_rts {
    uint64_t bytes;           /* of the message */
    uint64_t addr;            /* of the data in the sender; 0: not contiguous or empty, copy only */
    uint32_t req_id;          /* of the sender's request */
    union {
        uint32_t csum;        /* valid with WEFT_HDR_MSG_CSUM: CRC32C of the whole message in pack order */
        uint32_t send_id;     /* valid with WEFT_RTS_PERSISTENT, never with a checksum: of the persistent send */
    };
    uint8_t key_bytes, flags; /* flags: enum weft_rts_flag and the hint */
    uint8_t key[];            /* [key_bytes] of the sender's memory */
} weft_rts;
#define WEFT_RTS_BYTES offsetof(weft_rts, key)

/* Body of CTS. */
typedef struct weft_cts {
    uint64_t addr;            /* SPLIT, PUT: of the receiver's buffer */
    uint64_t from, to;        /* bytes [from, to) of the message that the sender must move */
    uint64_t want;            /* bytes to be moved in all, by both sides; the shorter of message and receive buffer */
    uint32_t req_id;          /* of the receiver's request */
    uint32_t index;           /* PUT: segment number from 1, returned in src of its FIN; else 0 */
    uint8_t proto, key_bytes; /* proto: enum weft_rndv_proto, or WEFT_CTS_CSUM */
    uint8_t key[];            /* [key_bytes] of the receiver's memory */
} weft_cts;
#define WEFT_FIN_CANCELLED 1 /* tag of a FIN: the RTS was cancelled */

#define WEFT_CTS_CSUM 0xff /* moves nothing: requests the checksum of the first `want` bytes, by a CSUM frame */
#define WEFT_CTS_BYTES offsetof(weft_cts, key)

#endif
