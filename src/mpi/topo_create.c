/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_create: see topo_create.h. The communicator is made by weft_comm_create; the topology is attached before the caller gets it.
 */
#include "mpi/topo_create.h"

#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/exchange.h"

int weft_topo_check_comm(const weft_comm *parent)
{
    return !parent->is_inter ? 0
                             : weft_fail(WEFT_E_COMM, "%s is an intercommunicator: it cannot have a virtual topology",
                                         parent->traits.name[0] ? parent->traits.name : "comm");
}

int weft_topo_agree(weft_comm *parent, int rc)
{
    weft_exchange over = weft_exchange_over_comm(parent);
    return weft_exchange_agree(&over, rc, NULL, 0);
}

int weft_topo_create_from(weft_comm *parent, uint32_t count, uint32_t rank, const uint32_t *ranks, weft_topo *topo, int rc,
                          MPI_Comm *newcomm)
{
    weft_comm *comm = NULL;
    *newcomm = MPI_COMM_NULL;
    if (parent->is_inter) { /* an error on all members, which have no collective in common */
        weft_topo_drop(topo);
        return rc;
    }
    rc = weft_comm_create(parent, rc ? 0 : count, rank, ranks, rc, &comm);
    if (rc || !comm) {
        weft_topo_drop(topo);
        return rc;
    }
    comm->topo = topo;
    if (topo && topo->kind == MPI_CART)
        weft_cart_set_neighbors(topo, comm->rank);
    *newcomm = comm;
    return 0;
}

int weft_topo_create(weft_comm *parent, uint32_t count, const uint32_t *order, weft_topo *topo, int rc, MPI_Comm *newcomm)
{
    uint32_t *ranks = NULL, rank = (uint32_t)parent->rank;
    bool is_all = !order && count == (uint32_t)parent->size; /* then the parent's group is shared */
    if (!rc && count && !is_all && !(ranks = malloc(count * sizeof *ranks)))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the %u members of a communicator", count);
    if (ranks)
        rank = count;
    for (uint32_t i = 0; i < count && ranks; i++) {
        ranks[i] = order ? order[i] : i;
        if (ranks[i] == (uint32_t)parent->rank)
            rank = i;
    }
    rc = weft_topo_create_from(parent, rank < count ? count : 0, rank, ranks, topo, rc, newcomm);
    free(ranks);
    return rc;
}
