/* SPDX-License-Identifier: BSD-3-Clause
 *
 * psend: partitioned sends (MPI 5.0 4.2.1). MPI_Pready counts down its unit without a lock; the thread that makes a unit complete takes the
 * worker's lock, and sends it, or leaves it to the end of a run that is in flight: so units that are ready meanwhile move as one. Called
 * by the generated entries: init with the lock held, MPI_Pready... without.
 * Invariants: what a thread wrote before its Pready is seen by the thread that sends the unit (release and acquire on unit_left, then the
 * lock). While a unit is held back, a run is in flight, whose end sends it.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/progress_thread.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/partitioned.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"

#define AT_ONCE_MAX (64u << 10) /* bytes; a message up to this length holds no unit back: short ones leave in a frame each */

enum unit_state { UNIT_OPEN, UNIT_HELD, UNIT_SENT }; /* HELD: complete, not sent */

typedef struct psend {
    weft_partitioned shared;
    uint32_t unit_partitions;    /* partitions of a unit; the last unit may have fewer */
    _Atomic uint32_t *unit_left; /* [units] partitions that are not ready */
    _Atomic uint64_t *ready;     /* a bit for each partition */
    uint8_t *states;             /* [units] enum unit_state */
    uint32_t complete, sent;     /* units that are HELD or SENT; SENT */
    uint32_t cursor;             /* unit after the latest run */
    uint32_t in_flight;          /* runs */
    int failed;                  /* error of bytes whose span was sent: no further run may be sent. 0: none */
    bool is_sending;             /* inside send_held, which is not re-entrant: a run may end in the call that sends it */
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
    free(self->states);
    free(self);
}

/* Chooses the units; false: out of memory. */
static bool divide(psend *self)
{
    weft_partitioned *shared = &self->shared;
    uint32_t partitions = shared->partitions ? shared->partitions : 1;
    uint64_t bytes = shared->partitions ? weft_partition_bytes(shared) : 0;
    uint64_t each = bytes ? (WEFT_PARTITION_UNIT_MIN + bytes - 1) / bytes : partitions;
    self->unit_partitions = each < partitions ? (uint32_t)each : partitions;
    shared->setup.bytes = bytes * partitions;
    shared->setup.unit_bytes = bytes * self->unit_partitions;
    shared->setup.units = (partitions + self->unit_partitions - 1) / self->unit_partitions;
    self->unit_left = calloc(shared->setup.units, sizeof *self->unit_left);
    self->ready = calloc(shared->partitions / 64 + 1, sizeof *self->ready);
    self->states = calloc(shared->setup.units, 1);
    return self->unit_left && self->ready && self->states;
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
        shared->data_chan->tags_used += 2;
        rc = send_setup(self, comm);
    }
    if (rc) {
        weft_req_free(req);
        return rc;
    }
    return weft_request_return(comm, comm->chan, req, 0, request);
}

static int send_held(psend *self);

/* Requires the worker's lock. */
static int start(weft_req *req)
{
    psend *self = req->extra;
    uint32_t units = self->shared.setup.units;
    req->recv_info = (weft_recv_info){.source = WEFT_ANY, .tag = WEFT_ANY_TAG};
    for (uint32_t i = 0; i < units; i++)
        atomic_store_explicit(&self->unit_left[i], partitions_of(self, i), memory_order_relaxed);
    for (uint32_t i = 0; i <= self->shared.partitions / 64; i++)
        atomic_store_explicit(&self->ready[i], 0, memory_order_relaxed);
    memset(self->states, UNIT_OPEN, units);
    self->complete = self->sent = self->cursor = 0;
    weft_partitioned_begin(&self->shared, units, false);
    if (!self->shared.partitions) { /* there is nothing that the program could mark */
        self->states[0] = UNIT_HELD;
        self->complete = 1;
        send_held(self); /* records its error in the request */
    }
    return 0;
}

/* -- runs; all require the worker's lock -- */

static void on_run_done(weft_completion *completion)
{
    weft_partition_run *run = weft_container(completion, weft_partition_run, completion);
    psend *self = weft_container(run->of, psend, shared);
    uint32_t units = run->span.units;
    int rc = completion->rc;
    self->in_flight--;
    weft_partition_run_end(run);
    send_held(self); /* records its error in the request */
    weft_partitioned_done(&self->shared, units, rc);
}

/* Sends one of the two messages of a run. */
static int send_part(weft_partition_run *run, weft_req *req, int tag, const void *buf, uint64_t count, const weft_type *type,
                     enum weft_send_mode mode)
{
    weft_partitioned *shared = run->of;
    int rc = mode == WEFT_SEND_SYNC ? WEFT_AGAIN : weft_send_try(buf, count, type, shared->rank, tag, shared->data_chan, false);
    if (rc <= 0)
        return rc;
    run->completion.left++;
    rc = weft_isend_into(shared->data_chan, shared->rank, tag, buf, count, type, mode, req);
    run->completion.left -= rc != 0;
    return rc;
}

/* Sends units that are SENT now. A run behind which others may be held is synchronous: it ends when the receiver has it, not when it has
 * left, so that its end is a measure of what the receiver takes. One more end is awaited until both messages are started. */
