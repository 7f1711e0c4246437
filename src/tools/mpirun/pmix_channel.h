/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_channel: flow-controlled channel for pmix_msg between a PMIx server and the head, over a ctrl_conn.
 * A message is sent in fragments, at most PMIX_CHANNEL_WINDOW bytes unacknowledged, so that long ones neither delay other frames nor fill
 * the socket of a stopped head. Bodies are refbufs: one that goes to all nodes is stored once. A channel belongs to the loop's thread;
 * refbufs may be released by any thread.
 */
#ifndef WEFT_MPIRUN_PMIX_CHANNEL_H
#define WEFT_MPIRUN_PMIX_CHANNEL_H

#include <stdatomic.h>

#include "tools/mpirun/ctrl_conn.h"

#define REFBUF_MAX ((size_t)256 << 20) /* bytes of one body */
#define PMIX_FRAGMENT_MAX ((size_t)16 << 10)
#define PMIX_CHANNEL_WINDOW ((size_t)64 << 10) /* together with a daemon's output WINDOW (daemon.c) it fits the head's socket buffer */

typedef struct refbuf {
    atomic_uint refs;
    size_t bytes;
    char data[];
} refbuf;

/* Both return one reference; NULL: out of memory or more than REFBUF_MAX. */
refbuf *refbuf_alloc(size_t bytes);
refbuf *refbuf_copy(const void *data, size_t bytes);
refbuf *refbuf_acquire(refbuf *self);
/* Releases a reference; NULL is allowed. Any thread. */
void refbuf_release(refbuf *self);

enum pmix_msg_kind {
    /* server to head; answered by PMIX_MSG_DONE with the same ticket */
    PMIX_MSG_GATHER = 1, /* rank: enum gather_kind; seconds: timeout; body: u32 count, u32 ranks[count] (0: all), data */
    PMIX_MSG_FETCH,      /* get the data that `rank` has put; seconds: timeout */
    PMIX_MSG_PUBLISH,    /* bodies of the three: nameserver.h */
    PMIX_MSG_LOOKUP,
    PMIX_MSG_UNPUBLISH,
    /* server to head, not answered */
    DMODEX_RESP,         /* reply to DMODEX_REQ: ticket, status, data */
    PMIX_MSG_GONE,       /* `rank` has ended */
    /* head to server */
    PMIX_MSG_DONE,       /* ticket, status, data */
    DMODEX_REQ,          /* get the data that `rank` has put; ticket */
    /* both ways */
    PMIX_MSG_EVENT,      /* rank: source; status: event code; body: u32 range, attributes */
};

enum gather_kind { GATHER_FENCE = 1, GATHER_CONNECT, GATHER_DISCONNECT, GATHER_PMI };

enum pmix_msg_status { PMIX_MSG_OK, PMIX_MSG_NONE, PMIX_MSG_LATE, PMIX_MSG_LARGE, PMIX_MSG_TWICE, PMIX_MSG_UNABLE };

typedef struct pmix_msg {
    uint32_t kind;
    int32_t status;
    uint64_t ticket;
    uint32_t rank, seconds; /* seconds: 0: no timeout */
    refbuf *body;           /* NULL: empty. The message's owner releases it */
} pmix_msg;

typedef struct pmix_channel {
    struct pmix_channel_item *first, *last; /* send queue */
    size_t sent;                    /* bytes sent of the first message's body */
    size_t lent, owed;              /* bytes sent and unacknowledged; bytes received and not acknowledged yet */
    size_t waiting;                 /* bytes of all queued bodies */
    pmix_msg coming;
    size_t came;                    /* bytes received of coming.body, which is allocated with the first fragment */
    bool is_coming;
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
