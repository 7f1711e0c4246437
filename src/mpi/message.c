/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message: matching probes and matched receives (MPI 5.0 3.8.2, 3.8.3). Called by the generated entries: probes with the worker's lock
 * held, receives without. Errors of a receive go to the handler of the communicator of the probe.
 */
#include "mpi/message.h"

#include <mpi.h>

#include "base/status.h"
#include "core/progress_thread.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/request.h"
#include "mpi/status.h"

weft_object_pool weft_message_pool = WEFT_OBJECT_POOL(weft_message, WEFT_MESSAGE_MAGIC);

static int probe(int source, int tag, weft_comm *comm, bool wait, int *flag, MPI_Message *message, MPI_Status *status)
{
    weft_mpi_world *mpi = comm->worker->world->mpi;
    weft_recv_info found;
    weft_message *made;
    int rc;
    *flag = 1;
    *message = MPI_MESSAGE_NULL;
    if (source == WEFT_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        weft_status_fill(status, &(weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG});
        return 0;
    }
    made = weft_object_new(&weft_message_pool);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for a message");
    rc = weft_mprobe(comm->chan, source, tag, wait, &made->unexpected, &found);
    if (rc || !made->unexpected) {
        *flag = 0;
        if (rc == WEFT_E_PEER) /* names the dead */
            weft_status_fill(status, &found);
        weft_object_free(&weft_message_pool, made);
        return rc;
    }
    made->comm = comm;
    weft_comm_hold(comm);
    weft_list_append(&mpi->messages, &made->link);
    *message = made;
    weft_status_fill(status, &found);
    return 0;
}

int weft_mpi_mprobe(int source, int tag, weft_comm *comm, MPI_Message *message, MPI_Status *status)
{
    int flag;
    return probe(source, tag, comm, true, &flag, message, status);
}

int weft_mpi_improbe(int source, int tag, weft_comm *comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    return probe(source, tag, comm, false, flag, message, status);
}

/* The handle ends, and with it the message's reference to its communicator; the caller owns the unexpected message. */
static weft_unexpected *consume(weft_message *self)
{
    weft_unexpected *unexpected = self->unexpected;
    weft_list_remove(&self->link);
    weft_object_free(&weft_message_pool, self);
    return unexpected;
}

/* Starts the receive of a matched message in a new request. False: another thread receives it already, or out of memory. */
static int start(void *buf, MPI_Count count, const weft_type *type, MPI_Message *message, weft_req **out)
{
    weft_message *self = weft_message_of(*message);
    weft_comm *comm = self->comm;
    weft_req *req = weft_req_new(comm->worker, WEFT_REQ_RECV);
    if (!req)
        return weft_fail(WEFT_E_NOMEM, "no memory for a receive request");
    if (!weft_object_retire(&self->object)) {
        weft_req_free(req);
        return weft_fail(WEFT_E_REQUEST, "another thread receives the message already");
    }
    *message = MPI_MESSAGE_NULL;
    *out = req;
    weft_mrecv_into(comm->chan, consume(self), buf, (uint64_t)count, type, req);
    return 0;
}

int weft_mpi_mrecv(void *buf, MPI_Count count, const weft_type *datatype, MPI_Message *message, MPI_Status *status)
{
    weft_message *self = weft_message_of(*message);
    weft_comm *comm;
    weft_worker *worker;
    weft_req *req;
    int rc;
    if (!self) { /* checked: MPI_MESSAGE_NO_PROC */
        *message = MPI_MESSAGE_NULL;
        weft_status_fill(status, &(weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG});
        return 0;
    }
    comm = self->comm;
    worker = comm->worker;
    weft_worker_lock(worker);
    rc = start(buf, count, datatype, message, &req);
    if (!rc) {
        rc = weft_req_wait(req);
        weft_status_fill(status, &req->recv_info);
        weft_req_free(req);
        if (rc && weft_comm_of(comm))
            weft_errors_set_object(&comm->traits, rc);
        weft_comm_drop(comm);
    }
    weft_worker_unlock(worker);
    return rc;
}

int weft_mpi_imrecv(void *buf, MPI_Count count, const weft_type *datatype, MPI_Message *message, MPI_Request *request)
{
    weft_message *self = weft_message_of(*message);
    weft_comm *comm = self ? self->comm : weft_mpi_now()->comm_self;
    weft_worker *worker = comm->worker;
    weft_req *req = NULL;
    int rc;
    weft_worker_lock(worker);
    if (self) {
        rc = start(buf, count, datatype, message, &req);
        weft_request_return(comm, comm->chan, req, rc, request);
        if (!rc)
            weft_comm_drop(comm); /* the request holds it */
    } else {
        *message = MPI_MESSAGE_NULL;
        rc = weft_irecv(comm->chan, WEFT_PROC_NULL, WEFT_ANY_TAG, buf, (uint64_t)count, datatype, &req);
        weft_request_return(comm, comm->chan, req, rc, request);
    }
    weft_worker_unlock(worker);
    weft_progress_thread_offer(worker);
    return rc;
}

void weft_message_close_all(weft_mpi_world *mpi)
{
    weft_list_link *link;
    while ((link = weft_list_first(&mpi->messages))) {
        weft_message *self = weft_container(link, weft_message, link);
        weft_comm *comm = self->comm;
        weft_object_retire(&self->object);
        weft_mrecv_reject(comm->chan, consume(self));
        weft_comm_drop(comm);
    }
}
