/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msg_csum: messages that are checked from end to end (WEFT_CHECKSUM). The sender sums what lies in the user's buffer, the receiver
 * what landed in the other user's buffer; nothing in between is trusted. The sum covers channel, source, tag and payload. An
 * eager message carries it behind its body (a frame kind of its own), a rendezvous in its RTS. Of a rendezvous that is longer than
 * the receive only the beginning is moved: the receiver asks for the sum of that.
 * Who sends on what was damaged on its way to him (a collective goes on, collectives/sched.h) says so by the complement of the sum;
 * damage that looks like it, one in 2^32, is an error all the same.
 * Invariant: without the knob nobody comes here but by a frame that says it is summed: channels then keep no peers at hand
 * (weft_chan_resolve_peer), so that every send takes the long way, and ifaces are given another table (weft_p2p_open).
 */
#ifndef WEFT_P2P_MSG_CSUM_H
#define WEFT_P2P_MSG_CSUM_H

#include "base/knob.h"
#include "core/peer.h"
#include "core/req.h"
#include "transport/frame.h"

#define WEFT_MSG_CSUM_BYTES 4

/* What a message needs in its frame beside its body. */
static inline uint32_t weft_msg_csum_bytes(void) { return weft_knob.checksum ? WEFT_MSG_CSUM_BYTES : 0; }

/* Bytes of the message in an eager frame of either kind. */
static inline uint32_t weft_msg_csum_payload(const weft_hdr *hdr)
{
    return hdr->kind == WEFT_FRAME_EAGER_CSUM ? hdr->bytes - WEFT_MSG_CSUM_BYTES : hdr->bytes;
}

/* Of the message that req sends, with this header's channel, source and tag. */
uint32_t weft_msg_csum_of_send(const weft_req *req, const weft_hdr *hdr);
/* Of its first `bytes` bytes only. */
uint32_t weft_msg_csum_of_prefix(const weft_req *req, uint64_t bytes);
/* Makes an eager frame of req a summed one. req lives until the frame has left. */
void weft_msg_csum_frame(weft_frame *frame, weft_req *req);

/* The receiver's end: do the first `bytes` bytes in req's buffer, of the message that req->found tells, sum up to `sum`? 0, or
 * WEFT_E_CORRUPT with a text that tells which message, by which way, and where. */
int weft_msg_csum_check(const weft_req *req, const weft_peer *peer, uint64_t bytes, uint32_t sum, const char *way);
/* An eager message into the receive that it matched: rc for its end. */
int weft_msg_csum_copy_out(const weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* This rank checks, that one does not: told once for each. */
void weft_msg_csum_missing(weft_peer *peer);

#endif
