/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_counter: counters of the library by name, read through MPI_T. The test sets `session`.
 */
#ifndef TEST_MPI_TOOL_COUNTER_H
#define TEST_MPI_TOOL_COUNTER_H

#include "check.h"

static MPI_T_pvar_session session;

static inline unsigned long long value_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* Starts to count; the handle is freed with the session. */
static inline MPI_T_pvar_handle counter(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

#endif
