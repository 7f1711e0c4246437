/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partitioned: what partitioned sends and receives share. See partitioned.h. Requires the worker's lock.
 */
#include "mpi/partitioned.h"

#include <stdlib.h>

#include "base/status.h"
#include "mpi/errors.h"
#include "mpi/request.h"

int weft_partitioned_open(weft_partitioned *self, weft_comm *comm, enum weft_req_kind kind, int partitions, weft_req **out)
{
    uint64_t most = self->count ? self->type->count_max / self->count : UINT64_MAX;
    weft_req *req;
    if (partitions < 0)
        return weft_fail(WEFT_E_ARG, "partitions is %d: it cannot be negative", partitions);
    if ((uint64_t)partitions > most)
        return weft_fail(WEFT_E_COUNT, "count is %llu: %d partitions of so many elements exceed 2^62 bytes",
                         (unsigned long long)self->count, partitions);
    self->partitions = (uint32_t)partitions;
    self->setup_chan = weft_chan_sub(comm->chan, WEFT_CHAN_SETUP);
    self->data_chan = weft_chan_sub(comm->chan, WEFT_CHAN_DATA);
    req = self->setup_chan && self->data_chan ? weft_req_new(comm->worker, kind) : NULL;
    if (!req)
        return weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
    self->req = req;
    weft_type_hold(self->type);
    req->is_persistent = true;
    req->extra = self;
    *out = req;
    return 0;
}

static void free_body(weft_req *req) { free(req->extra); }

weft_partition_body *weft_partition_body_new(const weft_partition_setup *setup)
{
    weft_partition_body *body = calloc(1, sizeof *body);
    if (!body)
        return NULL;
    body->ext.free = free_body;
    if (setup)
        body->setup = *setup;
    return body;
}

/* The program's request is done. A message still under way is a receive of a failed operation, which drops the data (precv). */
static void leave_run(weft_partition_run *run)
{
    run->late = !run->completion.left ? NULL : run->head->is_done ? run->body : run->head;
    run->head->completion = run->body->completion = NULL;
    if (run->late && run->late->is_posted)
        weft_cancel(run->late);
}

void weft_partitioned_close(weft_partitioned *self)
{
    for (weft_partition_run *run = self->runs; run; run = run->next) /* all, before a wait polls */
        leave_run(run);
    for (weft_partition_run *run = self->runs, *next; run; run = next) {
        next = run->next;
        if (run->late && !run->late->is_done)
            weft_req_wait(run->late);
        weft_req_free(run->head);
        weft_req_free(run->body);
        free(run);
    }
    weft_type_drop(self->type);
}

void weft_partitioned_begin(weft_partitioned *self, uint32_t units, bool is_helped)
{
    self->left = units;
    self->rc = 0;
    self->is_helped = is_helped;
    weft_worker_help_begin(self->req->worker, is_helped);
}

void weft_partitioned_done(weft_partitioned *self, uint32_t units, int rc)
{
    self->rc = weft_status_worse(self->rc, rc);
    self->left -= units;
    if (self->left)
        return;
    weft_worker_help_end(self->req->worker, self->is_helped);
    weft_req_end(self->req, self->rc);
}

weft_partition_run *weft_partition_run_begin(weft_partitioned *self, enum weft_req_kind kind)
{
    weft_partition_run *run = self->idle_runs;
    if (run) {
        self->idle_runs = run->next_idle;
        return run;
    }
    run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->of = self;
    run->head = weft_req_new(self->data_chan->worker, kind);
    run->body = weft_req_new(self->data_chan->worker, kind);
    if (run->head && run->body) {
        run->head->completion = run->body->completion = &run->completion;
        run->next = self->runs;
        self->runs = run;
        return run;
    }
    if (run->head)
        weft_req_free(run->head);
    if (run->body)
        weft_req_free(run->body);
    free(run);
    return NULL;
}

void weft_partition_run_end(weft_partition_run *run)
{
    run->next_idle = run->of->idle_runs;
    run->of->idle_runs = run;
}

void weft_partition_run_await(weft_partition_run *run, uint32_t left, void (*open)(weft_completion *completion))
{
    run->completion = (weft_completion){.left = left, .open = open};
}

void weft_partitioned_move(const weft_partitioned *self, uint32_t partition, bool is_out)
{
    const weft_type *type = self->type;
    int64_t from = (int64_t)(self->count * partition) * type->extent, to = from + (int64_t)(self->count - 1) * type->extent;
    int64_t low = (from < to ? from : to) + type->true_lb, high = (from < to ? to : from) + type->true_lb + type->true_extent;
    if (self->count && high > 0)
        weft_language_move(self->ext.copies, is_out, (size_t)(low > 0 ? low : 0), (size_t)high);
}

int weft_partitioned_no_partition(const weft_partitioned *self, int partition)
{
    if (!self->partitions)
        return weft_fail(WEFT_E_ARG, "partition is %d: the request has no partitions", partition);
    return weft_fail(WEFT_E_ARG, "partition %d is not in 0..%u", partition, self->partitions - 1);
}

int weft_partitioned_find(MPI_Request request, enum weft_req_kind kind, weft_req **out, bool *is_idle)
{
    weft_req *req = *out = weft_request_of(request);
    *is_idle = weft_request_is_idle(req);
    if (!req || req->kind == kind)
        return 0;
    return weft_fail(WEFT_E_REQUEST, "request is not one of %s", kind == WEFT_REQ_PSEND ? "MPI_Psend_init" : "MPI_Precv_init");
}
