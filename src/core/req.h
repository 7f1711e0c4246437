/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req: allocates, completes and frees requests. Requests are owned by their worker's pool; requires worker->lock.
 * weft_req_end sets is_done exactly once, after all other fields.
 */
#ifndef WEFT_CORE_REQ_H
#define WEFT_CORE_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/object.h"
#include "core/req_type.h"
#include "core/worker_type.h"

/* Numbers of requests of pools; the WEFT_REQ_STATICS before them are of the workers' done_req, by worker, and then of their done_sched. */
#define WEFT_REQ_STATICS_EACH 32
#define WEFT_REQ_STATICS (2 * WEFT_REQ_STATICS_EACH)
#define WEFT_REQ_NUMBER_MIN (WEFT_LANGUAGE_DONE + WEFT_REQ_STATICS)

/* Allocates from the worker's pool. Zero: is_done, is_persistent, is_active, is_static, is_posted, has_rndv, rc, completion, chan, type,
 * recv_info, extra. Fields of the message are not set. NULL: out of memory. */
weft_req *weft_req_new(weft_worker *worker, enum weft_req_kind kind);
/* Frees a request that is done and in no rendezvous, and its extra. No effect on is_static. */
void weft_req_free(weft_req *req);
/* A worker closes: returns the memory of all its requests to the process. */
void weft_req_close(weft_worker *worker);
/* The valid request of a pool with this number (weft_req.number); NULL: none. Takes no lock. */
weft_req *weft_req_by_number(int number);
/* Calls `each` for every allocated request of the worker; `each` may free that request. */
void weft_req_each(weft_worker *worker, void (*each)(weft_req *req));
/* Stores the calling thread's error text (weft_fail) for the thread that will complete the request. The last 16 of a worker are kept. */
void weft_req_record_error(weft_req *req, int rc) __attribute__((cold));
/* Before a failed request's rc is returned: sets the thread's error text to the stored one, else to a general sentence for rc. */
void weft_req_report_error(const weft_req *req) __attribute__((cold));
/* Slow path of weft_req_end: notifies the completion and wakes a sleeping leader. */
void weft_req_notify(weft_req *req);
/* Completes a request, exactly once: sets rc and is_done, notifies its completion, wakes a sleeping leader. */
static inline void weft_req_end(weft_req *req, int rc)
{
    req->rc = rc;
    if (__builtin_expect(rc != 0, 0))
        weft_req_record_error(req, rc);
    req->is_done = true;
    if (__builtin_expect(req->completion || req->worker->is_asleep, 0))
        weft_req_notify(req);
}

#endif
