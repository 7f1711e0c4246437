/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hdr_csum: header checksums (knob WEFT_CHECKSUM). A CRC32C follows the body; it covers the header as sent, and bodies of control frames
 * (RTS, CTS), where a wrong address or request id would corrupt memory or hang. p2p/msg_csum checks users' bytes end to end.
 * Callers: core/peer adds the checksum, p2p/dispatch verifies it. Requires the worker's lock.
 * Invariant: a damaged frame is never processed: the job aborts with a text that describes the damage; there is no retransmission.
 * If only the checksum itself is wrong, the frame is accepted with a warning.
 */
#ifndef WEFT_CORE_HDR_CSUM_H
#define WEFT_CORE_HDR_CSUM_H

#include "base/knob.h"
#include "core/peer_type.h"
#include "transport/iface.h"

#define WEFT_HDR_CSUM_BYTES 4

/* Bytes that the checksum adds to a body; 0: the knob is off. */
static inline uint32_t weft_hdr_csum_bytes(void) { return weft_knob.checksum ? WEFT_HDR_CSUM_BYTES : 0; }

/* weft_iface_send of a stamped frame, with a header checksum. */
int weft_hdr_csum_send(weft_ep *ep, const weft_frame *frame);
/* Verifies a received frame that has WEFT_HDR_CSUM and stores the header without the checksum in *plain. Aborts the job on damage. */
void weft_hdr_csum_verify(weft_peer *peer, const weft_hdr *hdr, const void *body, weft_hdr *plain);
/* Checks a received frame without WEFT_HDR_CSUM. Aborts the job if this peer sends header checksums: the flag was damaged. */
void weft_hdr_csum_missing(const weft_peer *peer, const weft_hdr *hdr);

#endif
