/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv: rendezvous, for messages too long (or too synchronous) to be sent unasked. RTS goes out, the receiver matches and chooses a
 * rung of the ladder:
 *     copy     CTS; the sender pushes DATA frames; the last one ends both sides
 *     get      the receiver reads the sender's memory; FIN ends the sender
 *     halves   CTS tells where; the receiver reads the lower half, the sender writes the upper one; a FIN each way
 * A message of no bytes (a synchronous send) is answered by FIN at once.
 */
#ifndef WEFT_P2P_RNDV_H
#define WEFT_P2P_RNDV_H

#include <stdint.h>

#include "core/peer.h"
#include "core/req.h"
#include "p2p/chan.h"
#include "p2p/match.h"

enum weft_rung { WEFT_RUNG_COPY, WEFT_RUNG_GET, WEFT_RUNG_HALVES, WEFT_RUNG_LAST };

/* Body of RTS. Followed by key_bytes of the sender's key. */
typedef struct weft_rts {
    uint64_t bytes;
    uint64_t addr;      /* of the data in the sender; 0: not one dense run, copy only */
    uint32_t name;      /* of the sender's request */
    uint32_t key_bytes;
} weft_rts;

/* Body of CTS. */
typedef struct weft_cts {
    uint64_t addr;      /* halves: of the receiver's buffer */
    uint64_t from, to;  /* which bytes of the message the sender is to move */
    uint32_t name;      /* of the receiver's request */
    uint32_t rung;
} weft_cts;

/* Sender: announces the message that req describes. */
int weft_rndv_announce(weft_peer *peer, weft_req *req);
/* Receiver: req matched this RTS. */
void weft_rndv_accept(weft_peer *peer, weft_req *req, const weft_head *head, const weft_rts *rts);
/* Receiver: nobody can ask for this message any more (its communicator was freed): the sender's request ends with an error. */
void weft_rndv_refuse(weft_peer *peer, const weft_rts *rts);
/* Frames of a rendezvous. */
void weft_rndv_cts(weft_peer *peer, const weft_head *head, const weft_cts *cts);
void weft_rndv_data(weft_peer *peer, const weft_head *head, const void *body);
void weft_rndv_fin(weft_peer *peer, const weft_head *head);
/* A get or put of ours ended (up.done; the cookie is the request). */
void weft_rndv_moved(weft_req *req, int rc);
/* Sends DATA of all transfers by copy until ports are full. */
int weft_rndv_pump(weft_lane *lane);

#endif
