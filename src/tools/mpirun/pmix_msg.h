/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_msg: messages between the PMIx and PMI servers of the nodes and the head (pmix_head). A pmix_channel carries them.
 */
#ifndef WEFT_MPIRUN_PMIX_MSG_H
#define WEFT_MPIRUN_PMIX_MSG_H

#include <stdint.h>

#include "tools/mpirun/refbuf.h"

enum pmix_msg_kind {
    /* server to head; answered by PMIX_MSG_DONE with the same ticket */
    PMIX_MSG_COLL = 1, /* rank: enum pmix_coll_kind; seconds: timeout; body: u32 count, u32 ranks[count] (0: all), data */
    PMIX_MSG_FETCH,    /* get the data that `rank` has put; seconds: timeout */
    PMIX_MSG_PUBLISH,  /* bodies of the three: nameserver.h */
    PMIX_MSG_LOOKUP,
    PMIX_MSG_UNPUBLISH,
    /* server to head, not answered */
    PMIX_MSG_DMODEX_RESP, /* reply to PMIX_MSG_DMODEX_REQ: ticket, status, data */
    PMIX_MSG_RANK_ENDED,  /* `rank` has ended */
    /* head to server */
    PMIX_MSG_DONE,       /* ticket, status, data */
    PMIX_MSG_DMODEX_REQ, /* get the data that `rank` has put; ticket */
    /* both ways */
    PMIX_MSG_EVENT,      /* rank: source; status: event code; body: u32 range, attributes */
};

enum pmix_coll_kind { PMIX_COLL_FENCE = 1, PMIX_COLL_CONNECT, PMIX_COLL_DISCONNECT, PMIX_COLL_PMI };

enum pmix_msg_status { PMIX_MSG_OK, PMIX_MSG_NOT_FOUND, PMIX_MSG_TIMEOUT, PMIX_MSG_NO_MEMORY, PMIX_MSG_DUPLICATE, PMIX_MSG_INVALID };

typedef struct pmix_msg {
    uint32_t kind;
    int32_t status;
    uint64_t ticket;
    uint32_t rank, seconds; /* seconds: 0: no timeout */
    refbuf *body;           /* NULL: empty. The message's owner releases it */
} pmix_msg;

/* Where pmix_head and its parts send messages for the nodes' servers. */
typedef struct pmix_msg_sender {
    void (*send)(void *owner, uint32_t node, const pmix_msg *what); /* sends a message to a node's server; takes over the body */
    void *owner;
} pmix_msg_sender;

#endif
