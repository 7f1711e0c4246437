/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_pvar: performance variables of the tool information interface (MPI 5.0, 15.3.7): the rows of core/counters.def. Called by the
 * generated entries. Counters and timers run per handle, from its start to its stop. Levels and high-water marks are process-wide,
 * continuous and read-only. A handle adds no counting: it stores the process's value at its start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counters.h"
#include "mpi/calls.h"
#include "mpi/tool.h"

struct MPI_ABI_T_pvar_session {
    weft_list_link link;    /* in weft_tool.sessions */
    weft_list_link handles;
};

struct MPI_ABI_T_pvar_handle {
    weft_list_link link;    /* in its session's handles */
    int row;
    bool is_started;
    uint64_t value;    /* at the last stop, reset or write; while started the increase since `begin` is added */
    uint64_t begin;    /* the process's value at the last start, reset or write; valid while started */
};

static bool is_continuous(int row)
{
    return weft_count_rows[row].class == WEFT_COUNT_IS_LEVEL || weft_count_rows[row].class == WEFT_COUNT_IS_HIGHWATERMARK;
}

static bool is_narrow(int row) { return weft_count_rows[row].class == WEFT_COUNT_IS_WRAPPED; }

static int class_of(int row)
{
    switch (weft_count_rows[row].class) {
    case WEFT_COUNT_IS_LEVEL: return MPI_T_PVAR_CLASS_LEVEL;
    case WEFT_COUNT_IS_HIGHWATERMARK: return MPI_T_PVAR_CLASS_HIGHWATERMARK;
    case WEFT_COUNT_IS_TIMER: return MPI_T_PVAR_CLASS_TIMER;
    default: return MPI_T_PVAR_CLASS_COUNTER;
    }
}

static void name_of(int row, char *text, size_t capacity) { snprintf(text, capacity, "weft_%s", weft_count_rows[row].name); }

int weft_mpi_t_pvar_get_num(int *num_pvar)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!num_pvar)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *num_pvar = WEFT_COUNT_LAST;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!name || !pvar_index)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    for (int i = 0; i < WEFT_COUNT_LAST; i++) {
        char own[64];
        name_of(i, own, sizeof own);
        if (strcmp(own, name) == 0 && class_of(i) == var_class) {
            *pvar_index = i;
            return weft_tool_leave(MPI_SUCCESS);
        }
    }
    return weft_tool_leave(MPI_T_ERR_INVALID_NAME);
}

int weft_mpi_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *datatype,
                             MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous, int *atomic)
{
    WEFT_TOOL_ENTER(tool);
    char own[64], sentence[512];
    (void)tool;
    if (pvar_index < 0 || pvar_index >= WEFT_COUNT_LAST)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    const weft_count_row *row = &weft_count_rows[pvar_index];
    name_of(pvar_index, own, sizeof own);
    snprintf(sentence, sizeof sentence, "%s In %s.", row->sentence, row->unit);
    weft_tool_text(own, name, name_len);
    weft_tool_text(sentence, desc, desc_len);
    weft_tool_put(verbosity, row->group == WEFT_COUNT_OF_WAIT ? MPI_T_VERBOSITY_TUNER_DETAIL : MPI_T_VERBOSITY_TUNER_BASIC);
    weft_tool_put(var_class, class_of(pvar_index));
    if (datatype)
        *datatype = is_narrow(pvar_index) ? MPI_UNSIGNED : MPI_UNSIGNED_LONG_LONG;
    if (enumtype)
        *enumtype = MPI_T_ENUM_NULL;
    weft_tool_put(bind, MPI_T_BIND_NO_OBJECT);
    weft_tool_put(readonly, is_continuous(pvar_index));
    weft_tool_put(continuous, is_continuous(pvar_index));
    weft_tool_put(atomic, !is_continuous(pvar_index));
    return weft_tool_leave(MPI_SUCCESS);
}

/* -- sessions and handles -- */

static bool is_session(const weft_tool *tool, MPI_T_pvar_session session)
{
    for (const weft_list_link *link = tool->sessions.next; link != &tool->sessions; link = link->next)
        if (weft_container(link, struct MPI_ABI_T_pvar_session, link) == session)
            return true;
    return false;
}

static bool is_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    for (const weft_list_link *link = session->handles.next; link != &session->handles; link = link->next)
        if (weft_container(link, struct MPI_ABI_T_pvar_handle, link) == handle)
            return true;
    return false;
}

/* 0, or the MPI_T error for an invalid pair. */
static int check(const weft_tool *tool, MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    if (!is_session(tool, session))
        return MPI_T_ERR_INVALID_SESSION;
    return is_handle(session, handle) ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

int weft_mpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
    WEFT_TOOL_ENTER(tool);
    struct MPI_ABI_T_pvar_session *own = session ? malloc(sizeof *own) : NULL;
    if (!own)
        return weft_tool_leave(session ? MPI_T_ERR_MEMORY : MPI_T_ERR_INVALID);
    weft_list_init(&own->handles);
    weft_list_append(&tool->sessions, &own->link);
    *session = own;
    return weft_tool_leave(MPI_SUCCESS);
}

static void session_free(MPI_T_pvar_session session)
{
    weft_list_link *link;
    while ((link = weft_list_take(&session->handles)))
        free(weft_container(link, struct MPI_ABI_T_pvar_handle, link));
    weft_list_remove(&session->link);
    free(session);
}

