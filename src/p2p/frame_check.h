/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame_check: whether the header and body of a received frame fit each other. Frames come from processes of the same job and have
 * checksums only on demand (WEFT_CHECKSUM), so a damaged one may get here; it must not make this process read or write other memory.
 * Called by dispatch for every kind but EAGER, which has nothing to check: its body is bytes, and every iface knows how many have arrived.
 */
#ifndef WEFT_P2P_FRAME_CHECK_H
#define WEFT_P2P_FRAME_CHECK_H

#include <stdbool.h>

#include "core/peer.h"

/* True if the handler of its kind may read the body. */
bool weft_frame_is_sound(const weft_peer *peer, const weft_hdr *hdr, const void *body);
/* Ends the job, as the message of the frame would never complete. */
void weft_frame_refuse(const weft_peer *peer, const weft_hdr *hdr) __attribute__((noreturn, cold));

#endif
