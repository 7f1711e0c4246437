/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_cvar: control variables of the tool information interface (MPI 5.0 15.3.6): the knobs, under their WEFT_ names. Called by the
 * generated entries. Knobs are read from the environment at job start (again by MPI_Init) and are read-only here:
 * MPI_T_SCOPE_READONLY; a write returns MPI_T_ERR_CVAR_SET_NEVER.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "mpi/calls.h"
#include "mpi/tool.h"

#define TEXT_BYTES 1024 /* longest readable value of a text knob, bytes with the final 0 */

struct MPI_ABI_T_cvar_handle {
    weft_list_link link;
    int knob;
};

static void name_of(int knob, char *text, size_t capacity)
{
    snprintf(text, capacity, "WEFT_%s", weft_knob_rows[knob].name);
    for (char *at = text; *at; at++)
        *at = (char)toupper((unsigned char)*at);
}

static MPI_Datatype datatype_of(const weft_knob_row *row)
{
    return row->kind == WEFT_KNOB_SIZE ? MPI_UNSIGNED_LONG_LONG : row->kind == WEFT_KNOB_TEXT ? MPI_CHAR : MPI_INT;
}

/* Verbosity: selection and logging knobs are for users, experimental ones for developers, the others for tuning. */
static int verbosity_of(const weft_knob_row *row)
{
    static const char *const basic[] = {"log", "transports", "devices", "checksum", "counters", "start_timeout_s", "peer_timeout_s"};
    for (size_t i = 0; i < weft_count(basic); i++)
        if (strcmp(row->name, basic[i]) == 0)
            return MPI_T_VERBOSITY_USER_BASIC;
    return strstr(row->sentence, "trials") ? MPI_T_VERBOSITY_MPIDEV_BASIC : MPI_T_VERBOSITY_TUNER_BASIC;
}

int weft_mpi_t_cvar_get_num(int *num_cvar)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!num_cvar)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *num_cvar = weft_knob_row_count;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_cvar_get_index(const char *name, int *cvar_index)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!name || !cvar_index)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    for (int i = 0; i < weft_knob_row_count; i++) {
        char own[64];
        name_of(i, own, sizeof own);
        if (strcmp(own, name) == 0) {
            *cvar_index = i;
            return weft_tool_leave(MPI_SUCCESS);
        }
    }
    return weft_tool_leave(MPI_T_ERR_INVALID_NAME);
}

int weft_mpi_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype, MPI_T_enum *enumtype,
                             char *desc, int *desc_len, int *bind, int *scope)
{
    WEFT_TOOL_ENTER(tool);
    char own[64];
    (void)tool;
    if (cvar_index < 0 || cvar_index >= weft_knob_row_count)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    const weft_knob_row *row = &weft_knob_rows[cvar_index];
    name_of(cvar_index, own, sizeof own);
    weft_tool_text(own, name, name_len);
    weft_tool_text(row->sentence, desc, desc_len);
    weft_tool_put(verbosity, verbosity_of(row));
    if (datatype)
        *datatype = datatype_of(row);
    if (enumtype)
        *enumtype = weft_tool_enum_of(cvar_index);
    weft_tool_put(bind, MPI_T_BIND_NO_OBJECT);
    weft_tool_put(scope, MPI_T_SCOPE_READONLY);
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    WEFT_TOOL_ENTER(tool);
    (void)obj_handle; /* no variable is bound to an object */
    if (!handle || !count)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    if (cvar_index < 0 || cvar_index >= weft_knob_row_count)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    struct MPI_ABI_T_cvar_handle *own = malloc(sizeof *own);
    if (!own)
        return weft_tool_leave(MPI_T_ERR_MEMORY);
    own->knob = cvar_index;
    weft_list_append(&tool->cvars, &own->link);
    *handle = own;
    *count = weft_knob_rows[cvar_index].kind == WEFT_KNOB_TEXT ? TEXT_BYTES : 1;
    return weft_tool_leave(MPI_SUCCESS);
}

/* Is the handle allocated? */
static bool is_alive(const weft_tool *tool, MPI_T_cvar_handle handle)
{
    for (const weft_list_link *link = tool->cvars.next; link != &tool->cvars; link = link->next)
        if (weft_container(link, struct MPI_ABI_T_cvar_handle, link) == handle)
            return true;
    return false;
}

int weft_mpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    WEFT_TOOL_ENTER(tool);
    if (!handle || !is_alive(tool, *handle))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    weft_list_remove(&(*handle)->link);
    free(*handle);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    WEFT_TOOL_ENTER(tool);
    if (!is_alive(tool, handle))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    if (!buf)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    const weft_knob_row *row = &weft_knob_rows[handle->knob];
    const void *field = (const char *)&weft_knob + row->offset;
    switch (row->kind) {
    case WEFT_KNOB_INT:
    case WEFT_KNOB_CHOICE: *(int *)buf = *(const int *)field; break;
    case WEFT_KNOB_BOOL: *(int *)buf = *(const bool *)field; break;
    case WEFT_KNOB_SIZE: *(unsigned long long *)buf = *(const uint64_t *)field; break;
    case WEFT_KNOB_TEXT: snprintf(buf, TEXT_BYTES, "%s", *(const char *const *)field); break;
    }
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    WEFT_TOOL_ENTER(tool);
    if (!is_alive(tool, handle))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    return weft_tool_leave(buf ? MPI_T_ERR_CVAR_SET_NEVER : MPI_T_ERR_INVALID);
}

void weft_tool_cvars_free(weft_tool *tool)
{
    weft_list_link *link;
    while ((link = weft_list_take(&tool->cvars)))
        free(weft_container(link, struct MPI_ABI_T_cvar_handle, link));
}
