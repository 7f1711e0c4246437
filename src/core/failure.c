/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure: error texts of a worker's last failed requests. Needed since texts are per thread (base/status), while any thread may complete a
 * request later. Entry points: weft_req_record_error, weft_req_report_error (req.h). Requires the worker's lock.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/req.h"

#define FAILURES 16
struct weft_failure {
    const weft_req *req;
    int rc;
    char text[508];
};

void weft_req_record_error(weft_req *req, int rc)
{
    weft_worker *worker = req->worker;
    struct weft_failure *one;
    if (!worker->failures && !(worker->failures = calloc(FAILURES, sizeof *worker->failures)))
        return;
    one = &worker->failures[worker->failure_next++ % FAILURES];
    one->req = req;
    one->rc = rc;
    snprintf(one->text, sizeof one->text, "%s", weft_fail_text(rc));
}

void weft_req_report_error(const weft_req *req)
{
    for (uint32_t i = 0; req->worker->failures && i < FAILURES; i++) {
        struct weft_failure *one = &req->worker->failures[(req->worker->failure_next - 1 - i) % FAILURES]; /* newest first */
        if (one->req == req && one->rc == req->rc) {
            weft_fail(req->rc, "%s", one->text);
            return;
        }
    }
    weft_fail(req->rc, "%s", weft_status_text(req->rc));
}
