/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface_select: opens a worker's transports and selects one for each peer. Shared memory is opened if the node has other ranks, a network
 * only if shared memory does not reach all ranks or the knob `transports` names one. Addresses of networks are published by modex.
 * Called by core/worker at open and by core/peer at first contact. Requires the worker's lock.
 */
#ifndef WEFT_CORE_IFACE_SELECT_H
#define WEFT_CORE_IFACE_SELECT_H

#include <stdbool.h>

#include "core/peer_type.h"
#include "core/worker_type.h"

/* Whether the knob `transports` allows this transport; self is always allowed. */
bool weft_iface_select_allow(const char *name);
/* Name of network transport `index` (from 0); *is_promising: a device for it seems active on this host. NULL: index past the last. */
const char *weft_iface_select_network(uint32_t index, bool *is_promising);
/* Opens the transports that the job needs: self, shared memory, networks. An error names the transport of the knob that does not open. */
int weft_iface_select_open(weft_worker *worker);
/* Opens peer->ep on the first iface that reaches the peer. May block for the peer's address. WEFT_E_PEER: no iface reaches it. */
int weft_iface_select_reach(weft_worker *worker, weft_peer *peer);

#endif
