/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_dup: duplicates communicators, blocking and nonblocking (MPI 5.0 7.4.2). Called by the generated entries, which hold the worker's
 * lock; attributes are copied with the lock released, at the time of the call.
 * A member that cannot make its part reports it in the exchange; then the call fails on all members. Copies of attributes are deleted.
 */
#include <mpi.h>
#include <stdio.h>
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
#include "mpi/status.h"
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

/* The duplicate was not made because of `rc`, whose text is kept: deletes the copies. Their functions get MPI_COMM_NULL. */
static void discard_attributes(weft_worker *worker, void **attributes, int rc)
{
    char cause[512];
    if (!*attributes)
        return;
    snprintf(cause, sizeof cause, "%s", weft_fail_text(rc));
    weft_worker_callout_begin(worker);
    weft_attributes_clear((weft_attributes){WEFT_KEYVAL_COMM, MPI_COMM_NULL, attributes});
    weft_worker_callout_end(worker);
    weft_fail(rc, "%s", cause);
}

int weft_mpi_comm_dup(weft_comm *comm, MPI_Comm *newcomm, int failed)
{
    void *attributes = NULL;
    weft_comm *made = NULL;
    int rc;
    weft_comm_hold(comm); /* a copy function may free it */
    rc = failed ? failed : copy_attributes(comm, &attributes);
    if (comm->is_inter)
        rc = weft_intercomm_split(comm, 0, comm->rank, rc, &made);
    else
        rc = weft_comm_create(comm, (uint32_t)comm->size, (uint32_t)comm->rank, NULL, rc, &made);
    if (rc) {
        discard_attributes(comm->worker, &attributes, rc);
    } else {
        made->traits.attributes = attributes;
        made->topo = weft_topo_share(comm->topo);
    }
    *newcomm = made ? made : MPI_COMM_NULL;
    weft_comm_drop(comm);
    return rc;
}

int weft_mpi_comm_dup_with_info(weft_comm *comm, weft_info *info, MPI_Comm *newcomm, int failed)
{
    int rc = weft_mpi_comm_dup(comm, newcomm, failed);
    if (!rc)
        weft_comm_set_hints(*newcomm, info);
    return rc;
}

/* -- nonblocking: the channels are open when the call returns, so that no frame arrives before its channel; a nonblocking allgather
 * distributes the ids and the members' results; its completion connects the channels, which needs no memory, so that the members end
 * alike. A duplicate that was not made is closed when the program completes the request, for its attributes have functions -- */

enum { ID_FIRST, ID_LAST, FINE, WORDS };

/* Behind a request of kind DUP (req->extra). */
typedef struct dup {
    weft_req_ext ext;
    weft_completion completion; /* of gather */
    weft_req *req, *gather;     /* the program's request, and the allgather's */
    weft_comm *parent, *comm;   /* parent is held by req; comm: a reference; NULL: this member failed, or the duplicate was closed */
    MPI_Comm *newcomm;          /* the program's variable, MPI's until the request is completed; set to MPI_COMM_NULL by an error */
    uint32_t gather_number;     /* of the allgather on the parent's team */
    uint32_t *ids[2];           /* [members] owned, for the two channels; NULL: theirs now */
    int failed;                 /* error of this member's part, and its text */
    char cause[512];
    uint32_t part[WORDS];
    uint32_t all[]; /* [members * WORDS] */
} dup;

static void free_dup(weft_req *req)
{
    dup *self = req->extra;
    if (self->gather)
        weft_req_free(self->gather);
    if (self->comm)
        weft_comm_drop(self->comm);
    free(self->ids[0]);
    free(self->ids[1]);
    free(self);
}

/* The allgather has ended. 0: all members are fine, and the channels are connected. */
static int connect(dup *self, uint32_t size)
{
    weft_exchange over = weft_exchange_over_comm(self->parent);
    if (self->failed)
        return weft_fail(self->failed, "%s", self->cause);
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t *part = self->all + (size_t)i * WORDS;
        if (!part[FINE])
            return weft_exchange_failed(&over, i);
        self->ids[0][i] = part[ID_FIRST];
        self->ids[1][i] = part[ID_LAST];
    }
    weft_chan_connect_by(self->comm->chan, self->ids[0]);
    weft_chan_connect_by(self->comm->team.chan, self->ids[1]);
    self->ids[0] = self->ids[1] = NULL;
    return 0;
}

/* Invalidates the handle of a duplicate that was not made. */
static void retire(weft_comm *comm)
{
    if (weft_object_retire(&comm->traits.object))
        weft_comm_drop(comm); /* the handle's reference; self->comm has another */
}

static void on_gathered(weft_completion *completion)
{
    dup *self = weft_container(completion, dup, completion);
    int rc = self->gather->rc;
    if (rc)
        weft_req_report_error(self->gather);
    else
        rc = connect(self, (uint32_t)self->parent->size);
    if (!rc)
        weft_team_connected(&self->comm->team);
    if (!rc)
        weft_team_adopt(&self->parent->team, &self->comm->team, self->gather_number);
    else if (self->comm)
        retire(self->comm);
    weft_req_end(self->req, rc);
}

/* The program completes the request: after an error the duplicate is closed. */
static int query_dup(weft_req *req, MPI_Status *status, bool completes)
{
    dup *self = req->extra;
    weft_comm *comm = self->comm;
    weft_status_fill(status, &req->recv_info);
    if (!completes || !comm)
        return req->rc;
    self->comm = NULL;
    if (req->rc) {
        if (*self->newcomm == comm)
            *self->newcomm = MPI_COMM_NULL;
        discard_attributes(req->worker, &comm->traits.attributes, req->rc);
    }
    weft_comm_drop(comm);
    return req->rc;
}

