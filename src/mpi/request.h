/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request: what a user's MPI_Request is to us: a weft_req that holds its communicator (req->chan->tenant) until it is released.
 * Calls on requests find the worker in the request and take its lock themselves; the generated entries take none for them.
 */
#ifndef WEFT_MPI_REQUEST_H
#define WEFT_MPI_REQUEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "mpi/comm.h"

/* NULL for MPI_REQUEST_NULL. The generated entry has checked that it is one or the other. */
static inline weft_req *weft_request_of(MPI_Request handle)
{
    return (uintptr_t)handle < 4096 ? NULL : (weft_req *)handle;
}

/* Nothing to complete: no request, or a persistent one that is not started. */
static inline bool weft_request_is_idle(const weft_req *req) { return !req || (req->is_persistent && !req->is_active); }

/* The longer half of weft_request_give: the request keeps its communicator and type, the user may free both. */
void weft_request_keep(weft_comm *comm, weft_chan *chan, weft_req *req);

/* Hands a fresh request of comm to the user. `rc` is what making it returned. */
static inline int weft_request_give(weft_comm *comm, weft_chan *chan, weft_req *req, int rc, MPI_Request *request)
{
    if (__builtin_expect(rc != 0, 0)) {
        *request = MPI_REQUEST_NULL;
        return rc;
    }
    *request = (MPI_Request)req;
    if (!req->is_static)
        weft_request_keep(comm, chan, req);
    return 0;
}

/* Frees a request that is done or inactive, and lets go of its communicator. Under its worker's lock. */
void weft_request_release(weft_req *req);
/* The end of a done request as the user sees it: status, handle, error. Under its worker's lock. */
int weft_request_finish(MPI_Request *request, weft_req *req, MPI_Status *status);
/* A request whose user does not wait for it: released when it is done. */
int weft_request_detach(weft_req *req);
/* Releases detached that are done; with `all` waits for the rest (finalize). Under worker 0's lock. */
void weft_request_reap(weft_mpi_world *mpi, bool all);
/* A world closes: releases the persistent requests that the program did not free. */
void weft_request_end_all(weft_worker *worker);

#endif
