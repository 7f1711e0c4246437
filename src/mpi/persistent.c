/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent: persistent requests (MPI 5.0 3.9, 6.13). Called by the generated entries.
 * Invariant: arguments are checked when the request is created; a start checks nothing.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/peer.h"
#include "core/progress_thread.h"
#include "mpi/bsend.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/persistent_reg.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "p2p/p2p.h"
#include "p2p/promise.h"

#define PROMISE_MIN 2048 /* bytes; no transport sends shorter messages by rendezvous, unless they are synchronous */

typedef struct persist {
    weft_promise promise; /* begins with weft_req_ext; unused by BSEND */
    enum weft_req_kind kind; /* SEND, RECV or BSEND */
    bool may_promise; /* a receive long enough for a rendezvous, without wildcards */
    enum weft_send_mode mode;
    int rank, tag;
    void *buf;
    uint64_t count;
    const weft_type *type;
    weft_persistent_reg *reg; /* registration of the buffer until the request is freed; NULL: none */
} persist;

static void persist_free(weft_req *req)
{
    persist *args = req->extra;
    if (args->kind == WEFT_REQ_SEND)
        weft_promise_close_send(&args->promise);
    else if (args->kind == WEFT_REQ_RECV)
        weft_promise_close_recv(&args->promise);
    weft_persistent_reg_release(args->reg);
    weft_type_drop(args->type);
    free(args);
}

/* Registers the buffer with the access rights that this request needs. NULL: not needed (eager, packed or shared memory) or failed. */
static weft_persistent_reg *register_buffer(weft_comm *comm, const persist *args)
{
    const weft_peer *peer = args->rank >= 0 ? comm->chan->peers[args->rank] : NULL;
    uint64_t bytes = args->count * (uint64_t)args->type->size, min = peer ? (uint64_t)peer->eager_max + 1 : WEFT_PERSISTENT_REG_MIN;
    if (args->kind == WEFT_REQ_BSEND || args->rank == WEFT_PROC_NULL || !args->type->is_dense || bytes < min ||
        (peer && !weft_reg_needed(peer->ep->iface)))
        return NULL;
    return weft_persistent_reg_acquire(comm->worker, (char *)args->buf + args->type->true_lb, bytes,
                                       args->kind == WEFT_REQ_RECV ? WEFT_ACCESS_WRITE : WEFT_ACCESS_READ);
}

static int make(weft_comm *comm, const persist *args, MPI_Request *request)
{
    weft_req *req = weft_req_new(comm->worker, args->kind);
    persist *own = malloc(sizeof *own);
    if (!req || !own) {
        if (req)
            weft_req_free(req);
        free(own);
        *request = MPI_REQUEST_NULL;
        return weft_fail(WEFT_E_NOMEM, "no memory for a persistent request");
    }
    *own = *args;
    own->promise.ext.free = persist_free;
    own->may_promise = args->kind == WEFT_REQ_RECV && args->rank >= 0 && args->tag >= 0 && args->type->is_dense &&
                       args->count * (uint64_t)args->type->size >= PROMISE_MIN;
    weft_type_hold(own->type);
    own->reg = register_buffer(comm, args);
    req->is_persistent = true;
    req->extra = own;
    return weft_request_return(comm, comm->chan, req, 0, request);
}

static int make_send(weft_comm *comm, const void *buf, MPI_Count count, const weft_type *type, int dest, int tag,
                     enum weft_send_mode mode, MPI_Request *request)
{
    return make(comm, &(persist){.kind = WEFT_REQ_SEND, .mode = mode, .rank = dest, .tag = tag, .buf = (void *)buf,
                                 .count = (uint64_t)count, .type = type}, request);
}

int weft_mpi_send_init(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                       MPI_Request *request)
{
    return make_send(comm, buf, count, datatype, dest, tag, WEFT_SEND_STANDARD, request);
}

int weft_mpi_ssend_init(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                        MPI_Request *request)
{
    return make_send(comm, buf, count, datatype, dest, tag, WEFT_SEND_SYNC, request);
}

int weft_mpi_rsend_init(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                        MPI_Request *request)
{
    return make_send(comm, buf, count, datatype, dest, tag, WEFT_SEND_READY, request);
}

