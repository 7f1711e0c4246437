/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msg_csum: end-to-end CRC32C of messages (WEFT_CHECKSUM), from the sender's user buffer to the receiver's. It covers channel,
 * source, tag and payload. EAGER_CSUM carries it after the body, a rendezvous in its RTS. If a receive is shorter than a rendezvous,
 * the receiver requests the checksum of the prefix (WEFT_CTS_CSUM). Called by send, dispatch and rndv under worker->lock.
 * Invariant: without the knob only a frame with a checksum leads here. With it channels keep no peers, so that every send takes
 * the slow path (weft_chan_resolve_peer), and ifaces get other callbacks (weft_p2p_open).
 */
#ifndef WEFT_P2P_MSG_CSUM_H
#define WEFT_P2P_MSG_CSUM_H

#include "base/knob.h"
#include "core/peer.h"
#include "core/req.h"
#include "transport/frame.h"

#define WEFT_MSG_CSUM_BYTES 4

/* Bytes that a message needs in its frame besides its body. */
static inline uint32_t weft_msg_csum_bytes(void) { return weft_knob.checksum ? WEFT_MSG_CSUM_BYTES : 0; }

/* Message bytes in an EAGER or EAGER_CSUM frame. */
static inline uint32_t weft_msg_csum_payload(const weft_hdr *hdr)
{
    return hdr->kind == WEFT_FRAME_EAGER_CSUM ? hdr->bytes - WEFT_MSG_CSUM_BYTES : hdr->bytes;
}

/* Checksum of the message that req sends, with this header's channel, source and tag. Complemented if req->send_mode is TAINTED: the sender
 * passes on damaged data (collectives/sched.h) and the receive must fail. */
uint32_t weft_msg_csum_of_send(const weft_req *req, const weft_hdr *hdr);
/* The same of its first `bytes` bytes. */
uint32_t weft_msg_csum_of_prefix(const weft_req *req, uint64_t bytes);
/* Turns an eager frame of req into EAGER_CSUM. req must live until the frame has left. */
void weft_msg_csum_frame(weft_frame *frame, weft_req *req);

/* Compares the first `bytes` bytes in req's buffer with the checksum `sum`; req->recv_info identifies the message. 0, or WEFT_E_CORRUPT
 * with a text that names the message, the protocol (`way`) and the damaged bit. */
int weft_msg_csum_check(const weft_req *req, const weft_peer *peer, uint64_t bytes, uint32_t sum, const char *way);
/* Copies an EAGER_CSUM message into its matched receive and checks it. Returns the rc for weft_req_end. */
int weft_msg_csum_copy_out(const weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body);

/* Warns, once per peer, that it sends without checksums while this rank checks. */
void weft_msg_csum_missing(weft_peer *peer);

#endif