static int send_run(psend *self, uint32_t first, uint32_t units)
{
    weft_partitioned *shared = &self->shared;
    uint64_t from = (uint64_t)first * self->unit_partitions, to = from + (uint64_t)units * self->unit_partitions;
    const char *buf = (const char *)shared->buf + (int64_t)(from * shared->count) * shared->type->extent;
    bool is_last = self->complete == shared->setup.units || shared->setup.bytes <= AT_ONCE_MAX;
    weft_partition_run *run = shared->rank == WEFT_PROC_NULL ? NULL : weft_partition_run_begin(shared, WEFT_REQ_SEND);
    int rc = 0;
    if (!run) {
        rc = shared->rank == WEFT_PROC_NULL ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for a send request");
        weft_partitioned_done(shared, units, rc);
        return rc;
    }
    to = to < shared->partitions ? to : shared->partitions;
    run->span = (weft_partition_span){first, units};
    weft_partition_run_await(run, 1, on_run_done);
    self->in_flight++;
    rc = send_part(run, run->head, weft_partition_head_tag(&shared->setup), &run->span, sizeof run->span, weft_type_of(MPI_BYTE),
                   WEFT_SEND_STANDARD);
    if (!rc)
        rc = self->failed = send_part(run, run->body, weft_partition_body_tag(&shared->setup), buf, (to - from) * shared->count,
                                      shared->type, is_last ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC);
    run->completion.rc = weft_status_worse(run->completion.rc, rc);
    if (--run->completion.left == 0)
        on_run_done(&run->completion);
    return rc;
}

/* The next run that is HELD becomes SENT, and is sent. */
static int send_next(psend *self)
{
    uint32_t units = self->shared.setup.units, first, end;
    const uint8_t *found = memchr(self->states + self->cursor, UNIT_HELD, units - self->cursor);
    if (!found)
        found = memchr(self->states, UNIT_HELD, units);
    first = end = (uint32_t)(found - self->states);
    while (end < units && self->states[end] == UNIT_HELD)
        self->states[end++] = UNIT_SENT;
    self->cursor = end;
    self->sent += end - first;
    if (weft_unlikely(self->failed))
        weft_partitioned_done(&self->shared, end - first, self->failed);
    return self->failed ? self->failed : send_run(self, first, end - first);
}

/* Sends what is HELD: of a long message one run at a time. Two at once of unlike lengths would also spoil the measurements by which p2p
 * selects a protocol for each length. */
static int send_held(psend *self)
{
    int rc = 0;
    if (self->is_sending)
        return 0;
    self->is_sending = true;
    while (self->sent < self->complete && (!self->in_flight || self->shared.setup.bytes <= AT_ONCE_MAX))
        rc = weft_status_worse(rc, send_next(self));
    self->is_sending = false;
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

static int check_ready(MPI_Request request, int length, const int *list, int low, weft_req **out)
{
    bool is_idle;
    int rc = weft_partitioned_find(request, WEFT_REQ_PSEND, out, &is_idle);
    const weft_partitioned *shared = rc || is_idle ? NULL : (*out)->extra;
    if (!rc && is_idle)
        rc = weft_fail(WEFT_E_REQUEST, *out ? "the request is not started" : "request is MPI_REQUEST_NULL");
    for (int i = 0; i < length && !rc; i++) {
        int partition = list ? list[i] : low + i;
        if (partition < 0 || (uint32_t)partition >= shared->partitions)
            rc = weft_partitioned_no_partition(shared, partition);
    }
    return rc;
}

/* Marks the partitions list[0 .. length - 1], or low, low + 1, ... if list is NULL. Locks the worker at the first unit that is complete. */
static int mark_all(psend *self, weft_worker *worker, int length, const int *list, int low, bool *is_locked)
{
    int rc = 0;
    for (int i = 0; i < length && !rc; i++) {
        int partition = list ? list[i] : low + i;
        uint32_t unit;
        if (weft_unlikely(self->shared.ext.copies != NULL))
            weft_partitioned_move(&self->shared, (uint32_t)partition, false);
        rc = mark(self, partition, &unit);
        if (unit == UINT32_MAX)
            continue;
        if (!*is_locked)
            weft_worker_lock(worker);
        *is_locked = true;
        self->states[unit] = UNIT_HELD;
        self->complete++;
    }
    return rc;
}

/* Marks partitions and sends the units that are complete. Looks whether the run has ended behind which units are held back. */
static int make_ready(MPI_Request request, int length, const int *list, int low)
{
    bool is_locked = false;
    weft_req *req;
    int rc = check_ready(request, length, list, low, &req);
    if (!rc) {
        psend *self = req->extra;
        weft_worker *worker = req->worker;
        rc = mark_all(self, worker, length, list, low, &is_locked);
        if (is_locked) {
            rc = weft_status_worse(rc, send_held(self));
            if (!rc && self->sent < self->complete) /* not after an error, whose text a poll may replace */
                weft_worker_poll(worker);
            weft_worker_unlock(worker);
            weft_progress_thread_offer(worker);
        }
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
