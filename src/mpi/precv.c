/* SPDX-License-Identifier: BSD-3-Clause
 *
 * precv: partitioned receives (MPI 5.0 4.2.2). A receive for each of the sender's units is posted when the request is started, or when the
 * sender's SETUP message comes, whichever is later. Called by the generated entries: init with the worker's lock held, MPI_Parrived
 * without. Invariant: a unit that does not cover whole elements of a type with gaps is received packed, and unpacked when first asked for.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/partitioned.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"
#include "type/pack.h"

typedef struct precv {
    weft_partitioned shared;
    weft_req *setup_req;          /* NULL: none; received into its own memory, since it outlives a request that is freed before it comes */
    weft_completion setup_done;
    bool has_setup, is_waiting; /* is_waiting: started before SETUP has come */
    bool is_helped;             /* while is_waiting: counts in worker->helped */
    int setup_rc;               /* why SETUP cannot be used; 0: it can */
    char setup_text[160];
    char *packed;               /* [setup.bytes] units that are received packed; NULL: none are */
    uint8_t *is_unpacked;       /* [units] if packed */
} precv;

/* A SETUP that has not come is still received: it belongs to this request, not to the next one with its tag. */
static void free_setup(weft_req *setup_req)
{
    setup_req->completion = NULL;
    if (!setup_req->is_done)
        weft_comm_hold(setup_req->chan->user);
    if (setup_req->is_done) {
        weft_req_free(setup_req);
    } else if (weft_request_detach(setup_req, true)) {
        weft_cancel(setup_req);
        weft_req_wait(setup_req);
        weft_request_release(setup_req);
    }
}

static void free_precv(weft_req *req)
{
    precv *self = req->extra;
    if (self->setup_req)
        free_setup(self->setup_req);
    weft_partitioned_close(&self->shared);
    free(self->packed);
    free(self->is_unpacked);
    free(self);
}

/* Are both ends of the unit between elements? */
static bool is_direct(const weft_partitioned *shared, uint32_t unit)
{
    uint64_t size = (uint64_t)shared->type->size;
    return shared->type->is_dense || !size ||
           (shared->setup.unit_bytes * unit % size == 0 && weft_partition_unit_bytes(&shared->setup, unit) % size == 0);
}

static int post_unit(precv *self, uint32_t unit)
{
    weft_partitioned *shared = &self->shared;
    uint64_t from = shared->setup.unit_bytes * unit, bytes = weft_partition_unit_bytes(&shared->setup, unit);
    uint64_t size = (uint64_t)shared->type->size;
    int tag = (int)(((uint32_t)shared->setup.tag + unit) & 0x3fffffffu);
    weft_req *req = weft_partitioned_unit(shared, unit, WEFT_REQ_RECV);
    if (!req)
        return weft_fail(WEFT_E_NOMEM, "no memory for a receive request");
    if (shared->type->is_dense || !size)
        return weft_irecv_into(shared->data_chan, shared->rank, tag, (char *)shared->buf + shared->type->true_lb + from, bytes,
                               weft_type_of(MPI_BYTE), req);
    if (is_direct(shared, unit))
        return weft_irecv_into(shared->data_chan, shared->rank, tag, (char *)shared->buf + (int64_t)(from / size) * shared->type->extent,
                               bytes / size, shared->type, req);
    self->is_unpacked[unit] = 0;
    return weft_irecv_into(shared->data_chan, shared->rank, tag, self->packed + from, bytes, weft_type_of(MPI_BYTE), req);
}

/* Memory for units that cannot be received in place. */
static bool prepare(precv *self)
{
    weft_partitioned *shared = &self->shared;
    bool is_packed = false;
    for (uint32_t i = 0; i < shared->setup.units && !is_packed; i++)
        is_packed = !is_direct(shared, i);
    if (!is_packed || self->packed)
        return true;
    self->packed = malloc(shared->setup.bytes);
    self->is_unpacked = calloc(shared->setup.units, 1);
    return self->packed && self->is_unpacked;
}

