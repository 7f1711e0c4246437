/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_enum: enumerations of the tool information interface (MPI 5.0, 15.3.5). Called by the generated entries.
 * An MPI_T_enum is the address of a row of the table of knobs
 * (values of a variable), or of events (names of the elements).
 */
#include <string.h>

#include "base/event.h"
#include "base/knob.h"
#include "mpi/calls.h"
#include "mpi/tool.h"

static const char *words_of(const weft_knob_row *row)
{
    return row->kind == WEFT_KNOB_BOOL ? "no|yes" : row->kind == WEFT_KNOB_CHOICE ? row->words : NULL;
}

MPI_T_enum weft_tool_enum_of(int knob)
{
    const weft_knob_row *row = &weft_knob_rows[knob];
    return words_of(row) ? (MPI_T_enum)(uintptr_t)row : MPI_T_ENUM_NULL;
}

typedef struct enumeration {
    const char *name, *words;
} enumeration;

/* False: invalid. */
static bool find(MPI_T_enum enumtype, enumeration *found)
{
    for (int i = 0; i < weft_knob_row_count; i++)
        if (enumtype && weft_tool_enum_of(i) == enumtype) {
            const weft_knob_row *row = &weft_knob_rows[i];
            *found = (enumeration){row->kind == WEFT_KNOB_BOOL ? "boolean" : row->name, words_of(row)};
            return true;
        }
    for (int i = 0; i < WEFT_EVENT_LAST; i++)
        if (enumtype == weft_tool_enum_of_event(i)) {
            *found = (enumeration){weft_event_rows[i].name, weft_event_rows[i].elements};
            return true;
        }
    return false;
}

static int count(const char *words)
{
    int n = 1;
    for (; *words; words++)
        n += *words == '|';
    return n;
}

int weft_mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    WEFT_TOOL_ENTER(tool);
    enumeration found;
    (void)tool;
    if (!find(enumtype, &found))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    weft_tool_put(num, count(found.words));
    weft_tool_text(found.name, name, name_len);
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    WEFT_TOOL_ENTER(tool);
    enumeration found;
    char word[64];
    (void)tool;
    if (!find(enumtype, &found))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    const char *at = found.words;
    if (indx < 0 || indx >= count(at))
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    for (int skip = indx; skip > 0; skip--)
        at += strcspn(at, "|") + 1;
    size_t length = strcspn(at, "|");
    length = length < sizeof word ? length : sizeof word - 1;
    memcpy(word, at, length);
    word[length] = 0;
    weft_tool_put(value, indx);
    weft_tool_text(word, name, name_len);
    return weft_tool_leave(MPI_SUCCESS);
}
