/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ports: which transports a lane opens, and how a peer is reached through them. Shared memory where a node has company, a network
 * only where somebody stands beyond it (or the knob `transports` asks for one); networks put their cards out for whoever asks.
 */
#ifndef WEFT_CORE_PORTS_H
#define WEFT_CORE_PORTS_H

#include <stdbool.h>

#include "core/lane.h"
#include "core/peer.h"

/* May a transport of this name be used? The knob `transports`; self always. */
bool weft_ports_allow(const char *name);
/* The networks there may be, by number: the name, and whether a device for it seems to be active here. NULL after the last. */
const char *weft_ports_network(uint32_t index, bool *is_promising);
/* Opens what this job needs: self first, then shared memory, then networks. An error names what the knob asked for in vain. */
int weft_ports_open(weft_lane *lane);
/* Makes peer->path by the first port that reaches it. May wait for the peer's card. */
int weft_ports_reach(weft_lane *lane, weft_peer *peer);

#endif