int weft_mpi_t_pvar_session_free(MPI_T_pvar_session *session)
{
    WEFT_TOOL_ENTER(tool);
    if (!session || !is_session(tool, *session))
        return weft_tool_leave(MPI_T_ERR_INVALID_SESSION);
    session_free(*session);
    *session = MPI_T_PVAR_SESSION_NULL;
    return weft_tool_leave(MPI_SUCCESS);
}

void weft_tool_pvars_free(weft_tool *tool)
{
    while (!weft_list_is_empty(&tool->sessions))
        session_free(weft_container(tool->sessions.next, struct MPI_ABI_T_pvar_session, link));
}

int weft_mpi_t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle, int *count)
{
    WEFT_TOOL_ENTER(tool);
    (void)obj_handle; /* no variable is bound to an object */
    if (!is_session(tool, session))
        return weft_tool_leave(MPI_T_ERR_INVALID_SESSION);
    if (!handle || !count)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    if (pvar_index < 0 || pvar_index >= WEFT_COUNT_LAST)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    struct MPI_ABI_T_pvar_handle *own = calloc(1, sizeof *own);
    if (!own)
        return weft_tool_leave(MPI_T_ERR_MEMORY);
    own->row = pvar_index;
    weft_list_append(&session->handles, &own->link);
    *handle = own;
    *count = 1;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    WEFT_TOOL_ENTER(tool);
    int rc = handle ? check(tool, session, *handle) : MPI_T_ERR_INVALID_HANDLE;
    if (rc)
        return weft_tool_leave(rc);
    weft_list_remove(&(*handle)->link);
    free(*handle);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return weft_tool_leave(MPI_SUCCESS);
}

/* -- values -- */

static uint64_t process_value(const weft_tool *tool, int row)
{
    uint64_t values[WEFT_COUNT_LAST];
    weft_tool_read_counters(tool, values);
    return values[row];
}

static uint64_t value_of(const weft_tool *tool, MPI_T_pvar_handle handle)
{
    uint64_t value;
    if (is_continuous(handle->row))
        return process_value(tool, handle->row);
    value = handle->value + (handle->is_started ? process_value(tool, handle->row) - handle->begin : 0);
    return is_narrow(handle->row) ? (uint32_t)value : value;
}

static void put_value(int row, void *buf, uint64_t value)
{
    if (is_narrow(row))
        *(unsigned *)buf = (unsigned)value;
    else
        *(unsigned long long *)buf = value;
}

/* Sets the handle's value. */
static void set_value(const weft_tool *tool, MPI_T_pvar_handle handle, uint64_t value)
{
    handle->value = value;
    if (handle->is_started)
        handle->begin = process_value(tool, handle->row);
}

static void start(const weft_tool *tool, MPI_T_pvar_handle handle)
{
    if (handle->is_started)
        return;
    handle->begin = process_value(tool, handle->row);
    handle->is_started = true;
}

static void stop(const weft_tool *tool, MPI_T_pvar_handle handle)
{
    handle->value = value_of(tool, handle);
    handle->is_started = false;
}

static void reset(const weft_tool *tool, MPI_T_pvar_handle handle) { set_value(tool, handle, 0); }

/* Applies act to a handle, or to all handles of a session that support it. refusal: error for a single handle that does not. */
static int each(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int refusal,
                void (*act)(const weft_tool *tool, MPI_T_pvar_handle handle))
{
    WEFT_TOOL_ENTER(tool);
    int rc = handle == MPI_T_PVAR_ALL_HANDLES && is_session(tool, session) ? MPI_SUCCESS : check(tool, session, handle);
    if (rc)
        return weft_tool_leave(rc);
    if (handle != MPI_T_PVAR_ALL_HANDLES) {
        if (is_continuous(handle->row))
            return weft_tool_leave(refusal);
        act(tool, handle);
        return weft_tool_leave(MPI_SUCCESS);
    }
    for (weft_list_link *link = session->handles.next; link != &session->handles; link = link->next) {
        MPI_T_pvar_handle one = weft_container(link, struct MPI_ABI_T_pvar_handle, link);
        if (!is_continuous(one->row))
            act(tool, one);
    }
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return each(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, start);
}

int weft_mpi_t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return each(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP, stop);
}

int weft_mpi_t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return each(session, handle, MPI_T_ERR_PVAR_NO_WRITE, reset);
}

int weft_mpi_t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(tool, session, handle);
    if (rc || !buf)
        return weft_tool_leave(rc ? rc : MPI_T_ERR_INVALID);
    put_value(handle->row, buf, value_of(tool, handle));
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(tool, session, handle);
    if (rc || !buf)
        return weft_tool_leave(rc ? rc : MPI_T_ERR_INVALID);
    if (is_continuous(handle->row))
        return weft_tool_leave(MPI_T_ERR_PVAR_NO_WRITE);
    set_value(tool, handle, is_narrow(handle->row) ? *(const unsigned *)buf : *(const unsigned long long *)buf);
    return weft_tool_leave(MPI_SUCCESS);
}

/* Reads and resets at one value, so that no increase between the two is lost. */
int weft_mpi_t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(tool, session, handle);
    if (rc || !buf)
        return weft_tool_leave(rc ? rc : MPI_T_ERR_INVALID);
    if (is_continuous(handle->row))
        return weft_tool_leave(MPI_T_ERR_PVAR_NO_WRITE);
    uint64_t value = value_of(tool, handle);
    put_value(handle->row, buf, value);
    handle->begin += handle->is_started ? value - handle->value : 0;
    handle->value = 0;
    return weft_tool_leave(MPI_SUCCESS);
}
