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
#include "collectives/calls.h"
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
        rc = weft_intercomm_make_of(comm, WEFT_CALL_DUP, 0, comm->rank, rc, &made);
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

/* The channels of a communicator. The last two are those of the local part of an intercommunicator. */
enum { MESSAGES, COLLECTIVES, LOCAL_MESSAGES, LOCAL_COLLECTIVES, CHANNELS };
enum { FINE = CHANNELS, WORDS }; /* behind the channels' ids */

/* Behind a request of kind DUP (req->extra). */
typedef struct dup {
    weft_req_ext ext;
    weft_completion completion; /* of gather */
    weft_req *req, *gather;     /* the program's request, and the allgather's */
    weft_comm *parent, *comm;   /* parent is held by req; comm: a reference; NULL: this member failed, or the duplicate was closed */
    MPI_Comm *newcomm;          /* the program's variable, MPI's until the request is completed; set to MPI_COMM_NULL by an error */
    uint32_t gather_number;     /* of the allgather on the parent's team */
    uint32_t *ids[CHANNELS];    /* each channel's at its members (members_of); owned; NULL: the channel's now, or no such channel */
    int failed;                 /* error of this member's part, and its text */
    char cause[512];
    uint32_t part[WORDS];
    uint32_t all[]; /* [members of the parent's team * WORDS] */
} dup;

static weft_chan *channel_of(const weft_comm *comm, int which)
{
    const weft_comm *part = which < LOCAL_MESSAGES ? comm : comm->local;
    return !part ? NULL : which == MESSAGES || which == LOCAL_MESSAGES ? part->chan : part->team.chan;
}

/* Those members of the team that have a channel, in the order of its ranks. */
static weft_members members_of(const weft_comm *comm, int which)
{
    if (which == MESSAGES)
        return comm->team.remote;
    return which == COLLECTIVES ? (weft_members){0, comm->team.size} : comm->team.local;
}

static int channels_of(const weft_comm *comm) { return comm->is_inter ? CHANNELS : LOCAL_MESSAGES; }

static void free_dup(weft_req *req)
{
    dup *self = req->extra;
    if (self->gather)
        weft_req_free(self->gather);
    if (self->comm)
        weft_comm_drop(self->comm);
    for (int which = 0; which < CHANNELS; which++)
        free(self->ids[which]);
    free(self);
}

static void connect_channel(dup *self, int which)
{
    weft_members members = members_of(self->parent, which);
    for (uint32_t i = 0; i < members.count; i++)
        self->ids[which][i] = self->all[(size_t)(members.first + i) * WORDS + (uint32_t)which];
    weft_chan_connect_by(channel_of(self->comm, which), self->ids[which]);
    self->ids[which] = NULL;
}

/* The allgather has ended. 0: all members are fine, and the channels are connected. */
static int connect(dup *self)
{
    const weft_team *team = &self->parent->team;
    weft_exchange over = weft_exchange_over_comm(self->parent);
    if (self->failed)
        return weft_fail(self->failed, "%s", self->cause);
    for (uint32_t i = 0; i < team->size; i++) {
        if (self->all[(size_t)i * WORDS + FINE])
            continue;
        if (!self->parent->is_inter)
            return weft_exchange_failed(&over, i);
        return weft_fail(WEFT_E_OTHER, "another member, %s, failed to make its part of the communicator: its own error names the cause",
                         weft_member_name_of(team, i).text);
    }
    for (int which = 0; which < channels_of(self->parent); which++)
        connect_channel(self, which);
    return 0;
}

/* The parent's collectives made the team. */
static void adopt(dup *self, weft_team *team)
{
    weft_team_connected(team);
    weft_team_adopt(&self->parent->team, team, self->gather_number);
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
        rc = connect(self);
    if (!rc)
        adopt(self, &self->comm->team);
    if (!rc && self->comm->local)
        adopt(self, &self->comm->local->team);
    if (rc && self->comm)
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
    for (int which = 0; which < channels_of(self->parent) && !self->failed; which++)
        self->part[which] = channel_of(self->comm, which)->id;
    self->part[FINE] = !self->failed;
    rc = weft_coll_start_all(&self->parent->team, WEFT_COLL_ALLGATHER, &coll, &self->gather);
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
    dup *self = calloc(1, sizeof *self + (size_t)comm->team.size * WORDS * sizeof *self->all);
    weft_req *req = self ? weft_req_new(comm->worker, WEFT_REQ_DUP) : NULL;
    if (!req) {
        free(self);
        return NULL;
    }
    self->parent = comm;
    self->req = req;
    for (int which = 0; which < channels_of(comm); which++)
        self->ids[which] = malloc(members_of(comm, which).count * sizeof *self->ids[which]);
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
    for (int which = 0; which < channels_of(comm) && !rc; which++)
        if (!self->ids[which])
            rc = weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %u ranks", comm->team.size);
    if (!rc)
        rc = copy_attributes(comm, &attributes);
    if (!rc)
        rc = comm->is_inter ? weft_intercomm_open(comm, &self->comm) : weft_comm_open(comm, comm->group, (uint32_t)comm->rank, &self->comm);
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
