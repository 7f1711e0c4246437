/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pt2pt: point-to-point calls (MPI 5.0 chapter 3) on top of p2p. Called by the generated entries, which have checked all arguments and
 * hold the worker's lock. A blocking send is one tail call. MPI_Sendrecv: sendrecv.c.
 */
#include <mpi.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/pt2pt.h"
#include "mpi/request.h"
#include "mpi/status.h"
#include "p2p/p2p.h"

int weft_mpi_send(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm)
{
    return weft_pt2pt_send(buf, count, datatype, dest, tag, comm);
}

int weft_mpi_ssend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm)
{
    return weft_send(comm->chan, dest, tag, buf, (uint64_t)count, datatype, WEFT_SEND_SYNC);
}

int weft_mpi_rsend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm)
{
    return weft_send(comm->chan, dest, tag, buf, (uint64_t)count, datatype, WEFT_SEND_READY);
}

static inline int isend(const void *buf, MPI_Count count, const weft_type *type, int dest, int tag, weft_comm *comm,
                        enum weft_send_mode mode, MPI_Request *request)
{
    weft_req *req;
    int rc = weft_isend(comm->chan, dest, tag, buf, (uint64_t)count, type, mode, &req);
    return weft_request_return(comm, comm->chan, req, rc, request);
}

int weft_mpi_isend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                   MPI_Request *request)
{
    return weft_pt2pt_isend(buf, count, datatype, dest, tag, comm, request);
}

int weft_mpi_issend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                    MPI_Request *request)
{
    return isend(buf, count, datatype, dest, tag, comm, WEFT_SEND_SYNC, request);
}

int weft_mpi_irsend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                    MPI_Request *request)
{
    return isend(buf, count, datatype, dest, tag, comm, WEFT_SEND_READY, request);
}

int weft_mpi_recv(void *buf, MPI_Count count, const weft_type *datatype, int source, int tag, weft_comm *comm, MPI_Status *status)
{
    weft_recv_info found;
    int rc = weft_pt2pt_recv(buf, count, datatype, source, tag, comm, &found);
    if (weft_likely(rc == 0 || rc == WEFT_E_TRUNCATE || rc == WEFT_E_PEER))
        weft_status_fill(status, &found);
    return rc;
}

int weft_mpi_irecv(void *buf, MPI_Count count, const weft_type *datatype, int source, int tag, weft_comm *comm,
                   MPI_Request *request)
{
    return weft_pt2pt_irecv(buf, count, datatype, source, tag, comm, request);
}

int weft_mpi_probe(int source, int tag, weft_comm *comm, MPI_Status *status)
{
    weft_recv_info found;
    bool is_there;
    int rc = weft_probe(comm->chan, source, tag, true, &is_there, &found);
    if (!rc || rc == WEFT_E_PEER)
        weft_status_fill(status, &found);
    return rc;
}

int weft_mpi_iprobe(int source, int tag, weft_comm *comm, int *flag, MPI_Status *status)
{
    weft_recv_info found;
    bool is_there = false;
    int rc = weft_probe(comm->chan, source, tag, false, &is_there, &found);
    *flag = is_there;
    if ((!rc && is_there) || rc == WEFT_E_PEER)
        weft_status_fill(status, &found);
    return rc;
}
