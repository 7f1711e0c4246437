/* SPDX-License-Identifier: BSD-3-Clause
 *
 * precv: partitioned receives (MPI 5.0 4.2.2). Receives for runs are posted, one ahead, from the start of the request, or from the coming
 * of the sender's SETUP message, whichever is later, until all units are announced. Called by the generated entries: init with the
 * worker's lock held, MPI_Parrived without.
 * Invariant: a run that does not cover whole elements of a type with gaps is received packed, and unpacked when first asked for.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/partitioned.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"
#include "type/pack.h"

enum unit_state { UNIT_OPEN, UNIT_COMING, UNIT_PACKED, UNIT_HERE }; /* PACKED: has arrived, is to be unpacked */

typedef struct precv {
    weft_partitioned shared;
    weft_req *setup_req;          /* NULL: none; received into its own memory, since it outlives a request that is freed before it comes */
    weft_completion setup_done;
    bool has_setup, is_waiting; /* is_waiting: started before SETUP has come */
    int failed;                 /* why nothing can be received: an error of SETUP or of a span; 0: it can */
    char failed_text[160];
    bool is_draining;           /* has failed, but the sender has not: what it sends is received and dropped, so that its sends end */
    bool is_posting;            /* inside post_next, which is not re-entrant: a receive may end in the call that posts it */
    weft_partition_run *next;   /* whose span is awaited; NULL: none */
    uint32_t announced;         /* units whose span has come */
    uint8_t *states;            /* [setup.units] enum unit_state; NULL: none yet */
    char *packed;               /* [setup.bytes] runs that are received packed; NULL: none can be */
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
    free(self->states);
    free(self);
}

/* Are both ends of these units between elements? */
static bool is_direct(const weft_partitioned *shared, uint32_t first, uint32_t units)
{
    uint64_t size = (uint64_t)shared->type->size;
    return shared->type->is_dense || !size ||
           (shared->setup.unit_bytes * first % size == 0 && weft_partition_span_bytes(&shared->setup, first, units) % size == 0);
}

/* Memory for the units, also for those that cannot be received in place. */
static bool prepare(precv *self)
{
    weft_partitioned *shared = &self->shared;
    uint32_t units = shared->setup.units;
    bool is_packed = false;
    if (self->states)
        return true;
    for (uint32_t i = 0; i < units && !is_packed; i++)
        is_packed = !is_direct(shared, i, 1);
    if (is_packed && !self->packed)
        self->packed = malloc(shared->setup.bytes);
    if (!is_packed || self->packed)
        self->states = calloc(units, 1);
    return self->states;
}

/* -- runs -- */

static void post_next(precv *self);

/* Nothing more can be received; text: this thread's. Ends the units that are not announced. is_draining: the sender goes on. */
static void fail(precv *self, int rc, bool is_draining)
{
    uint32_t rest = self->shared.setup.units - self->announced;
    self->failed = rc;
    snprintf(self->failed_text, sizeof self->failed_text, "%s", weft_fail_text(rc));
    self->is_draining = is_draining;
    self->announced = self->shared.setup.units;
    if (rest)
        weft_partitioned_done(&self->shared, rest, rc);
}

static int damaged(const weft_partitioned *shared, const char *what)
{
    return weft_fail(WEFT_E_CORRUPT, "%s of a partitioned message of rank %d, tag %d, is damaged", what, shared->rank, shared->tag);
}

static void on_body(weft_completion *completion)
{
    weft_partition_run *run = weft_container(completion, weft_partition_run, completion);
    precv *self = weft_container(run->of, precv, shared);
    weft_partition_span span = run->span;
    int rc = completion->rc;
    if (span.units && !rc && run->body->recv_info.bytes != weft_partition_span_bytes(&self->shared.setup, span.first, span.units))
        rc = damaged(&self->shared, "a part");
    weft_partition_run_end(run);
    if (!span.units) /* dropped */
        return;
    memset(self->states + span.first, is_direct(&self->shared, span.first, span.units) || rc ? UNIT_HERE : UNIT_PACKED, span.units);
    weft_partitioned_done(&self->shared, span.units, rc);
}

