/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request: user-visible requests. An MPI_Request points to a weft_req, which holds its communicator (req->chan->user) until it is
 * released. Calls on requests take the lock of the request's worker themselves; the generated entries take none for them.
 */
#ifndef WEFT_MPI_REQUEST_H
#define WEFT_MPI_REQUEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "mpi/comm.h"

/* Handle to request; NULL for MPI_REQUEST_NULL. The generated entry has checked the handle. */
static inline weft_req *weft_request_of(MPI_Request handle)
{
    return weft_object_is_constant(handle) ? NULL : (weft_req *)handle;
}

/* Nothing to complete: no request, or an inactive persistent one. */
static inline bool weft_request_is_idle(const weft_req *req) { return !req || (req->is_persistent && !req->is_active); }

/* Slow path of weft_request_return: holds communicator and type, which the user may free. */
void weft_request_hold(weft_comm *comm, weft_chan *chan, weft_req *req);

/* Sets *request to a new request of comm. rc: result of its creation, returned unless 0. */
static inline int weft_request_return(weft_comm *comm, weft_chan *chan, weft_req *req, int rc, MPI_Request *request)
{
    if (__builtin_expect(rc != 0, 0)) {
        *request = MPI_REQUEST_NULL;
        return rc;
    }
    *request = (MPI_Request)req;
    if (!req->is_static)
        weft_request_hold(comm, chan, req);
    return 0;
}

/* Frees a request that is done or inactive and drops its communicator. Requires the lock of its worker. */
void weft_request_release(weft_req *req);
/* Completes a done request: sets status and handle, returns its rc. Requires the lock of its worker, which it may drop. */
int weft_request_finish(MPI_Request *request, weft_req *req, MPI_Status *status);
/* Sets the status of a done request, which stays as it is. Returns 0, or the error of a program's query_fn; the operation's own error is
 * returned when it is completed. Requires the lock of its worker, which it may drop. */
int weft_request_peek(weft_req *req, MPI_Status *status);
/* MPI_Request_free of a request in flight: it is released once it is done. 0 or an error. */
int weft_request_detach(weft_req *req, bool may_cancel);
/* Releases detached requests that are done. all: waits for the others (finalize). Requires worker 0's lock. */
void weft_request_reap(weft_mpi_world *mpi, bool all);
/* A world closes: releases persistent requests that the program did not free, unless they are active and in flight. */
void weft_request_release_all(weft_worker *worker);

#endif
