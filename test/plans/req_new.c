/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req_new: requests of test_plans and test_clock, from malloc; weft_req_free differs.
 */
#include <stdlib.h>

#include "core/req.h"

weft_req *weft_req_new(weft_worker *worker, enum weft_req_kind kind)
{
    weft_req *req = calloc(1, sizeof *req);
    req->magic = WEFT_REQ_MAGIC;
    req->worker = worker;
    req->kind = (uint8_t)kind;
    return req;
}
