/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hush: ids of rdma_cm that are over, and must not say so yet. Whoever ends a connection, or an attempt, says so in a datagram of the
 * kernel's. By a port that is down it arrives nowhere, and worse: where posting it fails, soft-RoCE's queue pair for such datagrams hears
 * nothing any more until its device is made anew (Linux 6.1): the port comes back, and nobody can connect to it by rdma_cm. Called by cm.c.
 * Invariant: an id that is kept belongs to no link; what is still told of it is nobody's.
 */
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "transports/verbs/cm.h"

struct verbs_hush {
    struct rdma_cm_id *id;
    const verbs_rail *rail;
    struct verbs_hush *next;
};

/* The device is asked: its event may be late. One that answers no more is gone, and the kernel has ended all that was there. */
bool verbs_hush_may_speak(const verbs_rail *rail)
{
    struct ibv_port_attr attr;
    return rail->is_iwarp || ibv_query_port(rail->context, rail->port_num, &attr) != 0 || attr.state == IBV_PORT_ACTIVE;
}

void verbs_hush_end(const verbs_rail *rail, struct rdma_cm_id *id)
{
    struct verbs_conn *conn = rail->iface->conn;
    struct verbs_hush *one = verbs_hush_may_speak(rail) ? NULL : malloc(sizeof *one);
    if (!one) {
        rdma_destroy_id(id);
        return;
    }
    id->context = NULL; /* the link may be gone when an event comes */
    *one = (struct verbs_hush){id, rail, conn->hushed};
    conn->hushed = one;
}

void verbs_hush_over(verbs_iface *iface, const verbs_rail *rail)
{
    for (struct verbs_hush **at = &iface->conn->hushed, *one; (one = *at) != NULL;) {
        if (rail && one->rail != rail) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        rdma_destroy_id(one->id);
        free(one);
    }
}
