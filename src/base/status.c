/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: see status.h. The last error text of each thread is thread-local.
 * Invariant: weft_fail does not allocate and cannot fail, so it can describe an out-of-memory error.
 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/macros.h"

static _Thread_local struct {
    int code;
    char text[512];
} said;

int weft_fail(int code, const char *format, ...)
{
    /* An argument may be the previous text ("while ...: %s"): format into a copy first. */
    char text[sizeof(said.text)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    __builtin_memcpy(said.text, text, sizeof(text));
    said.code = code;
    return code;
}

const char *weft_fail_text(int code)
{
    return code && said.code == code ? said.text : weft_status_text(code);
}

static const char *const words[] = {
    [0] = "no error",
    [-WEFT_E_NOMEM] = "out of memory",
    [-WEFT_E_NOSPACE] = "no space left in shared memory or on a device",
    [-WEFT_E_SYSTEM] = "a system call failed",
    [-WEFT_E_PEER] = "the peer has failed",
    [-WEFT_E_TIMEOUT] = "a deadline passed",
    [-WEFT_E_UNSUPPORTED] = "not supported",
    [-WEFT_E_INTERN] = "internal error: an invariant of the library is broken",
    [-WEFT_E_TRUNCATE] = "the message is longer than the receive buffer",
    [-WEFT_E_BUFFER] = "invalid buffer pointer",
    [-WEFT_E_COUNT] = "invalid count",
    [-WEFT_E_TYPE] = "invalid datatype",
    [-WEFT_E_TAG] = "invalid tag",
    [-WEFT_E_COMM] = "invalid communicator",
    [-WEFT_E_RANK] = "invalid rank",
    [-WEFT_E_REQUEST] = "invalid request",
    [-WEFT_E_ROOT] = "invalid root",
    [-WEFT_E_GROUP] = "invalid group",
    [-WEFT_E_OP] = "invalid reduction operation",
    [-WEFT_E_ARG] = "invalid argument",
    [-WEFT_E_ERRHANDLER] = "invalid error handler",
    [-WEFT_E_INFO] = "invalid info object",
    [-WEFT_E_KEY] = "a remote memory key was refused",
    [-WEFT_E_OTHER] = "known error not in this list",
    [-WEFT_E_IN_STATUS] = "the error code is in the statuses",
    [-WEFT_E_PENDING] = "the request is neither failed nor complete",
    [-WEFT_E_TOOLARGE] = "a value does not fit the type of its argument",
    [-WEFT_E_REVOKED] = "the communicator is revoked",
    [-WEFT_E_CORRUPT] = "a message was damaged in transit",
    [-WEFT_E_STALE] = "the memory window is invalid: the connection broke",
    [-WEFT_E_NOT_SAME] = "the members of the communicator did not make the same collective calls",
    [-WEFT_E_WIN] = "invalid window",
    [-WEFT_E_KEYVAL] = "invalid attribute key",
    [-WEFT_E_INFO_KEY] = "the info key is too long or empty",
    [-WEFT_E_INFO_VALUE] = "the info value is too long",
    [-WEFT_E_INFO_NOKEY] = "no such info key",
    [-WEFT_E_BASE] = "not the address of allocated memory",
    [-WEFT_E_ABI] = "an ABI function was used wrongly",
    [-WEFT_E_SESSION] = "invalid session",
    [-WEFT_E_TOPOLOGY] = "invalid virtual topology",
    [-WEFT_E_DIMS] = "invalid dimensions of a grid",
    [-WEFT_E_RMA_SYNC] = "wrong synchronization of a window",
    [-WEFT_E_RMA_RANGE] = "outside of the memory of the target",
    [-WEFT_E_RMA_CONFLICT] = "conflicting accesses to a window",
    [-WEFT_E_RMA_ATTACH] = "the memory cannot be attached to the window",
    [-WEFT_E_RMA_SHARED] = "the memory cannot be shared",
    [-WEFT_E_RMA_FLAVOR] = "a window of another flavor is required",
    [-WEFT_E_DISP] = "invalid displacement",
    [-WEFT_E_SIZE] = "invalid size of a window",
    [-WEFT_E_ASSERT] = "invalid assertion",
    [-WEFT_E_LOCKTYPE] = "invalid type of lock",
};
_Static_assert(weft_count(words) == -WEFT_E_LAST, "every code has its sentence");

const char *weft_status_text(int code)
{
    if (code == WEFT_AGAIN)
        return "a resource is full: try again";
    if (code == WEFT_INPROGRESS)
        return "accepted; its memory is still read";
    if (code > 0 || code <= WEFT_E_LAST)
        return "unknown error code";
    return words[-code];
}