/* span.units 0: receives no byte, and so drops them. */
static int post_body(precv *self, weft_partition_run *run)
{
    weft_partitioned *shared = &self->shared;
    const weft_type *byte = weft_type_of(MPI_BYTE);
    uint64_t from = shared->setup.unit_bytes * run->span.first, size = (uint64_t)shared->type->size;
    uint64_t bytes = run->span.units ? weft_partition_span_bytes(&shared->setup, run->span.first, run->span.units) : 0;
    int tag = weft_partition_body_tag(&shared->setup);
    weft_partition_run_await(run, 1, on_body);
    if (shared->type->is_dense || !bytes)
        return weft_irecv_into(shared->data_chan, shared->rank, tag, (char *)shared->buf + shared->type->true_lb + from, bytes, byte,
                               run->body);
    if (is_direct(shared, run->span.first, run->span.units))
        return weft_irecv_into(shared->data_chan, shared->rank, tag, (char *)shared->buf + (int64_t)(from / size) * shared->type->extent,
                               bytes / size, shared->type, run->body);
    return weft_irecv_into(shared->data_chan, shared->rank, tag, self->packed + from, bytes, byte, run->body);
}

/* Is it a span of units that are still OPEN? */
static bool is_sound(const precv *self, const weft_partition_run *run)
{
    uint32_t all = self->shared.setup.units, first = run->span.first, units = run->span.units;
    if (run->head->recv_info.bytes != sizeof run->span || !units || first >= all || units > all - first)
        return false;
    for (uint32_t i = first; i < first + units; i++)
        if (self->states[i] != UNIT_OPEN)
            return false;
    return true;
}

/* A span has come. */
static void on_head(weft_completion *completion)
{
    weft_partition_run *run = weft_container(completion, weft_partition_run, completion);
    precv *self = weft_container(run->of, precv, shared);
    int rc = completion->rc;
    self->next = NULL;
    if (!rc && !self->failed && !is_sound(self, run))
        rc = damaged(&self->shared, "the span of a part");
    if (rc && !weft_status_is_damage(rc)) {
        weft_partition_run_end(run);
        fail(self, rc, false);
        return;
    }
    if (rc && !self->failed)
        fail(self, rc, true);
    if (self->failed) {
        run->span = (weft_partition_span){0, 0};
    } else {
        memset(self->states + run->span.first, UNIT_COMING, run->span.units);
        self->announced += run->span.units;
    }
    rc = post_body(self, run);
    if (rc) {
        completion->rc = rc;
        on_body(completion);
    }
    post_next(self);
}

/* Posts a receive for the next span, if there is to be one. */
static void post_next(precv *self)
{
    weft_partitioned *shared = &self->shared;
    if (self->is_posting)
        return;
    self->is_posting = true;
    while (!self->next && (self->announced < shared->setup.units || self->is_draining)) {
        weft_partition_run *run = weft_partition_run_begin(shared, WEFT_REQ_RECV);
        int rc = run ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for a receive request");
        self->next = run;
        if (run) {
            weft_partition_run_await(run, 1, on_head);
            rc = weft_irecv_into(shared->data_chan, shared->rank, weft_partition_head_tag(&shared->setup), &run->span, sizeof run->span,
                                 weft_type_of(MPI_BYTE), run->head);
        }
        if (rc) {
            self->next = NULL;
            if (run)
                weft_partition_run_end(run);
            fail(self, rc, false);
        }
    }
    self->is_posting = false;
}