int weft_mpi_bsend_init(const void *buf, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                        MPI_Request *request)
{
    return make(comm, &(persist){.kind = WEFT_REQ_BSEND, .rank = dest, .tag = tag, .buf = (void *)buf, .count = (uint64_t)count,
                                 .type = datatype}, request);
}

int weft_mpi_recv_init(void *buf, MPI_Count count, const weft_type *datatype, int source, int tag, weft_comm *comm,
                       MPI_Request *request)
{
    return make(comm, &(persist){.kind = WEFT_REQ_RECV, .rank = source, .tag = tag, .buf = buf, .count = (uint64_t)count,
                                 .type = datatype}, request);
}

/* A short message leaves without the request, which ends at once. */
static int start_send(weft_req *req)
{
    persist *args = req->extra;
    int rc = args->mode <= WEFT_SEND_READY ? weft_send_try(args->buf, args->count, args->type, args->rank, args->tag, req->chan, true)
                                           : WEFT_AGAIN;
    if (weft_likely(rc == 0)) {
        req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
        req->is_done = true;
    }
    if (rc <= 0)
        return rc;
    if (weft_promise_is_due(&args->promise))
        weft_promise_poll(&args->promise);
    return weft_isend_into(req->chan, args->rank, args->tag, args->buf, args->count, args->type, args->mode, req);
}

static int start_recv(weft_req *req)
{
    persist *args = req->extra;
    if (weft_likely(!args->may_promise))
        return weft_irecv_into(req->chan, args->rank, args->tag, args->buf, args->count, args->type, req);
    return weft_promise_irecv(&args->promise, req->chan, args->rank, args->tag, args->buf, args->count, args->type, req);
}

/* Ends at once: the message was copied. */
static int start_bsend(weft_req *req)
{
    const persist *args = req->extra;
    int rc = weft_bsend(req->chan->user, args->rank, args->tag, args->buf, args->count, args->type);
    req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
    if (!rc)
        weft_req_end(req, 0);
    return rc;
}

const weft_request_ops weft_request_ops_send = {.name = "send", .holds_type = true, .start = start_send, .cancel = weft_cancel};
const weft_request_ops weft_request_ops_bsend = {.name = "send", .holds_type = true, .start = start_bsend, .cancel = weft_cancel};
/* A detached receive is cancelled: its data cannot be observed. One that has matched continues. */
const weft_request_ops weft_request_ops_recv = {.name = "receive", .holds_type = true, .start = start_recv, .cancel = weft_cancel,
                                                .abandon = weft_cancel};

/* Requires the lock of the request's worker. */
static int start(weft_req *req)
{
    int rc;
    req->is_done = false;
    req->rc = 0;
    rc = weft_request_ops_of(req)->start(req);
    req->is_active = rc == 0;
    if (rc)
        weft_errors_set_object(&((weft_comm *)req->chan->user)->traits, rc);
    return rc;
}

static int check(const weft_req *req, int index)
{
    if (!req)
        return weft_fail(WEFT_E_REQUEST, "request %d is MPI_REQUEST_NULL", index);
    if (!req->is_persistent)
        return weft_fail(WEFT_E_REQUEST, "request %d is not persistent: only requests made by MPI_..._init can be started",
                         index);
    if (req->is_active)
        return weft_fail(WEFT_E_REQUEST, "request %d is started already: complete it before you start it again", index);
    return 0;
}

int weft_mpi_start(MPI_Request *request) { return weft_mpi_startall(1, request); }

int weft_mpi_startall(int count, MPI_Request array_of_requests[])
{
    int rc = 0;
    for (int i = 0; i < count && !rc; i++) {
        weft_req *req = weft_request_of(array_of_requests[i]);
        rc = check(req, i);
        if (rc) {
            if (req && req->chan)
                weft_errors_set_object(&((weft_comm *)req->chan->user)->traits, rc);
            break;
        }
        weft_worker_lock(req->worker);
        rc = start(req);
        weft_worker_unlock(req->worker);
        weft_progress_thread_offer(req->worker);
    }
    return rc;
}
