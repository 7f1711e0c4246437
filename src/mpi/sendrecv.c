/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendrecv: MPI_Sendrecv and MPI_Isendrecv with their replace forms (MPI 5.0 3.7.2, 3.10). Called by the generated entries, which hold
 * the worker's lock. The nonblocking forms return one request (WEFT_REQ_SENDRECV) that ends when its send and its receive have ended.
 * Invariant: the send is announced before the receive starts to move data, so that both directions overlap; no poll between the two, so
 * that in a ring of ranks each message finds its receive posted.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"
#include "p2p/p2p.h"
#include "type/pack.h"

typedef struct half {
    const void *buf;
    uint64_t count;
    const weft_type *type;
    int rank, tag;
} half;

static int exchange(weft_chan *chan, const half *send, const half *recv, MPI_Status *status)
{
    weft_req *in, *out;
    int sent, received = weft_isend(chan, send->rank, send->tag, send->buf, send->count, send->type, WEFT_SEND_STANDARD, &out);
    if (received)
        return received;
    received = weft_irecv(chan, recv->rank, recv->tag, (void *)recv->buf, recv->count, recv->type, &in);
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
    return exchange(comm->chan, &(half){sendbuf, (uint64_t)sendcount, sendtype, dest, sendtag},
                    &(half){recvbuf, (uint64_t)recvcount, recvtype, source, recvtag}, status);
}

static int no_copy(uint64_t bytes)
{
    return weft_fail(WEFT_E_NOMEM, "no memory for a copy of the %llu bytes to send", (unsigned long long)bytes);
}

int weft_mpi_sendrecv_replace(void *buf, MPI_Count count, const weft_type *datatype, int dest, int sendtag, int source,
                              int recvtag, weft_comm *comm, MPI_Status *status)
{
    uint64_t bytes = (uint64_t)count * (uint64_t)datatype->size;
    char small[1024], *copy = bytes <= sizeof small ? small : malloc(bytes);
    int rc;
    if (!copy)
        return no_copy(bytes);
    weft_pack(datatype, buf, (uint64_t)count, 0, bytes, copy);
    rc = exchange(comm->chan, &(half){copy, bytes, weft_type_of(MPI_BYTE), dest, sendtag},
                  &(half){buf, (uint64_t)count, datatype, source, recvtag}, status);
    if (copy != small)
        free(copy);
    return rc;
}

/* -- nonblocking -- */

/* Behind a request of kind SENDRECV (req->extra). */
typedef struct pair {
    weft_req_ext ext;
    weft_completion completion; /* of both halves */
    weft_req *both, *send, *recv;
    const weft_type *send_type, *recv_type; /* referenced */
    void *copy;                             /* replace forms: the packed message, owned; else NULL */
} pair;

static void free_pair(weft_req *req)
{
    pair *self = req->extra;
    weft_req_free(self->send);
    weft_req_free(self->recv);
    weft_type_drop(self->send_type);
    weft_type_drop(self->recv_type);
    free(self->copy);
    free(self);
}

/* An error of the send goes before one of the receive. Cancelled: at least one half was. */
static void on_both_done(weft_completion *completion)
{
    pair *self = weft_container(completion, pair, completion);
    weft_req *failed = self->send->rc ? self->send : self->recv;
    self->both->recv_info = self->recv->recv_info;
    self->both->recv_info.cancelled |= self->send->recv_info.cancelled;
    if (weft_unlikely(failed->rc))
        weft_req_report_error(failed);
    weft_req_end(self->both, failed->rc);
}

/* Takes copy over, also on an error. */
static int start(weft_comm *comm, const half *send, const half *recv, void *copy, MPI_Request *request)
{
    weft_worker *worker = comm->worker;
    pair *self = malloc(sizeof *self);
    weft_req *both = self ? weft_req_new(worker, WEFT_REQ_SENDRECV) : NULL, *in = both ? weft_req_new(worker, WEFT_REQ_RECV) : NULL;
    int rc = in ? weft_isend(comm->chan, send->rank, send->tag, send->buf, send->count, send->type, WEFT_SEND_STANDARD, &self->send)
                : weft_fail(WEFT_E_NOMEM, "no memory for the request of a send and a receive");
    if (rc) {
        if (in)
            weft_req_free(in);
        if (both)
            weft_req_free(both);
        free(self);
        free(copy);
        return weft_request_return(comm, comm->chan, NULL, rc, request);
    }
    self->ext = (weft_req_ext){.free = free_pair};
    self->completion = (weft_completion){.left = 2, .open = on_both_done};
    self->both = both;
    self->recv = in;
    self->copy = copy;
    weft_type_hold(self->send_type = send->type);
    weft_type_hold(self->recv_type = recv->type);
    both->extra = self;
    if (self->send->is_done)
        self->completion.left--;
    else
        self->send->completion = &self->completion;
    in->completion = &self->completion;
    weft_irecv_into(comm->chan, recv->rank, recv->tag, (void *)recv->buf, recv->count, recv->type, in);
    return weft_request_return(comm, comm->chan, both, 0, request);
}

int weft_mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, int dest, int sendtag, void *recvbuf,
                       MPI_Count recvcount, const weft_type *recvtype, int source, int recvtag, weft_comm *comm, MPI_Request *request)
{
    return start(comm, &(half){sendbuf, (uint64_t)sendcount, sendtype, dest, sendtag},
                 &(half){recvbuf, (uint64_t)recvcount, recvtype, source, recvtag}, NULL, request);
}

int weft_mpi_isendrecv_replace(void *buf, MPI_Count count, const weft_type *datatype, int dest, int sendtag, int source, int recvtag,
                               weft_comm *comm, MPI_Request *request)
{
    uint64_t bytes = (uint64_t)count * (uint64_t)datatype->size;
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return weft_request_return(comm, comm->chan, NULL, no_copy(bytes), request);
    weft_pack(datatype, buf, (uint64_t)count, 0, bytes, copy);
    return start(comm, &(half){copy, bytes, weft_type_of(MPI_BYTE), dest, sendtag},
                 &(half){buf, (uint64_t)count, datatype, source, recvtag}, copy, request);
}

static int abandon(weft_req *req) { return weft_cancel(((const pair *)req->extra)->recv); }

/* Both halves end without another process's call; either may be over already. */
static int cancel(weft_req *req)
{
    const pair *self = req->extra;
    if (req->is_done)
        return 0;
    weft_cancel(self->recv);
    return weft_cancel(self->send);
}

const weft_request_ops weft_request_ops_sendrecv = {.name = "send and receive", .cancel = cancel, .abandon = abandon};
