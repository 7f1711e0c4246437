/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pt2pt: the commonest point-to-point calls (MPI 5.0 chapter 3), inline in weft_mpi_X and in the short forms of other languages
 * (src/api/entries-quick.c). Their callers have checked all arguments and hold the worker's lock.
 */
#ifndef WEFT_MPI_PT2PT_H
#define WEFT_MPI_PT2PT_H

#include <mpi.h>
#include <stdint.h>

#include "mpi/comm.h"
#include "mpi/request.h"
#include "p2p/p2p.h"

static inline int weft_pt2pt_send(const void *buf, MPI_Count count, const weft_type *type, int dest, int tag, weft_comm *comm)
{
    return weft_send_standard(buf, (uint64_t)count, type, dest, tag, comm->chan);
}

static inline int weft_pt2pt_isend(const void *buf, MPI_Count count, const weft_type *type, int dest, int tag, weft_comm *comm,
                                   MPI_Request *request)
{
    weft_req *req;
    int rc = weft_isend_standard(buf, (uint64_t)count, type, dest, tag, comm->chan, &req);
    return weft_request_return(comm, comm->chan, req, rc, request);
}

/* found: set if the result is 0 or WEFT_E_TRUNCATE; then the status is too. */
static inline int weft_pt2pt_recv(void *buf, MPI_Count count, const weft_type *type, int source, int tag, weft_comm *comm,
                                  weft_recv_info *found)
{
    return weft_recv_plain(buf, (uint64_t)count, type, source, tag, comm->chan, found);
}

static inline int weft_pt2pt_irecv(void *buf, MPI_Count count, const weft_type *type, int source, int tag, weft_comm *comm,
                                   MPI_Request *request)
{
    weft_req *req;
    int rc = weft_irecv(comm->chan, source, tag, buf, (uint64_t)count, type, &req);
    return weft_request_return(comm, comm->chan, req, rc, request);
}

#endif
