/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_dup: duplicates communicators, blocking and nonblocking (MPI 5.0 7.4.2). Called by the generated entries, which hold the worker's
 * lock; attributes are copied with the lock released, at the time of the call.
 * A member that cannot make its part reports it in the exchange; then the call fails on all members. Copies of attributes are deleted.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/callout.h"
#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/comm_info.h"
#include "mpi/comm_make.h"
#include "mpi/intercomm.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/topo.h"

/* Runs the copy functions of comm's attributes; the worker is unlocked meanwhile. */
static int copy_attributes(weft_comm *comm, void **attributes)
{
    int rc;
    if (!weft_attributes_any(weft_attributes_of_comm(comm)))
        return 0;
    weft_worker_callout_begin(comm->worker);
    rc = weft_attributes_copy(weft_attributes_of_comm(comm), attributes);
    weft_worker_callout_end(comm->worker);
    return rc;
}

/* The duplicate was not made: deletes the copies. Their functions get MPI_COMM_NULL. */
static void discard_attributes(weft_worker *worker, void **attributes)
{
    if (!*attributes)
        return;
    weft_worker_callout_begin(worker);
    weft_attributes_delete_all((weft_attributes){WEFT_KEYVAL_COMM, MPI_COMM_NULL, attributes});
    weft_worker_callout_end(worker);
}

int weft_mpi_comm_dup(weft_comm *comm, MPI_Comm *newcomm)
{
    void *attributes = NULL;
    weft_comm *made = NULL;
    int rc;
    weft_comm_hold(comm); /* a copy function may free it */
    rc = copy_attributes(comm, &attributes);
    if (comm->is_inter)
        rc = weft_intercomm_split(comm, 0, comm->rank, rc, &made);
    else
        rc = weft_comm_create(comm, (uint32_t)comm->size, (uint32_t)comm->rank, NULL, rc, &made);
    if (rc)
        discard_attributes(comm->worker, &attributes);
    else {
        made->traits.attributes = attributes;
        made->topo = weft_topo_share(comm->topo);
    }
    *newcomm = made ? made : MPI_COMM_NULL;
    weft_comm_drop(comm);
    return rc;
}

int weft_mpi_comm_dup_with_info(weft_comm *comm, weft_info *info, MPI_Comm *newcomm)
{
    int rc = weft_mpi_comm_dup(comm, newcomm);
    if (!rc)
        weft_comm_set_hints(*newcomm, info);
    return rc;
}

/* -- nonblocking: the channels are open when the call returns, so that no frame arrives before its channel; a nonblocking allgather
 * distributes the ids; its completion connects the channels -- */

enum { ID_FIRST, ID_LAST, FINE, WORDS };

/* Behind a request of kind DUP (req->extra). */
typedef struct dup {
    weft_req_ext ext;
    weft_completion completion; /* of gather */
    weft_req *req, *gather;     /* the program's request, and the allgather's */
    weft_comm *parent, *comm;   /* parent is held by req; comm NULL: this member failed */
    uint32_t part[WORDS];
    uint32_t all[]; /* [members * WORDS], then [members * 2] for connect */
} dup;

static void free_dup(weft_req *req)
{
    dup *self = req->extra;
    if (self->gather)
        weft_req_free(self->gather);
    free(self);
}

static int connect(dup *self, uint32_t size)
{
    uint32_t *ids = self->all + (size_t)size * WORDS;
    int rc = 0;
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t *part = self->all + (size_t)i * WORDS;
        if (!part[FINE])
            return weft_comm_another_failed();
        ids[i] = part[ID_FIRST];
        ids[size + i] = part[ID_LAST];
    }
    rc = weft_chan_connect(self->comm->chan, ids);
    return rc ? rc : weft_chan_connect(self->comm->team.chan, ids + size);
}