/* Posts the receives of an operation. One more unit is counted until all are posted: units may end at once. */
static void post(precv *self)
{
    weft_partitioned *shared = &self->shared;
    int rc = self->setup_rc ? weft_fail(self->setup_rc, "%s", self->setup_text) : 0;
    if (!rc && !prepare(self))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for %llu packed bytes", (unsigned long long)shared->setup.bytes);
    weft_partitioned_begin(shared, 1);
    for (uint32_t i = 0; i < shared->setup.units && !rc; i++) {
        shared->completion.left++;
        rc = post_unit(self, i);
        if (rc)
            shared->completion.left--;
    }
    shared->req->recv_info = (weft_recv_info){.source = shared->rank, .tag = shared->tag, .bytes = shared->setup.bytes};
    weft_partitioned_one_done(shared, rc);
}

static bool is_plausible(const weft_partition_setup *setup)
{
    uint64_t all;
    return setup->units && !__builtin_mul_overflow(setup->unit_bytes, (uint64_t)setup->units, &all) && all >= setup->bytes &&
           all - setup->bytes < (setup->bytes ? setup->unit_bytes : 1);
}

/* SETUP has come; inside a poll. */
static void on_setup(weft_completion *completion)
{
    precv *self = weft_container(completion, precv, setup_done);
    weft_partitioned *shared = &self->shared;
    uint64_t bytes = weft_partition_bytes(shared) * shared->partitions;
    shared->setup = ((const weft_partition_body *)self->setup_req->extra)->setup;
    self->has_setup = true;
    self->setup_rc = completion->rc;
    if (self->setup_rc)
        snprintf(self->setup_text, sizeof self->setup_text, "%s", weft_fail_text(self->setup_rc));
    else if (bytes != shared->setup.bytes)
        self->setup_rc = WEFT_E_TRUNCATE;
    else if (!is_plausible(&shared->setup))
        self->setup_rc = WEFT_E_CORRUPT;
    if (self->setup_rc == WEFT_E_CORRUPT && !self->setup_text[0])
        snprintf(self->setup_text, sizeof self->setup_text, "the first message of a partitioned send of rank %d, tag %d, is damaged",
                 shared->rank, shared->tag);
    if (self->setup_rc == WEFT_E_TRUNCATE)
        snprintf(self->setup_text, sizeof self->setup_text,
                 "the partitioned message of rank %d with tag %d has %llu bytes, the receive buffer %llu: they must be equal", shared->rank,
                 shared->tag, (unsigned long long)shared->setup.bytes, (unsigned long long)bytes);
    if (self->setup_rc)
        shared->setup.units = 0;
    if (!self->is_waiting)
        return;
    self->is_waiting = false;
    post(self);
    weft_worker_help_end(shared->data_chan->worker, self->is_helped);
}

static int start(weft_req *req)
{
    precv *self = req->extra;
    weft_language_move(self->shared.ext.copies, false, 0, SIZE_MAX);
    if (self->shared.rank == WEFT_PROC_NULL) {
        req->recv_info = (weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG};
        weft_req_end(req, 0);
    } else if (self->has_setup) {
        post(self);
    } else {
        self->is_waiting = true;
        self->is_helped = self->shared.data_chan->is_helped;
        weft_worker_help_begin(req->worker, self->is_helped);
    }
    return 0;
}

static int check(const void *buf, int source, MPI_Count count, const weft_type *type)
{
    if (source == WEFT_ANY)
        return weft_fail(WEFT_E_RANK, "source is MPI_ANY_SOURCE: partitioned receives have no wildcards");
    if (!buf && count && type->size)
        return weft_fail(WEFT_E_BUFFER, "buf is NULL: partitioned messages have no absolute addresses");
    return 0;
}

