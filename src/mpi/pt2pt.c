/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pt2pt: point-to-point calls (MPI 5.0 chapter 3) on top of p2p. Called by the generated entries, which have checked all arguments and
 * hold the worker's lock. A blocking send is one tail call.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/request.h"
#include "mpi/status.h"
#include "p2p/p2p.h"
#include "type/pack.h"

int weft_mpi_send(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm)
{
    return weft_send_standard(buf, (uint64_t)count, datatype, dest, tag, comm->chan);
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
    weft_req *req;
    int rc = weft_isend_standard(buf, (uint64_t)count, datatype, dest, tag, comm->chan, &req);
    return weft_request_return(comm, comm->chan, req, rc, request);
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
    int rc = weft_recv_plain(buf, (uint64_t)count, datatype, source, tag, comm->chan, &found);
    if (weft_likely(rc == 0 || rc == WEFT_E_TRUNCATE))
        weft_status_fill(status, &found);
    return rc;
}

int weft_mpi_irecv(void *buf, MPI_Count count, const weft_type *datatype, int source, int tag, weft_comm *comm,
                   MPI_Request *request)
{
    weft_req *req;
    int rc = weft_irecv(comm->chan, source, tag, buf, (uint64_t)count, datatype, &req);
    return weft_request_return(comm, comm->chan, req, rc, request);
}

/* The send is announced before the receive starts to move data, so that both directions overlap. No poll between the two calls: in a
 * ring of ranks each message then finds its receive posted. */
static int exchange(weft_chan *chan, const void *sendbuf, uint64_t sendcount, const weft_type *sendtype, int dest, int sendtag,
                    void *recvbuf, uint64_t recvcount, const weft_type *recvtype, int source, int recvtag, MPI_Status *status)
{
    weft_req *in, *out;
    int sent, received = weft_isend(chan, dest, sendtag, sendbuf, sendcount, sendtype, WEFT_SEND_STANDARD, &out);
    if (received)
        return received;
    received = weft_irecv(chan, source, recvtag, recvbuf, recvcount, recvtype, &in);
    sent = weft_req_wait(out);
    weft_req_free(out);
    if (received)
        return received;
    if (sent && !in->is_done)
        weft_cancel(in);
    received = weft_req_wait(in);
    weft_status_fill(status, &in->recv_info);
    weft_req_free(in);
    return sent ? sent : received;
}

int weft_mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, int dest, int sendtag, void *recvbuf,
                      MPI_Count recvcount, const weft_type *recvtype, int source, int recvtag, weft_comm *comm,
                      MPI_Status *status)
{
    return exchange(comm->chan, sendbuf, (uint64_t)sendcount, sendtype, dest, sendtag, recvbuf, (uint64_t)recvcount, recvtype,
                    source, recvtag, status);
}

int weft_mpi_sendrecv_replace(void *buf, MPI_Count count, const weft_type *datatype, int dest, int sendtag, int source,
                              int recvtag, weft_comm *comm, MPI_Status *status)
{
    uint64_t bytes = (uint64_t)count * (uint64_t)datatype->size;
    char small[1024], *copy = bytes <= sizeof small ? small : malloc(bytes);
    int rc;
    if (!copy)
        return weft_fail(WEFT_E_NOMEM, "no memory for a copy of the %llu bytes to send", (unsigned long long)bytes);
    weft_pack(datatype, buf, (uint64_t)count, 0, bytes, copy);
    rc = exchange(comm->chan, copy, bytes, weft_type_of(MPI_BYTE), dest, sendtag, buf, (uint64_t)count, datatype, source, recvtag,
                  status);
    if (copy != small)
        free(copy);
    return rc;
}

int weft_mpi_probe(int source, int tag, weft_comm *comm, MPI_Status *status)
{
    weft_recv_info found;
    bool is_there;
    int rc = weft_probe(comm->chan, source, tag, true, &is_there, &found);
    if (!rc)
        weft_status_fill(status, &found);
    return rc;
}

int weft_mpi_iprobe(int source, int tag, weft_comm *comm, int *flag, MPI_Status *status)
{
    weft_recv_info found;
    bool is_there = false;
    int rc = weft_probe(comm->chan, source, tag, false, &is_there, &found);
    *flag = is_there;
    if (!rc && is_there)
        weft_status_fill(status, &found);
    return rc;
}
