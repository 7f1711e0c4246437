/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partitioned: what partitioned sends and receives share. See partitioned.h. Requires the worker's lock.
 */
#include "mpi/partitioned.h"

#include <stdlib.h>

#include "base/status.h"
#include "mpi/errors.h"
#include "mpi/request.h"

static void on_all_done(weft_completion *completion)
{
    weft_partitioned *self = weft_container(completion, weft_partitioned, completion);
    weft_req_end(self->req, completion->rc);
}

int weft_partitioned_open(weft_partitioned *self, weft_comm *comm, enum weft_req_kind kind, int partitions, weft_req **out)
{
    uint64_t most = self->count ? self->type->count_max / self->count : UINT64_MAX;
    weft_req *req;
    if (partitions <= 0)
        return weft_fail(WEFT_E_ARG, "partitions is %d: a partitioned message has at least one", partitions);
    if ((uint64_t)partitions > most)
        return weft_fail(WEFT_E_COUNT, "count is %llu: %d partitions of so many elements exceed 2^62 bytes",
                         (unsigned long long)self->count, partitions);
    self->partitions = (uint32_t)partitions;
    self->setup_chan = weft_chan_sub(comm->chan, WEFT_CHAN_SETUP);
    self->data_chan = weft_chan_sub(comm->chan, WEFT_CHAN_DATA);
    req = self->setup_chan && self->data_chan ? weft_req_new(comm->worker, kind) : NULL;
    if (!req)
        return weft_fail(WEFT_E_NOMEM, "no memory for a partitioned request");
    self->completion.open = on_all_done;
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

void weft_partitioned_close(weft_partitioned *self)
{
    for (uint32_t i = 0; self->units && i < self->setup.units; i++)
        if (self->units[i])
            weft_req_free(self->units[i]);
    free(self->units);
    weft_type_drop(self->type);
}

void weft_partitioned_begin(weft_partitioned *self, uint32_t units)
{
    self->completion.left = units;
    self->completion.rc = 0;
}

void weft_partitioned_one_done(weft_partitioned *self, int rc)
{
    self->completion.rc = weft_status_worse(self->completion.rc, rc);
    if (--self->completion.left == 0)
        on_all_done(&self->completion);
}

weft_req *weft_partitioned_unit(weft_partitioned *self, uint32_t i, enum weft_req_kind kind)
{
    if (!self->units && !(self->units = calloc(self->setup.units, sizeof *self->units)))
        return NULL;
    if (!self->units[i])
        self->units[i] = weft_req_new(self->data_chan->worker, kind);
    if (self->units[i])
        self->units[i]->completion = &self->completion;
    return self->units[i];
}

void weft_partitioned_move(const weft_partitioned *self, uint32_t partition, bool is_out)
{
    const weft_type *type = self->type;
    int64_t from = (int64_t)(self->count * partition) * type->extent, to = from + (int64_t)(self->count - 1) * type->extent;
    int64_t low = (from < to ? from : to) + type->true_lb, high = (from < to ? to : from) + type->true_lb + type->true_extent;
    if (self->count && high > 0)
        weft_language_move(self->ext.copies, is_out, (size_t)(low > 0 ? low : 0), (size_t)high);
}

int weft_partitioned_find(MPI_Request request, enum weft_req_kind kind, weft_req **out, bool *is_idle)
{
    weft_req *req = *out = weft_request_of(request);
    *is_idle = weft_request_is_idle(req);
    if (!req || req->kind == kind)
        return 0;
    return weft_fail(WEFT_E_REQUEST, "request is not one of %s", kind == WEFT_REQ_PSEND ? "MPI_Psend_init" : "MPI_Precv_init");
}
