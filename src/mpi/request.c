/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request: completes, frees and cancels single requests (MPI 5.0 3.7.3). Called by the generated entries. Arrays: request_array.c.
 * Invariant: a handle is set to MPI_REQUEST_NULL in the same step in which its request is released.
 */
#include "mpi/request.h"

#include <stdlib.h>

#include "base/event.h"
#include "base/status.h"
#include "collectives/sched_area.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"

void weft_request_hold(weft_comm *comm, weft_chan *chan, weft_req *req)
{
    if (weft_request_ops_of(req)->is_shared && req->handles > 1) /* already held since the first handle */
        return;
    req->chan = chan;
    weft_comm_hold(comm);
    if (req->type && !req->type->is_predefined)
        weft_type_hold(req->type);
}

void weft_request_release(weft_req *req)
{
    const weft_request_ops *ops = weft_request_ops_of(req);
    weft_comm *comm = req->chan ? req->chan->user : NULL;
    if (req->is_static || (ops->is_shared && --req->handles))
        return;
    /* the type of a persistent request is held by its arguments, those of a schedule by its steps */
    if (!req->is_persistent && ops->holds_type && req->type && !req->type->is_predefined)
        weft_type_drop(req->type);
    weft_req_free(req);
    if (comm)
        weft_comm_drop(comm);
}

/* Restores the error text, which another thread may have set long ago, and selects the error handler. */
static void describe(weft_req *req, int rc)
{
    const weft_request_ops *ops = weft_request_ops_of(req);
    weft_comm *comm = req->chan ? req->chan->user : NULL;
    if (rc == req->rc)
        weft_req_report_error(req);
    if (ops->object)
        weft_errors_set_object(ops->object(req), rc);
    else if (comm && comm->traits.object.magic == WEFT_COMM_MAGIC)
        weft_errors_set_object(&comm->traits, rc);
}

/* Sets the status of a done request and returns its result. completes: the request is released next. */
static inline int query(weft_req *req, MPI_Status *status, bool completes)
{
    const weft_request_ops *ops = weft_request_ops_of(req);
    if (weft_unlikely(ops->query != NULL))
        return ops->query(req, status, completes);
    weft_status_fill(status, &req->recv_info);
    return req->rc;
}

int weft_request_finish(MPI_Request *request, weft_req *req, MPI_Status *status)
{
    int rc = query(req, status, true);
    if (weft_unlikely(rc))
        describe(req, rc);
    else
        weft_worker_catch_up(req->worker); /* not after an error: the poll may replace its text */
    if (req->is_persistent) {
        req->is_active = false;
        return rc;
    }
    *request = MPI_REQUEST_NULL;
    weft_request_release(req);
    return rc;
}

static __attribute__((noinline)) int wait_long(MPI_Request *request, weft_req *req, MPI_Status *status)
{
    weft_worker *worker;
    int rc;
    if (weft_request_is_idle(req)) {
        weft_status_clear(status);
        return 0;
    }
    worker = req->worker;
    weft_worker_lock(worker);
    if (weft_unlikely(req->kind == WEFT_REQ_SCHED) && !req->is_done)
        weft_sched_spin(req);
    else if (!req->is_done)
        weft_worker_poll(worker);
    if (!req->is_done)
        weft_req_wait(req);
    rc = weft_request_finish(request, req, status);
    weft_worker_unlock(worker);
    return weft_event_point(rc);
}

int weft_mpi_wait(MPI_Request *request, MPI_Status *status)
{
    weft_req *req = weft_request_of(*request);
    if (weft_unlikely(!req) || !req->is_static)
        return wait_long(request, req, status);
    /* an eager send that completed at once: it has no request of its own */
    *request = MPI_REQUEST_NULL;
    weft_status_fill(status, &req->recv_info);
    return 0;
}

int weft_mpi_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    weft_req *req = weft_request_of(*request);
    weft_worker *worker;
    int rc = 0;
    *flag = 1;
    if (weft_request_is_idle(req)) {
        weft_status_clear(status);
        return 0;
    }
    worker = req->worker;
    weft_worker_lock(worker);
    if (!req->is_done)
        weft_worker_poll(worker);
    if (req->is_done)
        rc = weft_request_finish(request, req, status);
    else
        *flag = 0;
    weft_worker_unlock(worker);
    return weft_event_point(rc);
}

int weft_request_peek(weft_req *req, MPI_Status *status)
{
    int rc = query(req, status, false);
    return rc > 0 ? rc : 0;
}