/* Starts the allgather. On an error the team has stopped: the other members' requests end too. */
static int start_gather(dup *self)
{
    const weft_type *word = weft_type_of(MPI_UINT32_T);
    weft_coll coll = {.sendbuf = self->part, .recvbuf = self->all, .sendcount = WORDS, .recvcount = WORDS, .sendtype = word,
                      .recvtype = word};
    int rc;
    if (!self->failed) {
        self->part[ID_FIRST] = self->comm->chan->id;
        self->part[ID_LAST] = self->comm->team.chan->id;
        self->part[FINE] = 1;
    }
    rc = weft_coll_start(&self->parent->team, WEFT_COLL_ALLGATHER, &coll, &self->gather);
    if (rc)
        return rc;
    self->gather_number = weft_team_latest(&self->parent->team);
    self->completion = (weft_completion){.left = 1, .open = on_gathered};
    if (self->gather->is_done)
        on_gathered(&self->completion);
    else
        self->gather->completion = &self->completion;
    return 0;
}

static dup *dup_new(weft_comm *comm)
{
    size_t size = (size_t)comm->size;
    dup *self = calloc(1, sizeof *self + size * WORDS * sizeof *self->all);
    weft_req *req = self ? weft_req_new(comm->worker, WEFT_REQ_DUP) : NULL;
    if (!req) {
        free(self);
        return NULL;
    }
    self->parent = comm;
    self->req = req;
    self->ids[0] = malloc(size * sizeof *self->ids[0]);
    self->ids[1] = malloc(size * sizeof *self->ids[1]);
    req->extra = self;
    self->ext.free = free_dup;
    return self;
}

/* This member cannot take part at all: its schedule counts as one that failed, which ends the others'. */
static int stop_gather(weft_comm *comm)
{
    int rc = weft_fail(WEFT_E_NOMEM, "no memory to duplicate a communicator of %d members", comm->size);
    weft_team_stop(&comm->team, rc, (int)(comm->team.sequence++ & WEFT_TAG_BITS));
    return rc;
}

/* This member's part. attributes: those copied so far. rc: an earlier error. */
static int make_part(dup *self, weft_info *info, int rc)
{
    weft_comm *comm = self->parent;
    void *attributes = NULL;
    if (!rc && !(self->ids[0] && self->ids[1]))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %d ranks", comm->size);
    if (!rc)
        rc = copy_attributes(comm, &attributes);
    if (!rc)
        rc = weft_comm_open(comm, comm->group, (uint32_t)comm->rank, &self->comm);
    if (rc) {
        if (self->comm)
            weft_comm_close(self->comm);
        self->comm = NULL;
        discard_attributes(comm->worker, &attributes, rc);
        return rc;
    }
    weft_comm_hold(self->comm); /* the program must not free it yet, but may */
    self->comm->traits.attributes = attributes;
    self->comm->topo = weft_topo_share(comm->topo);
    weft_comm_set_hints(self->comm, info);
    return 0;
}

/* The arguments were wrong: the call fails at once, and this member's part, which has no duplicate, ends by itself. */
static int detach(dup *self, MPI_Request *request)
{
    int rc = self->failed;
    char cause[512];
    snprintf(cause, sizeof cause, "%s", self->cause);
    *request = MPI_REQUEST_NULL;
    if (self->req->is_done)
        weft_request_release(self->req);
    else
        weft_request_detach(self->req, false);
    return weft_fail(rc, "%s", cause);
}

static int idup(weft_comm *comm, weft_info *info, MPI_Comm *newcomm, MPI_Request *request, int failed)
{
    dup *self;
    int rc;
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    if (comm->is_inter)
        return weft_fail(WEFT_E_UNSUPPORTED, "MPI_Comm_idup of an intercommunicator is not built yet: use MPI_Comm_dup");
    weft_comm_hold(comm); /* a copy function may free it */
    self = dup_new(comm);
    if (self) {
        self->failed = make_part(self, info, failed);
        if (self->failed)
            snprintf(self->cause, sizeof self->cause, "%s", weft_fail_text(self->failed));
        self->newcomm = newcomm;
        *newcomm = self->comm ? self->comm : MPI_COMM_NULL;
    }
    rc = self ? start_gather(self) : stop_gather(comm);
    if (rc && self) {
        weft_comm *made = self->comm;
        self->comm = NULL;
        *newcomm = MPI_COMM_NULL;
        weft_req_free(self->req);
        if (made) {
            discard_attributes(comm->worker, &made->traits.attributes, rc);
            weft_comm_close(made);
        }
    }
    rc = weft_request_return(comm, comm->team.chan, rc ? NULL : self->req, rc, request);
    if (!rc && failed)
        rc = detach(self, request);
    weft_comm_drop(comm);
    return rc;
}

int weft_mpi_comm_idup(weft_comm *comm, MPI_Comm *newcomm, MPI_Request *request, int failed)
{
    return idup(comm, NULL, newcomm, request, failed);
}

int weft_mpi_comm_idup_with_info(weft_comm *comm, weft_info *info, MPI_Comm *newcomm, MPI_Request *request, int failed)
{
    return idup(comm, info, newcomm, request, failed);
}

static int free_active(weft_req *req)
{
    (void)req;
    return weft_fail(WEFT_E_REQUEST, "the request is of a duplication of a communicator: complete it, it cannot be freed");
}

const weft_request_ops weft_request_ops_dup = {.name = "duplication of a communicator", .free = free_active, .query = query_dup};
