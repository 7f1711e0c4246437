/* SPDX-License-Identifier: BSD-3-Clause
 *
 * psend: partitioned sends (MPI 5.0 4.2.1). MPI_Pready counts down its unit without a lock; the thread that makes a unit complete takes the
 * worker's lock and sends it. Called by the generated entries: init with the lock held, MPI_Pready... without.
 * Invariant: what a thread wrote before its Pready is seen by the thread that sends the unit (release and acquire on unit_left).
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/progress_thread.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/partitioned.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"

typedef struct psend {
    weft_partitioned shared;
    uint32_t unit_partitions;    /* partitions of a unit; the last unit may have fewer */
    _Atomic uint32_t *unit_left; /* [units] partitions that are not ready */
    _Atomic uint64_t *ready;     /* a bit for each partition */
    weft_req *setup_req;         /* of the SETUP message; NULL: sent */
} psend;

static uint32_t partitions_of(const psend *self, uint32_t unit)
{
    uint32_t rest = self->shared.partitions - unit * self->unit_partitions;
    return rest < self->unit_partitions ? rest : self->unit_partitions;
}

static void free_psend(weft_req *req)
{
    psend *self = req->extra;
    if (self->setup_req && (self->setup_req->is_done || weft_request_detach(self->setup_req, true))) {
        weft_req_wait(self->setup_req); /* not done only if there is no memory to detach it */
        weft_request_release(self->setup_req);
    }
    weft_partitioned_close(&self->shared);
    free(self->unit_left);
    free(self->ready);
    free(self);
}

/* Chooses the units; false: out of memory. */
static bool divide(psend *self)
{
    weft_partitioned *shared = &self->shared;
    uint64_t bytes = weft_partition_bytes(shared), each = bytes ? (WEFT_PARTITION_UNIT_MIN + bytes - 1) / bytes : shared->partitions;
    self->unit_partitions = each < shared->partitions ? (uint32_t)each : shared->partitions;
    shared->setup.bytes = bytes * shared->partitions;
    shared->setup.unit_bytes = bytes * self->unit_partitions;
    shared->setup.units = (shared->partitions + self->unit_partitions - 1) / self->unit_partitions;
    self->unit_left = calloc(shared->setup.units, sizeof *self->unit_left);
    self->ready = calloc(shared->partitions / 64 + 1, sizeof *self->ready);
    return self->unit_left && self->ready;
}

/* The message outlives the request if that is freed first. */
static int send_setup(psend *self, weft_comm *comm)
{
    weft_partitioned *shared = &self->shared;
    weft_partition_body *body = weft_partition_body_new(&shared->setup);
    int rc;
    if (!body)
        return weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
    rc = weft_isend(shared->setup_chan, shared->rank, shared->tag, &body->setup, sizeof body->setup, weft_type_of(MPI_BYTE),
                    WEFT_SEND_STANDARD, &self->setup_req);
    if (rc || self->setup_req->is_static) {
        self->setup_req = NULL;
        free(body);
        return rc;
    }
    self->setup_req->extra = body;
    weft_comm_hold(comm);
    return 0;
}

int weft_mpi_psend_init(const void *buf, int partitions, MPI_Count count, const weft_type *datatype, int dest, int tag, weft_comm *comm,
                        weft_info *info, MPI_Request *request)
{
    psend *self = calloc(1, sizeof *self);
    weft_partitioned *shared = &self->shared;
    weft_req *req = NULL;
    int rc = self ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
    (void)info;
    *request = MPI_REQUEST_NULL;
    if (rc)
        return rc;
    *shared = (weft_partitioned){.buf = (void *)buf, .count = (uint64_t)count, .type = datatype, .rank = dest, .tag = tag};
    rc = weft_partitioned_open(shared, comm, WEFT_REQ_PSEND, partitions, &req);
    if (rc) {
        free(self);
        return rc;
    }
    shared->ext.free = free_psend;
    if (!divide(self)) {
        rc = weft_fail(WEFT_E_NOMEM, "no memory for %d partitions", partitions);
    } else if (dest != WEFT_PROC_NULL) {
        shared->setup.tag = (int32_t)(shared->data_chan->tags_used & 0x3fffffffu);
        shared->data_chan->tags_used += shared->setup.units;
        rc = send_setup(self, comm);
    }
    if (rc) {
        weft_req_free(req);
        return rc;
    }
    return weft_request_return(comm, comm->chan, req, 0, request);
}

static int start(weft_req *req)
{
    psend *self = req->extra;
    uint32_t units = self->shared.setup.units;
    req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
    for (uint32_t i = 0; i < units; i++)
        atomic_store_explicit(&self->unit_left[i], partitions_of(self, i), memory_order_relaxed);
    for (uint32_t i = 0; i <= self->shared.partitions / 64; i++)
        atomic_store_explicit(&self->ready[i], 0, memory_order_relaxed);
    weft_partitioned_begin(&self->shared, units);
    return 0;
}