/* Begins the receiving of an operation whose SETUP has come. */
static void begin(precv *self)
{
    weft_partitioned *shared = &self->shared;
    int rc = self->failed ? weft_fail(self->failed, "%s", self->failed_text) : 0;
    if (!rc && !prepare(self))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for %llu packed bytes", (unsigned long long)shared->setup.bytes);
    shared->req->recv_info = (weft_recv_info){.source = shared->rank, .tag = shared->tag, .bytes = shared->setup.bytes};
    shared->left = shared->setup.units;
    if (rc) {
        weft_partitioned_done(shared, shared->left, rc);
        return;
    }
    memset(self->states, UNIT_OPEN, shared->setup.units);
    self->announced = 0;
    post_next(self);
}

/* -- the request -- */

static bool is_plausible(const weft_partition_setup *setup)
{
    uint64_t all;
    return setup->units && !__builtin_mul_overflow(setup->unit_bytes, (uint64_t)setup->units, &all) && all >= setup->bytes &&
           all - setup->bytes < (setup->bytes ? setup->unit_bytes : 1);
}

static int check_setup(const precv *self)
{
    const weft_partitioned *shared = &self->shared;
    uint64_t bytes = weft_partition_bytes(shared) * shared->partitions;
    if (!is_plausible(&shared->setup))
        return damaged(shared, "the first message");
    if (bytes != shared->setup.bytes)
        return weft_fail(WEFT_E_TRUNCATE, "the partitioned message of rank %d with tag %d has %llu bytes, the receive buffer %llu: "
                         "they must be equal",
                         shared->rank, shared->tag, (unsigned long long)shared->setup.bytes, (unsigned long long)bytes);
    return 0;
}

/* SETUP has come; inside a poll. Of a message of another length the sender's parts are dropped. */
static void on_setup(weft_completion *completion)
{
    precv *self = weft_container(completion, precv, setup_done);
    weft_partitioned *shared = &self->shared;
    int rc = completion->rc;
    shared->setup = ((const weft_partition_body *)self->setup_req->extra)->setup;
    self->has_setup = true;
    if (!rc)
        rc = check_setup(self);
    if (rc) {
        shared->setup.units = 1; /* of which the failed operation has one */
        self->announced = 1;
        fail(self, rc, rc == WEFT_E_TRUNCATE);
    }
    if (self->is_waiting) {
        self->is_waiting = false;
        begin(self);
    }
    if (self->is_draining)
        post_next(self);
}

static int start(weft_req *req)
{
    precv *self = req->extra;
    weft_partitioned *shared = &self->shared;
    weft_language_move(shared->ext.copies, false, 0, SIZE_MAX);
    if (shared->rank == WEFT_PROC_NULL) {
        req->recv_info = (weft_recv_info){.source = WEFT_PROC_NULL, .tag = WEFT_ANY_TAG};
        weft_req_end(req, 0);
        return 0;
    }
    weft_partitioned_begin(shared, 1, shared->data_chan->is_helped);
    if (self->has_setup)
        begin(self);
    else
        self->is_waiting = true;
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
    if (self->states[unit] != UNIT_PACKED)
        return;
    weft_unpack(shared->type, shared->buf, shared->count * shared->partitions, from, weft_partition_span_bytes(&shared->setup, unit, 1),
                self->packed + from);
    self->states[unit] = UNIT_HERE;
}

/* Have all units with bytes of the partition arrived? */
static bool has_arrived(precv *self, uint32_t partition)
{
    const weft_partitioned *shared = &self->shared;
    uint64_t bytes = weft_partition_bytes(shared), from = bytes * partition, to = from + bytes;
    uint32_t first, last;
    if (shared->req->is_done && shared->req->rc) /* the completing call returns the error */
        return true;
    if (!self->has_setup || self->is_waiting || !self->states)
        return false;
    first = shared->setup.unit_bytes ? (uint32_t)(from / shared->setup.unit_bytes) : 0;
    last = bytes ? (uint32_t)((to - 1) / shared->setup.unit_bytes) : first;
    for (uint32_t i = first; i <= last; i++)
        if (self->states[i] < UNIT_PACKED)
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
        return weft_partitioned_no_partition(&self->shared, partition);
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
    for (uint32_t i = 0; self->packed && self->states && !req->rc && i < self->shared.setup.units; i++)
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
