/* SPDX-License-Identifier: BSD-3-Clause
 *
 * language: errors that a binding of another language finds. See base/language.h.
 */
#include "base/language.h"

#include "base/status.h"
#include "mpi/errors.h"

int weft_language_refuse(void *handle, const char *function, int code, const char *text)
{
    weft_comm *comm = weft_comm_of(handle);
    return weft_errors_raise(comm ? &comm->traits : NULL, function, weft_fail(code, "%s: %s", function, text));
}
