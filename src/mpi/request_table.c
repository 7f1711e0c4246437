/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request_table: the table of the kinds of requests. See request_ops.h.
 */
#include "collectives/sched.h"
#include "mpi/request.h"
#include "mpi/request_ops.h"
#include "mpi/status.h"
#include "p2p/p2p.h"

static int start_sched(weft_req *req)
{
    weft_language_move(((const weft_req_ext *)req->extra)->copies, false, 0, SIZE_MAX);
    return weft_sched_restart(req);
}

static int query_sched(weft_req *req, MPI_Status *status, bool completes)
{
    (void)completes;
    if (!req->is_static) /* static: the call that made it has ended it */
        weft_language_move(((const weft_req_ext *)req->extra)->copies, true, 0, SIZE_MAX);
    weft_status_fill(status, &req->recv_info);
    return req->rc;
}
static const weft_request_ops sched = {.name = "collective operation", .start = start_sched, .query = query_sched};
static const weft_request_ops other = {.name = "operation", .holds_type = true};

/* The messages were copied: the request ends at once. */
static int free_batch(weft_req *req)
{
    weft_cancel(req);
    weft_request_release(req);
    return 0;
}
static const weft_request_ops batch = {.name = "send", .holds_type = true, .is_shared = true, .cancel = weft_cancel, .free = free_batch};

const weft_request_ops *const weft_request_ops_table[WEFT_REQ_KINDS] = {
    [0] = &other,
    [WEFT_REQ_SEND] = &weft_request_ops_send,
    [WEFT_REQ_RECV] = &weft_request_ops_recv,
    [WEFT_REQ_SCHED] = &sched,
    [WEFT_REQ_USER] = &other,
    [WEFT_REQ_NOTHING] = &other,
    [WEFT_REQ_BATCH] = &batch,
    [WEFT_REQ_SENDRECV] = &weft_request_ops_sendrecv,
    [WEFT_REQ_GENERALIZED] = &weft_request_ops_generalized,
    [WEFT_REQ_DUP] = &weft_request_ops_dup,
    [WEFT_REQ_BSEND] = &weft_request_ops_bsend,
    [WEFT_REQ_FLUSH] = &weft_request_ops_flush,
    [WEFT_REQ_PSEND] = &weft_request_ops_psend,
    [WEFT_REQ_PRECV] = &weft_request_ops_precv,
    [WEFT_REQ_RMA] = &weft_request_ops_rma,
};