int weft_mpi_precv_init(void *buf, int partitions, MPI_Count count, const weft_type *datatype, int source, int tag, weft_comm *comm,
                        weft_info *info, MPI_Request *request)
{
    int rc = check(buf, source, count, datatype);
    precv *self = rc ? NULL : calloc(1, sizeof *self);
    weft_req *req = NULL;
    (void)info;
    *request = MPI_REQUEST_NULL;
    if (!self)
        return rc ? rc : weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
    self->shared = (weft_partitioned){.buf = buf, .count = (uint64_t)count, .type = datatype, .rank = source, .tag = tag};
    rc = weft_partitioned_open(&self->shared, comm, WEFT_REQ_PRECV, partitions, &req);
    if (rc) {
        free(self);
        return rc;
    }
    self->shared.ext.free = free_precv;
    if (source != WEFT_PROC_NULL) {
        weft_partition_body *body = weft_partition_body_new(NULL);
        self->setup_req = body ? weft_req_new(comm->worker, WEFT_REQ_RECV) : NULL;
        if (!self->setup_req) {
            free(body);
            weft_req_free(req);
            return weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
        }
        self->setup_req->extra = body;
        self->setup_done = (weft_completion){.left = 1, .open = on_setup};
        self->setup_req->completion = &self->setup_done;
        weft_irecv_into(self->shared.setup_chan, source, tag, &body->setup, sizeof body->setup, weft_type_of(MPI_BYTE),
                        self->setup_req);
    }
    return weft_request_return(comm, comm->chan, req, 0, request);
}

static void unpack(precv *self, uint32_t unit)
{
    weft_partitioned *shared = &self->shared;
    uint64_t from = shared->setup.unit_bytes * unit;
    if (is_direct(shared, unit) || self->is_unpacked[unit])
        return;
    weft_unpack(shared->type, shared->buf, shared->count * shared->partitions, from, weft_partition_unit_bytes(&shared->setup, unit),
                self->packed + from);
    self->is_unpacked[unit] = 1;
}

/* Have all units with bytes of the partition arrived? */
static bool has_arrived(precv *self, uint32_t partition)
{
    const weft_partitioned *shared = &self->shared;
    uint64_t bytes = weft_partition_bytes(shared), from = bytes * partition, to = from + bytes;
    uint32_t first, last;
    if (shared->req->is_done && shared->req->rc) /* the completing call returns the error */
        return true;
    if (!self->has_setup || self->is_waiting || !shared->units)
        return false;
    first = shared->setup.unit_bytes ? (uint32_t)(from / shared->setup.unit_bytes) : 0;
    last = bytes ? (uint32_t)((to - 1) / shared->setup.unit_bytes) : first;
    for (uint32_t i = first; i <= last; i++)
        if (!shared->units[i] || !shared->units[i]->is_done)
            return false;
    for (uint32_t i = first; i <= last; i++)
        unpack(self, i);
    weft_partitioned_move(shared, partition, true);
    return true;
}

int weft_mpi_parrived(MPI_Request request, int partition, int *flag)
{
    bool is_idle;
    weft_req *req;
    precv *self;
    int rc = weft_partitioned_find(request, WEFT_REQ_PRECV, &req, &is_idle);
    *flag = 1;
    if (rc || !req)
        return rc;
    self = req->extra;
    if (partition < 0 || (uint32_t)partition >= self->shared.partitions) {
        weft_errors_set_object(&((weft_comm *)req->chan->user)->traits, WEFT_E_ARG);
        return weft_fail(WEFT_E_ARG, "partition %d is not in 0..%u", partition, self->shared.partitions - 1);
    }
    if (is_idle || self->shared.rank == WEFT_PROC_NULL)
        return 0;
    weft_worker_lock(req->worker);
    *flag = has_arrived(self, (uint32_t)partition);
    if (!*flag) {
        weft_worker_poll(req->worker);
        *flag = has_arrived(self, (uint32_t)partition);
    }
    weft_worker_unlock(req->worker);
    return 0;
}

/* The buffer is complete when the request is: what came packed is unpacked now. */
static int query(weft_req *req, MPI_Status *status, bool completes)
{
    precv *self = req->extra;
    (void)completes;
    for (uint32_t i = 0; self->packed && !req->rc && i < self->shared.setup.units; i++)
        unpack(self, i);
    weft_language_move(self->shared.ext.copies, true, 0, SIZE_MAX);
    weft_status_fill(status, &req->recv_info);
    return req->rc;
}

static int free_active(weft_req *req)
{
    if (!req->is_done)
        return weft_fail(WEFT_E_REQUEST, "the partitioned receive is active: complete it before its request is freed");
    weft_request_release(req);
    return 0;
}

const weft_request_ops weft_request_ops_precv = {.name = "partitioned receive", .start = start, .free = free_active, .query = query};
