/* SPDX-License-Identifier: BSD-3-Clause
 *
 * language: errors that a binding of another language finds, and copies of buffers that it keeps. See base/language.h.
 */
#include "base/language.h"

#include "base/status.h"
#include "mpi/errors.h"
#include "mpi/request.h"

int weft_language_refuse(void *handle, const char *function, int code, const char *text)
{
    weft_comm *comm = weft_comm_of(handle);
    return weft_errors_raise(comm ? &comm->traits : NULL, function, weft_fail(code, "%s: %s", function, text));
}

void weft_language_keep(void *request, weft_language_copy *first)
{
    weft_req *req = weft_request_of(request);
    if (req && !req->is_static) {
        ((weft_req_ext *)req->extra)->copies = first;
        return;
    }
    weft_language_move(first, true, 0, SIZE_MAX); /* the operation is complete */
    weft_language_copies_free(first);
}
