/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bridge: the connection of two groups that make an intercommunicator, and the tags of calls that make communicators. Messages over it:
 * exchange.h.
 */
#ifndef WEFT_MPI_BRIDGE_H
#define WEFT_MPI_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/comm.h"

/* The connection of two groups through their leaders. local: intracommunicator of this group; leader: its member that sends over chan to
 * remote_leader, a rank of the channel. Only the leader uses chan. */
typedef struct weft_bridge {
    weft_comm *local;
    weft_chan *chan;
    uint32_t leader, remote_leader;
    int tag;
    weft_team *team; /* of an intercommunicator, by calls that make others of it (weft_team_begin_making); NULL: none */
} weft_bridge;

/* Tags of messages on a communicator's collective channel that are no collective's: negative, which collectives/stop.c leaves alone. Two
 * tags of the program share one only if they differ by a multiple of 2^30 - 16. */
#define WEFT_EXCHANGE_TAG_INTERCOMM (-15) /* between the groups of an intercommunicator, by collective calls on it */
static inline int weft_exchange_tag(int tag, bool is_bridge) { return -16 - 2 * (tag % 0x3ffffff0) - is_bridge; }
/* The tag that the program gave for a bridge, for reports. */
static inline int weft_exchange_program_tag(int tag) { return (-17 - tag) / 2; }

#endif