/* The partitions of the unit are ready. Requires the worker's lock. */
static int send_unit(psend *self, uint32_t unit)
{
    weft_partitioned *shared = &self->shared;
    uint64_t from = (uint64_t)unit * self->unit_partitions * shared->count, count = partitions_of(self, unit) * shared->count;
    const char *buf = (const char *)shared->buf + (int64_t)from * shared->type->extent;
    int tag = (int)(((uint32_t)shared->setup.tag + unit) & 0x3fffffffu), rc = 0;
    weft_req *req;
    if (shared->rank != WEFT_PROC_NULL)
        rc = weft_send_try(buf, count, shared->type, shared->rank, tag, shared->data_chan, false);
    if (rc <= 0) {
        weft_partitioned_one_done(shared, rc);
        return rc;
    }
    req = weft_partitioned_unit(shared, unit, WEFT_REQ_SEND);
    rc = req ? weft_isend_into(shared->data_chan, shared->rank, tag, buf, count, shared->type, WEFT_SEND_STANDARD, req)
             : weft_fail(WEFT_E_NOMEM, "no memory for a send request");
    if (rc)
        weft_partitioned_one_done(shared, rc);
    return rc;
}

/* Marks a partition. *unit: the unit that is complete now, else UINT32_MAX. */
static int mark(psend *self, int partition, uint32_t *unit)
{
    uint32_t i = (uint32_t)partition;
    uint64_t bit = UINT64_C(1) << i % 64;
    *unit = UINT32_MAX;
    if (atomic_fetch_or_explicit(&self->ready[i / 64], bit, memory_order_relaxed) & bit)
        return weft_fail(WEFT_E_ARG, "partition %d was marked ready already since the request was started", partition);
    i /= self->unit_partitions;
    if (atomic_fetch_sub_explicit(&self->unit_left[i], 1, memory_order_acq_rel) == 1)
        *unit = i;
    return 0;
}

/* Marks the partitions list[0 .. length - 1], or low, low + 1, ... if list is NULL, and sends the units that are complete. */
static int make_ready(MPI_Request request, int length, const int *list, int low)
{
    bool is_idle, is_locked = false;
    weft_req *req;
    psend *self;
    int rc = weft_partitioned_find(request, WEFT_REQ_PSEND, &req, &is_idle);
    if (!rc && is_idle)
        rc = weft_fail(WEFT_E_REQUEST, req ? "the request is not started" : "request is MPI_REQUEST_NULL");
    self = rc ? NULL : req->extra;
    for (int i = 0; i < length && !rc; i++) {
        int partition = list ? list[i] : low + i;
        if (partition < 0 || (uint32_t)partition >= self->shared.partitions)
            rc = weft_fail(WEFT_E_ARG, "partition %d is not in 0..%u", partition, self->shared.partitions - 1);
    }
    for (int i = 0; i < length && !rc; i++) {
        uint32_t unit;
        if (weft_unlikely(self->shared.ext.copies != NULL))
            weft_partitioned_move(&self->shared, (uint32_t)(list ? list[i] : low + i), false);
        rc = mark(self, list ? list[i] : low + i, &unit);
        if (unit == UINT32_MAX)
            continue;
        if (!is_locked)
            weft_worker_lock(req->worker);
        is_locked = true;
        rc = send_unit(self, unit);
    }
    if (is_locked) {
        weft_worker_unlock(req->worker);
        weft_progress_thread_offer(req->worker);
    }
    if (rc && req && req->chan)
        weft_errors_set_object(&((weft_comm *)req->chan->user)->traits, rc);
    return rc;
}

int weft_mpi_pready(int partition, MPI_Request request) { return make_ready(request, 1, NULL, partition); }

int weft_mpi_pready_range(int partition_low, int partition_high, MPI_Request request)
{
    if (partition_low > partition_high)
        return weft_fail(WEFT_E_ARG, "partition_low is %d, above partition_high, %d", partition_low, partition_high);
    if (partition_low < 0)
        return make_ready(request, 1, NULL, partition_low);
    return make_ready(request, partition_high == INT32_MAX ? INT32_MAX : partition_high - partition_low + 1, NULL, partition_low);
}

int weft_mpi_pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
    if (length < 0 || (length && !array_of_partitions))
        return weft_fail(WEFT_E_ARG, length < 0 ? "length is %d: it cannot be negative" : "array_of_partitions is NULL (length is %d)",
                         length);
    return make_ready(request, length, array_of_partitions, 0);
}

/* MPI_Request_free of an active one (MPI 5.0 4.2.1: erroneous unless it is complete). */
static int free_active(weft_req *req)
{
    if (!req->is_done)
        return weft_fail(WEFT_E_REQUEST, "the partitioned send is active: complete it before its request is freed");
    weft_request_release(req);
    return 0;
}

const weft_request_ops weft_request_ops_psend = {.name = "partitioned send", .start = start, .free = free_active};
