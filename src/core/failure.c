/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure: why the last few requests of a lane failed: texts belong to threads (base/status), and requests are completed by any thread,
 * long after. Entry points weft_req_note and weft_req_say (req.h); requires the lane's lock.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/lane.h"
#include "core/req.h"

#define FAILURES 16
struct weft_failure {
    const weft_req *req;
    int rc;
    char text[508];
};

void weft_req_note(weft_req *req, int rc)
{
    weft_lane *lane = req->lane;
    struct weft_failure *one;
    if (!lane->failures && !(lane->failures = calloc(FAILURES, sizeof *lane->failures)))
        return;
    one = &lane->failures[lane->failure_next++ % FAILURES];
    one->req = req;
    one->rc = rc;
    snprintf(one->text, sizeof one->text, "%s", weft_fail_text(rc));
}

void weft_req_say(const weft_req *req)
{
    for (uint32_t i = 0; req->lane->failures && i < FAILURES; i++) {
        struct weft_failure *one = &req->lane->failures[(req->lane->failure_next - 1 - i) % FAILURES]; /* the youngest first */
        if (one->req == req && one->rc == req->rc) {
            weft_fail(req->rc, "%s", one->text);
            return;
        }
    }
    weft_fail(req->rc, "%s", weft_status_text(req->rc));
}