static void on_gathered(weft_completion *completion)
{
    dup *self = weft_container(completion, dup, completion);
    int rc = self->gather->rc;
    if (rc)
        weft_req_report_error(self->gather);
    else if (self->comm)
        rc = connect(self, (uint32_t)self->parent->size);
    else
        rc = self->req->rc; /* of this member's part */
    if (!rc)
        weft_team_adopt(&self->parent->team, &self->comm->team);
    weft_req_end(self->req, rc);
}

/* Starts the allgather. rc: error of this member's part. */
static int start_gather(dup *self, int rc)
{
    const weft_type *word = weft_type_of(MPI_UINT32_T);
    weft_coll coll = {.sendbuf = self->part, .recvbuf = self->all, .sendcount = WORDS, .recvcount = WORDS, .sendtype = word,
                      .recvtype = word};
    self->req->rc = rc;
    if (!rc) {
        self->part[ID_FIRST] = self->comm->chan->id;
        self->part[ID_LAST] = self->comm->team.chan->id;
        self->part[FINE] = 1;
    }
    rc = weft_coll_start(&self->parent->team, WEFT_COLL_ALLGATHER, &coll, &self->gather);
    if (rc)
        return rc;
    self->completion = (weft_completion){.left = 1, .open = on_gathered};
    if (self->gather->is_done)
        on_gathered(&self->completion);
    else
        self->gather->completion = &self->completion;
    return 0;
}

static dup *dup_new(weft_comm *comm)
{
    uint32_t size = (uint32_t)comm->size;
    dup *self = calloc(1, sizeof *self + ((size_t)size * WORDS + (size_t)size * 2) * sizeof *self->all);
    weft_req *req = self ? weft_req_new(comm->worker, WEFT_REQ_DUP) : NULL;
    if (!req) {
        free(self);
        return NULL;
    }
    self->parent = comm;
    self->req = req;
    req->extra = self;
    self->ext.free = free_dup;
    return self;
}

static int idup(weft_comm *comm, weft_info *info, MPI_Comm *newcomm, MPI_Request *request)
{
    void *attributes = NULL;
    dup *self = comm->is_inter ? NULL : dup_new(comm);
    int rc, open_rc = 0;
    *newcomm = MPI_COMM_NULL;
    if (!self) {
        rc = comm->is_inter ? weft_fail(WEFT_E_UNSUPPORTED, "MPI_Comm_idup of an intercommunicator is not built yet: use MPI_Comm_dup")
                            : weft_fail(WEFT_E_NOMEM, "no memory to duplicate a communicator of %d members", comm->size);
        return weft_request_return(comm, comm->team.chan, NULL, rc, request);
    }
    weft_comm_hold(comm); /* a copy function may free it */
    open_rc = copy_attributes(comm, &attributes);
    if (!open_rc)
        open_rc = weft_comm_open(comm, comm->group, (uint32_t)comm->rank, &self->comm);
    if (open_rc) {
        if (self->comm)
            weft_comm_close(self->comm);
        self->comm = NULL;
        discard_attributes(comm->worker, &attributes);
    } else {
        self->comm->traits.attributes = attributes;
        self->comm->topo = weft_topo_share(comm->topo);
        weft_comm_set_hints(self->comm, info);
        *newcomm = self->comm;
    }
    rc = start_gather(self, open_rc);
    if (rc) {
        if (self->comm)
            weft_comm_close(self->comm);
        *newcomm = MPI_COMM_NULL;
        weft_req_free(self->req);
    }
    rc = weft_request_return(comm, comm->team.chan, rc ? NULL : self->req, rc, request);
    weft_comm_drop(comm);
    return rc;
}

int weft_mpi_comm_idup(weft_comm *comm, MPI_Comm *newcomm, MPI_Request *request) { return idup(comm, NULL, newcomm, request); }

int weft_mpi_comm_idup_with_info(weft_comm *comm, weft_info *info, MPI_Comm *newcomm, MPI_Request *request)
{
    return idup(comm, info, newcomm, request);
}

const weft_request_ops weft_request_ops_dup = {.name = "duplication of a communicator"};
