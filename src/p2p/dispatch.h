/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dispatch: entry of all received frames into layer 4 (p2p): the switch on the frame kind. Opens a world with point-to-point.
 * Runs inside an iface's poll under the worker's lock; may send replies, never waits.
 */
#ifndef WEFT_P2P_DISPATCH_H
#define WEFT_P2P_DISPATCH_H

#include "core/world.h"

/* Opens a world with point-to-point. src/mpi and tests call it instead of weft_world_open; same contract. */
int weft_p2p_open(weft_boot *boot, int thread_level, weft_world **world);
/* weft_iface_callbacks.recv_frame; cookie: the weft_peer. For ifaces, and for tests that feed frames. */
void weft_dispatch_frame(void *owner, void *cookie, const weft_hdr *hdr, const void *body);

#endif
