/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_deferred: rdma_cm ids whose destruction waits until their port is active. Called by rdmacm.c. Destroying an id makes the kernel send
 * a datagram. On a port that is down it is lost; where posting it fails (soft-RoCE, Linux 6.1), the kernel's CM QP of that device
 * receives nothing until the device is recreated, and no rdma_cm connection to the port can be made.
 * Invariant: a deferred id belongs to no QP; its events are ignored.
 */
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "transports/verbs/conn.h"

struct verbs_cm_deferred {
    struct rdma_cm_id *id;
    const verbs_rail *rail;
    struct verbs_cm_deferred *next;
};

/* Queries the device, as its event may be late. A device that does not answer is gone, and the kernel has ended its ids. */
bool verbs_cm_deferred_can_send(const verbs_rail *rail)
{
    struct ibv_port_attr attr;
    return rail->is_iwarp || ibv_query_port(rail->context, rail->port_num, &attr) != 0 || attr.state == IBV_PORT_ACTIVE;
}

void verbs_cm_deferred_end(const verbs_rail *rail, struct rdma_cm_id *id)
{
    struct verbs_conn *conn = rail->iface->conn;
    struct verbs_cm_deferred *one = verbs_cm_deferred_can_send(rail) ? NULL : malloc(sizeof *one);
    if (!one) {
        rdma_destroy_id(id);
        return;
    }
    id->context = NULL; /* the QP may be gone when an event comes */
    *one = (struct verbs_cm_deferred){id, rail, conn->deferred};
    conn->deferred = one;
}

void verbs_cm_deferred_flush(verbs_iface *iface, const verbs_rail *rail)
{
    for (struct verbs_cm_deferred **at = &iface->conn->deferred, *one; (one = *at) != NULL;) {
        if (rail && one->rail != rail) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        rdma_destroy_id(one->id);
        free(one);
    }
}
