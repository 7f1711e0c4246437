/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request_array: completes several requests (MPI 5.0 3.7.5). Called by the generated entries without locks: requests may belong to
 * several workers, and each is accessed under its own worker's lock only.
 * Invariant: MPI_ERROR of the statuses is written if and only if the call returns MPI_ERR_IN_STATUS.
 */
#include <mpi.h>
#include <sched.h>

#include "base/event.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/errors.h"
#include "mpi/request.h"
#include "mpi/status.h"
#include "p2p/p2p.h"

/* The worker whose lock this thread holds; NULL: none. */
typedef struct held_lock {
    weft_worker *worker;
} held_lock;

static inline void held_lock_move(held_lock *held, weft_worker *worker)
{
    if (held->worker == worker)
        return;
    if (held->worker)
        weft_worker_unlock(held->worker);
    if (worker)
        weft_worker_lock(worker);
    held->worker = worker;
}

/* Result of an array call so far. */
typedef struct tally {
    MPI_Status *statuses; /* NULL: ignored */
    int count;            /* statuses that are valid when the call ends */
    int first_failed;     /* index of the first failed request; -1: none */
    weft_traits *at;      /* its object, whose error handler runs; valid if first_failed is */
    char why[256];
} tally;

static inline MPI_Status *status_at(const tally *result, int i) { return result->statuses ? &result->statuses[i] : MPI_STATUS_IGNORE; }

