/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bsend: sends in buffered mode, and the buffers of the process and of communicators (MPI 5.0 3.4, 3.6). Called by the generated entries,
 * which hold the worker's lock. Invariant: a buffered send completes at once; a message uses one buffer, chosen when it is sent.
 */
#include "mpi/bsend.h"

#include <mpi.h>

#include "base/status.h"
#include "mpi/bsend_buffer.h"
#include "mpi/calls.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/session_type.h"

/* The buffer of comm, else of the session that it was derived from, else of the process (MPI 5.0 3.6). NULL: none. */
static weft_bsend_buffer *buffer_of(const weft_comm *comm)
{
    const weft_session *session = NULL;
    if (comm->bsend_buffer)
        return comm->bsend_buffer;
    if (comm->group->session)
        session = weft_object_by_number(&weft_session_pool, comm->group->session);
    if (session && session->bsend_buffer)
        return session->bsend_buffer;
    return ((const weft_mpi_world *)comm->worker->world->mpi)->bsend_buffer;
}

static void drop_comm(void *comm) { weft_comm_drop(comm); }

int weft_bsend(weft_comm *comm, int dest, int tag, const void *buf, uint64_t count, const weft_type *type)
{
    weft_bsend_buffer *buffer = buffer_of(comm);
    bool is_kept;
    int rc;
    if (dest == WEFT_PROC_NULL)
        return 0;
    if (!buffer)
        return weft_fail(WEFT_E_BUFFER,
                         "no buffer is attached: a message of %llu bytes needs one of %llu bytes (with MPI_BSEND_OVERHEAD, %d), by "
                         "MPI_Buffer_attach or MPI_Comm_attach_buffer",
                         (unsigned long long)(count * (uint64_t)type->size),
                         (unsigned long long)(count * (uint64_t)type->size + MPI_BSEND_OVERHEAD), MPI_BSEND_OVERHEAD);
    weft_comm_hold(comm);
    rc = weft_bsend_buffer_send(buffer, comm->chan, dest, tag, buf, count, type, (weft_bsend_owner){comm, drop_comm}, &is_kept);
    if (!is_kept)
        weft_comm_drop(comm);
    return rc;
}

int weft_mpi_bsend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm)
{
    return weft_bsend(comm, dest, tag, buf, (uint64_t)count, datatype);
}

int weft_mpi_ibsend(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm, MPI_Request *request)
{
    int rc = weft_bsend(comm, dest, tag, buf, (uint64_t)count, datatype);
    return weft_request_return(comm, comm->chan, &comm->worker->done_req, rc, request);
}

const weft_request_ops weft_request_ops_flush = {.name = "flush of a buffer"};

/* -- attach, detach, flush; where: the pointer to the buffer of an object. owner: the object, in texts -- */

static int attach(weft_bsend_buffer **where, void *base, MPI_Count size, const char *owner)
{
    bool is_automatic = base == MPI_BUFFER_AUTOMATIC;
    if (*where)
        return weft_fail(WEFT_E_BUFFER, "%s has a buffer of %llu bytes attached already: detach it first", owner,
                         (unsigned long long)weft_bsend_buffer_size(*where));
    if (!is_automatic && size < 0)
        return weft_fail(WEFT_E_ARG, "size is %lld: a size cannot be negative", (long long)size);
    if (!is_automatic && !base)
        return weft_fail(WEFT_E_BUFFER, "buffer is NULL: it must be memory of %lld bytes, or MPI_BUFFER_AUTOMATIC", (long long)size);
    *where = weft_bsend_buffer_open(is_automatic ? NULL : base, is_automatic ? 0 : (uint64_t)size);
    return *where ? 0 : weft_fail(WEFT_E_NOMEM, "no memory to attach a buffer");
}

static int not_attached(const char *owner) { return weft_fail(WEFT_E_BUFFER, "%s has no buffer attached", owner); }

