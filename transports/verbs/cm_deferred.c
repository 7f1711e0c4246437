/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_deferred: ids of rdma_cm that are over, and must not say so yet. Whoever ends a connection, or an attempt, says so in a datagram of the
 * kernel's. By a port that is down it arrives nowhere, and worse: where posting it fails, soft-RoCE's queue pair for such datagrams hears
 * nothing any more until its device is made anew (Linux 6.1): the port comes back, and nobody can connect to it by rdma_cm. Called by rdmacm.c.
 * Invariant: an id that is kept belongs to no link; what is still told of it is nobody's.
 */
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "transports/verbs/rdmacm.h"

struct verbs_cm_deferred {
    struct rdma_cm_id *id;
    const verbs_rail *rail;
    struct verbs_cm_deferred *next;
};

/* The device is asked: its event may be late. One that answers no more is gone, and the kernel has ended all that was there. */
bool verbs_cm_deferred_may_speak(const verbs_rail *rail)
{
    struct ibv_port_attr attr;
    return rail->is_iwarp || ibv_query_port(rail->context, rail->port_num, &attr) != 0 || attr.state == IBV_PORT_ACTIVE;
}

void verbs_cm_deferred_end(const verbs_rail *rail, struct rdma_cm_id *id)
{
    struct verbs_conn *conn = rail->iface->conn;
    struct verbs_cm_deferred *one = verbs_cm_deferred_may_speak(rail) ? NULL : malloc(sizeof *one);
    if (!one) {
        rdma_destroy_id(id);
        return;
    }
    id->context = NULL; /* the link may be gone when an event comes */
    *one = (struct verbs_cm_deferred){id, rail, conn->hushed};
    conn->hushed = one;
}

void verbs_cm_deferred_over(verbs_iface *iface, const verbs_rail *rail)
{
    for (struct verbs_cm_deferred **at = &iface->conn->hushed, *one; (one = *at) != NULL;) {
        if (rail && one->rail != rail) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        rdma_destroy_id(one->id);
        free(one);
    }
}
