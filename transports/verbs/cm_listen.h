/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_listen: rdma_cm's event channel and the listener of each rail. Owned by conn; events are handled by rdmacm.c.
 */
#ifndef WEFT_TRANSPORTS_VERBS_CM_LISTEN_H
#define WEFT_TRANSPORTS_VERBS_CM_LISTEN_H

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include "transports/verbs/verbs.h"

struct verbs_rdmacm {
    struct rdma_event_channel *channel; /* does not block */
    struct rdma_cm_id *listeners[VERBS_RAILS];
};

/* The IP address that a RoCE or iWARP GID stands for. port: host order. */
void verbs_cm_address(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *to);

#endif
