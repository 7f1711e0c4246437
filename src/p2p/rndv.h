/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: rendezvous, for messages too long (or too synchronous) to be sent eagerly. RTS goes out, the receiver matches and chooses a
 * protocol of the ladder:
 *     copy     CTS; the sender pushes DATA frames; the last one ends both sides
 *     get      the receiver reads the sender's memory; FIN ends the sender
 *     halves   CTS tells where; the receiver reads the lower half, the sender writes the upper one; a FIN each way
 *     put      a CTS with a key for each segment; the sender writes it and says so by a FIN; the last one ends the receiver
 * With checksums, a receiver that takes only the beginning of a message asks for the sum of that first (WEFT_CTS_CSUM).
 * A message of no bytes (a synchronous send) is answered by FIN at once.
 *
 * Registered memory. Where the iface moves registered memory only, a key travels in RTS (get) or CTS (put). A buffer that is not
 * registered yet is taken segment by segment, so that one is pinned while the one before it moves; or it is copied this time and
 * pinned behind; or pinned at once when it is short. Whatever cannot be pinned goes by DATA: nothing ever fails for want of a key.
 */
#ifndef WEFT_P2P_RNDV_H
#define WEFT_P2P_RNDV_H

#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "p2p/match.h"

enum weft_rndv_proto { WEFT_RNDV_COPY, WEFT_RNDV_GET, WEFT_RNDV_SPLIT, WEFT_RNDV_PUT, WEFT_RNDV_LAST };

/* What RTS says of the sender's memory. */
enum weft_rts_flag {
    WEFT_RTS_NO_RMA = 1, /* it cannot be registered, or must not be: copy */
    WEFT_RTS_COLD = 2,    /* it was not registered before this message */
    WEFT_RTS_BOTH_WAYS = 4, /* lately rendezvous with the receiver went both ways at once */
};
#define WEFT_RTS_HINT_SHIFT 4 /* flags above: 1 + the protocol that the sender asks for; 0: none (p2p/ladder.h) */

/* Body of RTS. Followed by key_bytes of the sender's key. */
typedef struct weft_rts {
    uint64_t bytes;
    uint64_t addr;      /* of the data in the sender; 0: not one dense run, copy only */
    uint32_t req_id;      /* of the sender's request */
    uint32_t csum;       /* with WEFT_CHECKSUM: CRC32C of the whole message in pack order */
    uint8_t key_bytes, flags;
    uint8_t key[];
} weft_rts;
#define WEFT_RTS_BYTES offsetof(weft_rts, key)

/* Body of CTS. Followed by key_bytes of the receiver's key. */
typedef struct weft_cts {
    uint64_t addr;      /* halves, put: of the receiver's buffer */
    uint64_t from, to;  /* which bytes of the message the sender is to move */
    uint64_t want;      /* of its bytes in all: fewer than announced when the receive buffer is shorter */
    uint32_t req_id;      /* of the receiver's request */
    uint32_t index;     /* put: of the segment; its FIN names it in src, counted from 1 */
    uint8_t proto, key_bytes; /* protocol: enum weft_rndv_proto, or WEFT_CTS_CSUM */
    uint8_t key[];
} weft_cts;
#define WEFT_FIN_CANCELLED 1 /* tag of a FIN: the RTS was given back */

#define WEFT_CTS_CSUM 0xff /* nothing is to be moved: tell the sum of the first `want` bytes by a SUM frame */
#define WEFT_CTS_BYTES offsetof(weft_cts, key)

/* Sender: announces the message that req describes. 0, WEFT_AGAIN: no name is free; or an error. */
int weft_rndv_send_rts(weft_peer *peer, weft_req *req);
/* Sender: asks for an announced message back. It ends in any case: cancelled, or as its receive takes it. */
void weft_rndv_cancel(weft_req *req);
/* Receiver: req matched this RTS. */
void weft_rndv_recv_rts(weft_peer *peer, weft_req *req, const weft_hdr *hdr, const weft_rts *rts);
/* Receiver: nobody can ask for this message any more (its communicator was freed): the sender's request ends with an error. */
void weft_rndv_reject_rts(weft_peer *peer, const weft_rts *rts, int rc);
/* Frames of a rendezvous. */
void weft_rndv_cts(weft_peer *peer, const weft_hdr *hdr, const weft_cts *cts);
void weft_rndv_data(weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_rndv_csum(weft_peer *peer, const weft_hdr *hdr);
void weft_rndv_fin(weft_peer *peer, const weft_hdr *hdr);
void weft_rndv_on_cancel(weft_peer *peer, const weft_hdr *hdr);

#endif