static void record_failure(tally *result, int place, int index, int rc) __attribute__((cold));
static void record_failure(tally *result, int place, int index, int rc)
{
    if (result->first_failed < 0) {
        const char *text = weft_fail_text(rc);
        size_t i = 0;
        for (; i < sizeof result->why - 1 && text[i]; i++)
            result->why[i] = text[i];
        result->why[i] = 0;
        result->first_failed = index;
        result->at = weft_errors_object();
        for (i = 0; result->statuses && i < (size_t)result->count; i++)
            result->statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (result->statuses)
        result->statuses[place].MPI_ERROR = weft_errors_class(rc);
}

static int tally_end(const tally *result)
{
    if (weft_likely(result->first_failed < 0))
        return 0;
    weft_errors_set_object(result->at, WEFT_E_IN_STATUS); /* text and handler belong to the same request, whatever failed later */
    return weft_fail(WEFT_E_IN_STATUS, "request %d failed: %s", result->first_failed, result->why);
}

/* A wait for several requests of one worker. */
typedef struct array_wait {
    weft_wait wait;
    const MPI_Request *requests;
    int first, count; /* waits for indices [first, count) */
    bool needs_all;   /* waits until all are done, else until one is */
} array_wait;

/* wait.attach: sets the completion of each request; several handles may refer to one request. completion NULL: removes it again.
 * False: nothing was set, a request has another completion already. */
static bool attach_array(weft_wait *wait, weft_completion *completion)
{
    const array_wait *self = weft_container(wait, array_wait, wait);
    uint32_t attached = 0;
    for (int i = self->first; i < self->count; i++) {
        weft_req *req = weft_request_of(self->requests[i]);
        if (weft_request_is_idle(req) || req->is_static || req->worker != wait->worker)
            continue;
        if (!completion) {
            req->completion = req->completion == &wait->completion ? NULL : req->completion;
        } else if (!req->is_done && req->completion != completion) {
            if (req->completion) {
                attach_array(wait, NULL);
                return false;
            }
            req->completion = completion;
            attached++;
        }
    }
    if (completion && self->needs_all)
        completion->left = attached;
    return true;
}

static void any_begin(array_wait *self, weft_worker *worker, int count, const MPI_Request requests[])
{
    self->requests = requests;
    self->first = 0;
    self->count = count;
    self->needs_all = false;
    weft_wait_begin(&self->wait, worker, WEFT_WAIT_REASON_REQUESTS, WEFT_ANY, WEFT_ANY_TAG, 0);
    self->wait.attach = attach_array;
}

static void end_wait(array_wait *self)
{
    if (self->wait.worker)
        weft_wait_end(&self->wait);
    self->wait.worker = NULL;
}

/* Waits for request `first`. If another thread polls (leader), this one sleeps until all requests from `first` on are done. The wait stays
 * open for the next request: a thread that leads keeps the lead, and one that parked does not take it. */
static void wait_for_first(array_wait *self, int first)
{
    const weft_req *req = weft_request_of(self->requests[first]);
    self->first = first;
    if (!self->wait.worker) {
        weft_wait_begin(&self->wait, req->worker, WEFT_WAIT_REASON_REQUESTS, WEFT_ANY, WEFT_ANY_TAG, 0);
        self->wait.attach = attach_array;
    }
    weft_req_wait_show(&self->wait, req);
    do
        weft_wait_progress(&self->wait);
    while (!req->is_done);
    weft_wait_pause(&self->wait);
}

int weft_mpi_waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
    tally result = {.statuses = array_of_statuses, .count = count, .first_failed = -1};
    held_lock held = {NULL};
    array_wait self;
    int first_left = count, rc;
    self.requests = array_of_requests;
    self.count = count;
    self.needs_all = true;
    self.wait.worker = NULL;
    /* First the requests that are already done, without a poll. */
    for (int i = 0; i < count; i++) {
        weft_req *req = weft_request_of(array_of_requests[i]);
        if (weft_request_is_idle(req)) {
            weft_status_clear(status_at(&result, i));
            continue;
        }
        if (req->is_static) {
            array_of_requests[i] = MPI_REQUEST_NULL;
            weft_status_fill(status_at(&result, i), &req->recv_info);
            continue;
        }
        held_lock_move(&held, req->worker);
        if (!req->is_done)
            first_left = first_left == count ? i : first_left;
        else if ((rc = weft_request_finish(&array_of_requests[i], req, status_at(&result, i))))
            record_failure(&result, i, i, rc);
    }
    /* Then the others in order: waiting for one progresses all, so that later ones are mostly done. */
    for (int i = first_left; i < count; i++) {
        weft_req *req = weft_request_of(array_of_requests[i]);
        if (weft_request_is_idle(req))
            continue;
        if (req->worker != held.worker)
            end_wait(&self);
        held_lock_move(&held, req->worker);
        if (!req->is_done)
            wait_for_first(&self, i);
        if ((rc = weft_request_finish(&array_of_requests[i], req, status_at(&result, i))))
            record_failure(&result, i, i, rc);
    }
    end_wait(&self);
    held_lock_move(&held, NULL);
    return weft_event_point(tally_end(&result));
}

/* Worker of the requests that are not idle; *is_mixed: there are several workers. NULL: nothing to complete. */
static weft_worker *survey(int count, const MPI_Request requests[], bool *is_mixed)
{
    weft_worker *worker = NULL;
    *is_mixed = false;
    for (int i = 0; i < count; i++) {
        weft_req *req = weft_request_of(requests[i]);
        if (weft_request_is_idle(req))
            continue;
        *is_mixed |= worker && worker != req->worker;
        worker = req->worker;
    }
    return worker;
}

/* Polls each worker that has a request of the array. */
static void poll_workers(held_lock *held, int count, const MPI_Request requests[], bool is_mixed)
{
    weft_worker *latest = NULL;
    for (int i = 0; i < count; i++) {
        weft_req *req = weft_request_of(requests[i]);
        if (weft_request_is_idle(req) || req->worker == latest)
            continue;
        latest = req->worker;
        held_lock_move(held, latest);
        weft_worker_poll(latest);
        if (!is_mixed)
            return;
    }
}

/* One step of waiting. Single worker: the wait engine, which may sleep. Several: polls all and yields, since a sleep in one worker
 * would miss events of the others. */