/* Like test, but leaves the request unchanged. */
int weft_mpi_request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    weft_req *req = weft_request_of(request);
    int rc = 0;
    *flag = 1;
    if (weft_request_is_idle(req)) {
        weft_status_clear(status);
        return 0;
    }
    weft_worker_lock(req->worker);
    if (!req->is_done)
        weft_worker_poll(req->worker);
    *flag = req->is_done;
    if (req->is_done)
        rc = weft_request_peek(req, status);
    weft_worker_unlock(req->worker);
    return rc;
}

typedef struct detached_req {
    weft_list_link link; /* in weft_mpi_world.detached, oldest first */
    weft_req *req;
    bool may_cancel; /* no program's data: finalize cancels it */
} detached_req;

static void detached_free(detached_req *entry)
{
    weft_list_remove(&entry->link);
    weft_request_release(entry->req);
    free(entry);
}

void weft_request_reap(weft_mpi_world *mpi, bool all)
{
    for (weft_list_link *link = mpi->detached.next, *next; link != &mpi->detached; link = next) {
        detached_req *entry = weft_container(link, detached_req, link);
        if (all && !entry->req->is_done) {
            const weft_request_ops *ops = weft_request_ops_of(entry->req);
            if (ops->abandon)
                ops->abandon(entry->req);
            else if (entry->may_cancel)
                weft_cancel(entry->req);
            weft_req_wait(entry->req);
        }
        next = link->next;
        if (entry->req->is_done)
            detached_free(entry);
    }
}

/* A request in flight (an error of the program) is not released: its memory may be in use. */
static void release_forgotten(weft_req *req)
{
    if (req->is_persistent && (req->is_done || !req->is_active))
        weft_request_release(req);
}

void weft_request_release_all(weft_worker *worker) { weft_req_each(worker, release_forgotten); }

int weft_request_detach(weft_req *req, bool may_cancel)
{
    weft_mpi_world *mpi = req->worker->world->mpi;
    detached_req *entry = malloc(sizeof *entry);
    if (!entry)
        return weft_fail(WEFT_E_NOMEM, "no memory to free a request that is in flight");
    entry->req = req;
    entry->may_cancel = may_cancel;
    /* Only the oldest are checked, which mostly end first: amortized O(1). */
    while (!weft_list_is_empty(&mpi->detached)) {
        detached_req *oldest = weft_container(weft_list_first(&mpi->detached), detached_req, link);
        if (!oldest->req->is_done)
            break;
        detached_free(oldest);
    }
    weft_list_append(&mpi->detached, &entry->link);
    return 0;
}

int weft_mpi_request_free(MPI_Request *request)
{
    weft_req *req = weft_request_of(*request);
    weft_worker *worker;
    int rc = 0;
    if (!req)
        return weft_fail(WEFT_E_REQUEST, "request is MPI_REQUEST_NULL");
    if (req->is_static) {
        *request = MPI_REQUEST_NULL;
        return 0;
    }
    worker = req->worker;
    weft_worker_lock(worker);
    if (!weft_request_is_idle(req) && weft_request_ops_of(req)->free)
        rc = weft_request_ops_of(req)->free(req);
    else if (req->is_done || weft_request_is_idle(req))
        weft_request_release(req);
    else
        rc = weft_request_detach(req, false);
    weft_worker_unlock(worker);
    if (rc >= 0) /* a positive code comes from the program's free function: the request is freed nevertheless */
        *request = MPI_REQUEST_NULL;
    return rc;
}

int weft_mpi_cancel(MPI_Request *request)
{
    weft_req *req = weft_request_of(*request);
    const weft_request_ops *ops;
    weft_worker *worker;
    int rc = 0;
    if (!req)
        return weft_fail(WEFT_E_REQUEST, "request is MPI_REQUEST_NULL");
    if (req->is_static && req->kind == WEFT_REQ_NOTHING)
        return 0;
    ops = weft_request_ops_of(req);
    if (weft_request_is_idle(req))
        rc = weft_fail(WEFT_E_REQUEST, "the persistent request is not started: there is nothing to cancel");
    else if (!ops->cancel)
        rc = weft_fail(WEFT_E_REQUEST, "the request is of a %s, which cannot be cancelled", ops->name);
    if (rc) {
        describe(req, rc);
        return rc;
    }
    worker = req->worker;
    weft_worker_lock(worker);
    rc = ops->cancel(req);
    weft_worker_unlock(worker);
    return rc;
}