/* Waits until the messages that are now in the buffer are sent. The lock is dropped meanwhile. */
static int flush(weft_bsend_buffer *buffer, weft_worker *worker)
{
    weft_req *req;
    int rc = weft_bsend_buffer_flush(buffer, worker, &req);
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

/* Out of use before the wait: a send of another thread meanwhile finds no buffer. */
static int detach(weft_bsend_buffer **where, weft_worker *worker, void *address, MPI_Count *size, const char *owner)
{
    weft_bsend_buffer *buffer = *where;
    int rc;
    if (!buffer)
        return not_attached(owner);
    *where = NULL;
    rc = flush(buffer, worker);
    *(void **)address = weft_bsend_buffer_base(buffer) ? weft_bsend_buffer_base(buffer) : MPI_BUFFER_AUTOMATIC;
    *size = (MPI_Count)weft_bsend_buffer_size(buffer);
    weft_bsend_buffer_close(buffer);
    return rc;
}

static int flush_attached(weft_bsend_buffer *buffer, weft_worker *worker, const char *owner)
{
    return buffer ? flush(buffer, worker) : not_attached(owner);
}

static int iflush(weft_bsend_buffer *buffer, weft_comm *comm, const char *owner, MPI_Request *request)
{
    weft_req *req = NULL;
    int rc = buffer ? weft_bsend_buffer_flush(buffer, comm->worker, &req) : not_attached(owner);
    return weft_request_return(comm, comm->chan, req, rc, request);
}

#define PROCESS "this process"

int weft_mpi_buffer_attach(void *buffer, MPI_Count size) { return attach(&weft_mpi_now()->bsend_buffer, buffer, size, PROCESS); }

int weft_mpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
    return detach(&weft_mpi_now()->bsend_buffer, weft_world_now->workers[0], buffer_addr, size, PROCESS);
}

int weft_mpi_buffer_flush(void) { return flush_attached(weft_mpi_now()->bsend_buffer, weft_world_now->workers[0], PROCESS); }

int weft_mpi_buffer_iflush(MPI_Request *request)
{
    return iflush(weft_mpi_now()->bsend_buffer, weft_mpi_now()->comm_self, PROCESS, request);
}

static const char *name_of(const weft_comm *comm) { return comm->traits.name[0] ? comm->traits.name : "the communicator"; }

int weft_mpi_comm_attach_buffer(weft_comm *comm, void *buffer, MPI_Count size)
{
    return attach(&comm->bsend_buffer, buffer, size, name_of(comm));
}

int weft_mpi_comm_detach_buffer(weft_comm *comm, void *buffer_addr, MPI_Count *size)
{
    return detach(&comm->bsend_buffer, comm->worker, buffer_addr, size, name_of(comm));
}

int weft_mpi_comm_flush_buffer(weft_comm *comm) { return flush_attached(comm->bsend_buffer, comm->worker, name_of(comm)); }

int weft_mpi_comm_iflush_buffer(weft_comm *comm, MPI_Request *request)
{
    return iflush(comm->bsend_buffer, comm, name_of(comm), request);
}

#define SESSION "the session"

int weft_mpi_session_attach_buffer(weft_session *session, void *buffer, MPI_Count size)
{
    weft_worker *worker = weft_world_now->workers[0];
    int rc;
    weft_worker_lock(worker);
    rc = attach(&session->bsend_buffer, buffer, size, SESSION);
    weft_worker_unlock(worker);
    return rc;
}

int weft_mpi_session_detach_buffer(weft_session *session, void *buffer_addr, MPI_Count *size)
{
    weft_worker *worker = weft_world_now->workers[0];
    int rc;
    weft_worker_lock(worker);
    rc = detach(&session->bsend_buffer, worker, buffer_addr, size, SESSION);
    weft_worker_unlock(worker);
    return rc;
}

int weft_mpi_session_flush_buffer(weft_session *session)
{
    weft_worker *worker = weft_world_now->workers[0];
    int rc;
    weft_worker_lock(worker);
    rc = flush_attached(session->bsend_buffer, worker, SESSION);
    weft_worker_unlock(worker);
    return rc;
}

int weft_mpi_session_iflush_buffer(weft_session *session, MPI_Request *request)
{
    weft_worker *worker = weft_world_now->workers[0];
    int rc;
    weft_worker_lock(worker);
    rc = iflush(session->bsend_buffer, weft_mpi_now()->comm_self, SESSION, request);
    weft_worker_unlock(worker);
    return rc;
}

void weft_bsend_close_session(weft_session *session)
{
    void *address;
    MPI_Count size;
    weft_mpi_session_detach_buffer(session, &address, &size);
}

void weft_bsend_close_all(weft_mpi_world *mpi)
{
    weft_worker *worker = mpi->comm_self ? mpi->comm_self->worker : NULL;
    if (mpi->bsend_buffer) {
        flush(mpi->bsend_buffer, worker);
        weft_bsend_buffer_close(mpi->bsend_buffer);
        mpi->bsend_buffer = NULL;
    }
    for (weft_list_link *link = mpi->live.next, *next; link != &mpi->live; link = next) {
        weft_comm *comm = weft_container(link, weft_comm, link);
        next = link->next;
        if (!comm->bsend_buffer)
            continue;
        flush(comm->bsend_buffer, worker);
        next = link->next;
        weft_bsend_buffer_reap(comm->bsend_buffer); /* may close a communicator that was freed; it frees its buffer */
    }
}
