/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hdr_csum: frames whose header is checked (WEFT_CHECKSUM). A CRC32C stands behind the body, of the header as it goes out and, where
 * the body is ours and not the user's (RTS, CTS), of that: a wrong address there is a wild write, a wrong name a job that hangs.
 * Users' bytes have sums of their own, from end to end (p2p/msg_csum). Called by core/peer for what it sends, by p2p/dispatch for what
 * comes.
 * Invariant: a frame that is not as it was sent is never acted upon: the job ends with a text that tells which frame, and where
 * it is wrong (only of a wrong check is said no more than a warning). Nothing is sent again, for nobody could say what else is
 * lost. Without the knob nothing is sealed.
 */
#ifndef WEFT_CORE_HDR_CSUM_H
#define WEFT_CORE_HDR_CSUM_H

#include "base/knob.h"
#include "core/peer.h"
#include "transport/iface.h"

#define WEFT_HDR_CSUM_BYTES 4

/* What a sealed frame needs beside its body. */
static inline uint32_t weft_hdr_csum_bytes(void) { return weft_knob.checksum ? WEFT_HDR_CSUM_BYTES : 0; }

/* weft_iface_send of a stamped frame, sealed. */
int weft_hdr_csum_send(weft_ep *ep, const weft_frame *frame);
/* *plain: the header of an arrived frame that says it is sealed, as it was before that. Ends the job when it is damaged. */
void weft_hdr_csum_verify(weft_peer *peer, const weft_hdr *hdr, const void *body, weft_hdr *plain);
/* A frame that says it is not sealed: is that true? Ends the job when this peer seals all of its frames. */
void weft_hdr_csum_missing(const weft_peer *peer, const weft_hdr *hdr);

#endif
