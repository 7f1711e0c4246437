/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held: see held.h.
 */
#include "p2p/held.h"

#include <string.h>

#include "base/status.h"
#include "core/worker_type.h"
#include "p2p/req_data.h"
#include "type/pack.h"

static void end_taker(const weft_held *self)
{
    weft_req *taker = self->taker;
    uint64_t bytes = self->req->bytes, copied = bytes < taker->bytes ? bytes : taker->bytes;
    int rc = self->req->rc;
    taker->recv_info = (weft_recv_info){.source = self->hdr.src, .tag = self->hdr.tag, .bytes = copied};
    if (!rc && taker->is_dense)
        memcpy(weft_req_start(taker), self->req->buf, copied);
    else if (!rc)
        weft_unpack(taker->type, taker->buf, weft_req_count(taker), 0, copied, self->req->buf);
    taker->worker->counters[WEFT_COUNT_BYTES_COPIED] += copied;
    if (!rc && copied < bytes)
        rc = weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu", self->hdr.src,
                       self->hdr.tag, (unsigned long long)bytes, (unsigned long long)copied);
    weft_req_end(taker, rc);
}

static void end_if_over(weft_held *self)
{
    if (!self->is_here || (!self->taker && !self->is_dropped))
        return;
    if (self->taker)
        end_taker(self);
    self->free(self);
}

void weft_held_recv(weft_held *self, weft_req *req)
{
    self->taker = req;
    req->recv_info = (weft_recv_info){.source = self->hdr.src, .tag = self->hdr.tag, .bytes = self->req->bytes};
    end_if_over(self);
}

void weft_held_drop(weft_held *self)
{
    self->is_dropped = true;
    end_if_over(self);
}

void weft_held_on_here(weft_held *self)
{
    self->is_here = true;
    end_if_over(self);
}