static void wait_step(held_lock *held, weft_wait *wait, int count, const MPI_Request requests[], bool is_mixed)
{
    if (!is_mixed) {
        held_lock_move(held, wait->worker);
        weft_wait_progress(wait);
        return;
    }
    poll_workers(held, count, requests, true);
    held_lock_move(held, NULL);
    sched_yield();
}

/* Index of the first done request at or after `from`; count: none. */
static int find_done(held_lock *held, int from, int count, const MPI_Request requests[])
{
    for (int i = from; i < count; i++) {
        weft_req *req = weft_request_of(requests[i]);
        if (weft_request_is_idle(req))
            continue;
        held_lock_move(held, req->worker);
        if (req->is_done)
            return i;
    }
    return count;
}

/* Completes one request if one is done. */
static int any(int count, MPI_Request requests[], int *indx, int *flag, MPI_Status *status, bool wait_for_it)
{
    held_lock held = {NULL};
    bool is_mixed;
    weft_worker *worker = survey(count, requests, &is_mixed);
    array_wait self;
    int found, rc = 0;
    *indx = MPI_UNDEFINED;
    *flag = 1;
    if (!worker) {
        weft_status_clear(status);
        return 0;
    }
    found = find_done(&held, 0, count, requests);
    if (found == count && wait_for_it) {
        any_begin(&self, worker, count, requests);
        do
            wait_step(&held, &self.wait, count, requests, is_mixed);
        while ((found = find_done(&held, 0, count, requests)) == count);
        held_lock_move(&held, worker);
        weft_wait_end(&self.wait);
    } else if (found == count) {
        poll_workers(&held, count, requests, is_mixed);
        found = find_done(&held, 0, count, requests);
    }
    if (found < count) {
        weft_req *req = weft_request_of(requests[found]);
        held_lock_move(&held, req->worker);
        *indx = found;
        rc = weft_request_finish(&requests[found], req, status);
    } else {
        *flag = 0;
    }
    held_lock_move(&held, NULL);
    return weft_event_point(rc);
}

int weft_mpi_waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
    int flag;
    return any(count, array_of_requests, indx, &flag, status, true);
}

int weft_mpi_testany(int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
    return any(count, array_of_requests, indx, flag, status, false);
}

/* Completes all requests that are done; wait_for_it: waits for at least one. */
static int some(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status *statuses, bool wait_for_it)
{
    tally result = {.statuses = statuses, .count = 0, .first_failed = -1};
    held_lock held = {NULL};
    bool is_mixed;
    weft_worker *worker = survey(count, requests, &is_mixed);
    array_wait self;
    int i, rc;
    *outcount = MPI_UNDEFINED;
    if (!worker)
        return 0;
    i = find_done(&held, 0, count, requests);
    if (i == count && wait_for_it) {
        any_begin(&self, worker, count, requests);
        do
            wait_step(&held, &self.wait, count, requests, is_mixed);
        while ((i = find_done(&held, 0, count, requests)) == count);
        held_lock_move(&held, worker);
        weft_wait_end(&self.wait);
    } else if (i == count) {
        poll_workers(&held, count, requests, is_mixed);
        i = find_done(&held, 0, count, requests);
    }
    for (; i < count; i = find_done(&held, i + 1, count, requests)) {
        weft_req *req = weft_request_of(requests[i]);
        int place = result.count++;
        if (result.first_failed >= 0 && statuses)
            statuses[place].MPI_ERROR = MPI_SUCCESS;
        indices[place] = i;
        held_lock_move(&held, req->worker);
        if ((rc = weft_request_finish(&requests[i], req, status_at(&result, place))))
            record_failure(&result, place, i, rc);
    }
    held_lock_move(&held, NULL);
    *outcount = result.count;
    return weft_event_point(tally_end(&result));
}

int weft_mpi_waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                      MPI_Status *array_of_statuses)
{
    return some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, true);
}

int weft_mpi_testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                      MPI_Status *array_of_statuses)
{
    return some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, false);
}

