/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grequest: generalized requests (MPI 5.0 13.2): operations that the program performs and completes by MPI_Grequest_complete. Called by the
 * generated entries without locks, and by request_table. They belong to worker 0 and have no communicator: MPI_COMM_SELF's handler runs.
 * Invariant: the program's functions run with the worker unlocked; free_fn runs once, after the completion and the last use of the handle.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/language.h"
#include "base/status.h"
#include "core/callout.h"
#include "core/world.h"
#include "mpi/calls.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"

/* Behind a request of kind GENERALIZED (req->extra). */
typedef struct grequest {
    weft_req_ext ext;
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    void *extra_state;
    const weft_language *language; /* of the functions; NULL: C */
    bool is_freed; /* MPI_Request_free was called before the completion */
} grequest;

static void free_grequest(weft_req *req)
{
    free(req->extra);
}

/* The program's code is returned as it is: codes above 0 are MPI's. */
static int failed_in(const char *function, int code)
{
    return code ? weft_fail(code, "%s of the generalized request returned error code %d", function, code) : 0;
}

int weft_mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                            MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    weft_worker *worker = weft_world_now->workers[0];
    grequest *self = malloc(sizeof *self);
    weft_req *req = self ? weft_req_new(worker, WEFT_REQ_GENERALIZED) : NULL;
    if (!req) {
        free(self);
        *request = MPI_REQUEST_NULL;
        return weft_fail(WEFT_E_NOMEM, "no memory for a generalized request");
    }
    *self = (grequest){{.free = free_grequest}, query_fn, free_fn, cancel_fn, extra_state, weft_language_take(), false};
    req->extra = self;
    *request = (MPI_Request)req;
    return 0;
}

static int call_free(const grequest *self)
{
    return self->language ? self->language->release((void *)self->free, self->extra_state) : self->free(self->extra_state);
}

static int call_query(const grequest *self, MPI_Status *status)
{
    return self->language ? self->language->query((void *)self->query, self->extra_state, status)
                          : self->query(self->extra_state, status);
}

static int call_cancel(const grequest *self, int is_done)
{
    return self->language ? self->language->cancel((void *)self->cancel, self->extra_state, is_done)
                          : self->cancel(self->extra_state, is_done);
}

/* Calls free_fn and releases the request. Requires the worker's lock, which it drops meanwhile. */
static int release(weft_req *req)
{
    const grequest *self = req->extra;
    int code;
    weft_worker_callout_begin(req->worker);
    code = call_free(self);
    weft_worker_callout_end(req->worker);
    weft_request_release(req);
    return failed_in("free_fn", code);
}

int weft_mpi_grequest_complete(MPI_Request request)
{
    weft_req *req = weft_request_of(request);
    int rc = 0;
    if (!req || req->kind != WEFT_REQ_GENERALIZED)
        return weft_fail(WEFT_E_REQUEST, "request is %s: only a request of MPI_Grequest_start is completed so",
                         req ? "not a generalized one" : "MPI_REQUEST_NULL");
    weft_worker_lock(req->worker);
    if (req->is_done) {
        rc = weft_fail(WEFT_E_REQUEST, "the generalized request is complete already");
        weft_worker_unlock(req->worker);
        return rc;
    }
    weft_req_end(req, 0);
    if (((const grequest *)req->extra)->is_freed) {
        weft_worker *worker = req->worker;
        rc = release(req);
        weft_worker_unlock(worker);
        return rc;
    }
    weft_worker_unlock(req->worker);
    return rc;
}

static int free_active(weft_req *req)
{
    if (req->is_done)
        return release(req);
    ((grequest *)req->extra)->is_freed = true;
    return 0;
}

static int cancel(weft_req *req)
{
    const grequest *self = req->extra;
    bool is_done = req->is_done;
    int code;
    weft_worker_callout_begin(req->worker);
    code = call_cancel(self, is_done);
    weft_worker_callout_end(req->worker);
    return failed_in("cancel_fn", code);
}

/* MPI_ERROR of the program's status stays (MPI 5.0 3.2.5). If both functions fail, the error of free_fn is returned. */
static int query(weft_req *req, MPI_Status *status, bool completes)
{
    const grequest *self = req->extra;
    MPI_Status own;
    int queried, freed = 0;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    weft_status_fill(status, &(weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG});
    weft_worker_callout_begin(req->worker);
    queried = call_query(self, status);
    if (completes)
        freed = call_free(self);
    weft_worker_callout_end(req->worker);
    return freed ? failed_in("free_fn", freed) : failed_in("query_fn", queried);
}

const weft_request_ops weft_request_ops_generalized = {.name = "generalized operation", .cancel = cancel, .free = free_active,
                                                       .query = query};
