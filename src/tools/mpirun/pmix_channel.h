/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_channel: flow-controlled channel for pmix_msg between a PMIx server and the head, over a ctrl_conn.
 * A message is sent in fragments, at most PMIX_CHANNEL_WINDOW bytes unacknowledged, so that long ones neither delay other frames nor fill
 * the socket of a stopped head. Bodies are refbufs: one that goes to all nodes is stored once. A channel belongs to the loop's thread;
 * refbufs may be released by any thread.
 */
#ifndef WEFT_MPIRUN_PMIX_CHANNEL_H
#define WEFT_MPIRUN_PMIX_CHANNEL_H

#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/pmix_msg.h"

#define PMIX_FRAGMENT_MAX ((size_t)16 << 10)
#define PMIX_CHANNEL_WINDOW ((size_t)64 << 10) /* together with a daemon's output WINDOW (daemon.c) it fits the head's socket buffer */

typedef struct pmix_channel {
    struct pmix_channel_item *first, *last; /* send queue */
    size_t sent;                            /* bytes sent of the first message's body */
    size_t in_flight, unacked;              /* bytes sent and unacknowledged; bytes received and not acknowledged yet */
    size_t queued_bytes;                    /* bytes of all queued bodies */
    pmix_msg incoming;
    size_t received;                    /* bytes received of incoming.body, which is allocated with the first fragment */
    bool is_receiving;
} pmix_channel;

/* Queues a message and takes over its body; call pmix_channel_flush afterwards. 0 or -1: out of memory, the body is released. */
int pmix_channel_queue(pmix_channel *self, const pmix_msg *what);
/* Sends as many fragments as the window allows. */
void pmix_channel_flush(pmix_channel *self, ctrl_conn *to);
/* Handles a CTRL_FRAGMENT. 1: *whole is a complete message, whose body the caller owns; 0: the message is incomplete; -1: the connection
 * has failed. */
int pmix_channel_recv(pmix_channel *self, ctrl_conn *from, const ctrl_frame *frame, pmix_msg *whole);
/* Handles a CTRL_FRAGMENT_ACK: the peer acknowledges `bytes`. */
void pmix_channel_acked(pmix_channel *self, size_t bytes);
void pmix_channel_close(pmix_channel *self);

#endif