/* Index of the first request at or after `from` that is neither idle nor done; count: none. */
static int find_left(held_lock *held, int from, int count, const MPI_Request requests[])
{
    for (int i = from; i < count; i++) {
        weft_req *req = weft_request_of(requests[i]);
        if (weft_request_is_idle(req))
            continue;
        held_lock_move(held, req->worker);
        if (!req->is_done)
            return i;
    }
    return count;
}

/* Index of the first request that is not done, after one poll if there is one; count: none. */
static int poll_left(held_lock *held, int count, const MPI_Request requests[])
{
    int left = find_left(held, 0, count, requests);
    bool is_mixed;
    if (left == count)
        return left;
    survey(count, requests, &is_mixed);
    poll_workers(held, count, requests, is_mixed);
    return find_left(held, left, count, requests); /* requests before `left` stay done */
}

/* All or nothing: no request changes unless all are done. */
int weft_mpi_testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses)
{
    tally result = {.statuses = array_of_statuses, .count = count, .first_failed = -1};
    held_lock held = {NULL};
    int left = poll_left(&held, count, array_of_requests);
    held_lock_move(&held, NULL);
    *flag = left == count;
    return *flag ? weft_mpi_waitall(count, array_of_requests, result.statuses) : weft_event_point(0);
}

/* -- without completing: the requests stay as they are -- */

int weft_mpi_request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
    held_lock held = {NULL};
    bool is_mixed;
    int found, rc = 0;
    *indx = MPI_UNDEFINED;
    *flag = 1;
    if (!survey(count, array_of_requests, &is_mixed)) {
        weft_status_clear(status);
        return 0;
    }
    if ((found = find_done(&held, 0, count, array_of_requests)) == count) {
        poll_workers(&held, count, array_of_requests, is_mixed);
        found = find_done(&held, 0, count, array_of_requests);
    }
    *flag = found < count;
    if (found < count) {
        *indx = found;
        rc = weft_request_peek(weft_request_of(array_of_requests[found]), status);
    }
    held_lock_move(&held, NULL);
    return rc;
}

/* Status of a done request, at a place of the array of statuses. */
static void peek_into(tally *result, weft_req *req, int place, int index)
{
    int rc = weft_request_peek(req, status_at(result, place));
    if (weft_unlikely(rc))
        record_failure(result, place, index, rc);
    else if (weft_unlikely(result->first_failed >= 0) && result->statuses)
        result->statuses[place].MPI_ERROR = MPI_SUCCESS;
}

int weft_mpi_request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses)
{
    tally result = {.statuses = array_of_statuses, .count = count, .first_failed = -1};
    held_lock held = {NULL};
    int left = poll_left(&held, count, array_of_requests);
    *flag = left == count;
    for (int i = 0; i < count && *flag; i++) {
        weft_req *req = weft_request_of(array_of_requests[i]);
        if (weft_request_is_idle(req)) {
            weft_status_clear(status_at(&result, i));
            continue;
        }
        held_lock_move(&held, req->worker);
        peek_into(&result, req, i, i);
    }
    held_lock_move(&held, NULL);
    return tally_end(&result);
}

int weft_mpi_request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                                     MPI_Status *array_of_statuses)
{
    tally result = {.statuses = array_of_statuses, .count = 0, .first_failed = -1};
    held_lock held = {NULL};
    bool is_mixed;
    int i;
    *outcount = MPI_UNDEFINED;
    if (!survey(incount, array_of_requests, &is_mixed))
        return 0;
    poll_workers(&held, incount, array_of_requests, is_mixed);
    for (i = find_done(&held, 0, incount, array_of_requests); i < incount; i = find_done(&held, i + 1, incount, array_of_requests)) {
        int place = result.count++;
        array_of_indices[place] = i;
        peek_into(&result, weft_request_of(array_of_requests[i]), place, i);
    }
    held_lock_move(&held, NULL);
    *outcount = result.count;
    return tally_end(&result);
}
