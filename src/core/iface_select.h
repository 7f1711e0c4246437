/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface_select: which transports a worker opens, and how a peer is reached through them. Shared memory where a node has company, a network
 * only where somebody stands beyond it (or the knob `transports` asks for one); networks put their addresses out for whoever asks.
 */
#ifndef WEFT_CORE_IFACE_SELECT_H
#define WEFT_CORE_IFACE_SELECT_H

#include <stdbool.h>

#include "core/peer.h"
#include "core/worker.h"

/* May a transport of this name be used? The knob `transports`; self always. */
bool weft_iface_select_allow(const char *name);
/* The networks there may be, by number: the name, and whether a device for it seems to be active here. NULL after the last. */
const char *weft_iface_select_network(uint32_t index, bool *is_promising);
/* Opens what this job needs: self first, then shared memory, then networks. An error names what the knob asked for in vain. */
int weft_iface_select_open(weft_worker *worker);
/* Makes peer->ep by the first iface that reaches it. May wait for the peer's address. */
int weft_iface_select_reach(weft_worker *worker, weft_peer *peer);

#endif
