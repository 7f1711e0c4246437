/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_category: categories of the tool information interface (MPI 5.0, 15.3.9). Called by the generated entries.
 * All are children of the first; every variable and event type is in exactly one of the others. The set is fixed, so the update number
 * is constant.
 */
#include <string.h>

#include "base/event.h"
#include "base/knob.h"
#include "core/counters.h"
#include "mpi/calls.h"
#include "mpi/tool.h"

enum what { ALL, KNOBS, COUNTERS };

typedef struct category {
    const char *name, *sentence;
    enum what what;
    enum weft_count_group group; /* of COUNTERS */
} category;

static const category categories[] = {
    {"weft", "All variables of Weft.", ALL, 0},
    {"weft_knobs", "Settings: the WEFT_ environment variables.", KNOBS, 0},
    {"weft_messages", "Frames and messages sent and received by this process.", COUNTERS, WEFT_COUNT_OF_MESSAGE},
    {"weft_protocols", "Messages by protocol: inline, eager, and each rendezvous protocol.", COUNTERS, WEFT_COUNT_OF_PROTOCOL},
    {"weft_bytes", "Payload bytes by mover: this process's CPU, the kernel, or a device.", COUNTERS, WEFT_COUNT_OF_BYTES},
    {"weft_registration", "The cache of memory that is registered with devices.", COUNTERS, WEFT_COUNT_OF_REG},
    {"weft_waiting", "How calls that wait spend their time.", COUNTERS, WEFT_COUNT_OF_WAIT},
};

static bool holds_cvars(const category *of) { return of->what == KNOBS; }
static bool holds_pvar(const category *of, int row) { return of->what == COUNTERS && weft_count_rows[row].group == of->group; }

/* Event types are in the categories of the counters that go with them. */
static bool holds_event(const category *of, int type)
{
    static const enum weft_count_group groups[] = {[WEFT_EVENT_IS_message] = WEFT_COUNT_OF_MESSAGE,
                                                   [WEFT_EVENT_IS_protocol] = WEFT_COUNT_OF_PROTOCOL,
                                                   [WEFT_EVENT_IS_reg] = WEFT_COUNT_OF_REG,
                                                   [WEFT_EVENT_IS_wait] = WEFT_COUNT_OF_WAIT};
    return of->what == COUNTERS && groups[weft_event_rows[type].group] == of->group;
}

static int count_pvars(const category *of)
{
    int n = 0;
    for (int i = 0; i < WEFT_COUNT_LAST; i++)
        n += holds_pvar(of, i);
    return n;
}

static const category *at(int index) { return index >= 0 && index < (int)weft_count(categories) ? &categories[index] : NULL; }

int weft_mpi_t_category_get_num(int *num_cat)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!num_cat)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *num_cat = (int)weft_count(categories);
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars, int *num_pvars,
                                 int *num_categories)
{
    WEFT_TOOL_ENTER(tool);
    const category *of = at(cat_index);
    (void)tool;
    if (!of)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    weft_tool_text(of->name, name, name_len);
    weft_tool_text(of->sentence, desc, desc_len);
    weft_tool_put(num_cvars, holds_cvars(of) ? weft_knob_row_count : 0);
    weft_tool_put(num_pvars, count_pvars(of));
    weft_tool_put(num_categories, of->what == ALL ? (int)weft_count(categories) - 1 : 0);
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_category_get_index(const char *name, int *cat_index)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!name || !cat_index)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    for (size_t i = 0; i < weft_count(categories); i++)
        if (strcmp(categories[i].name, name) == 0) {
            *cat_index = (int)i;
            return weft_tool_leave(MPI_SUCCESS);
        }
    return weft_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* May indices of this category be written to `indices`? */
static int check(int cat_index, int len, const int indices[])
{
    if (!at(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    return len < 0 || (len > 0 && !indices) ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

int weft_mpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(cat_index, len, indices);
    (void)tool;
    for (int i = 0; rc == MPI_SUCCESS && holds_cvars(at(cat_index)) && i < weft_knob_row_count && i < len; i++)
        indices[i] = i;
    return weft_tool_leave(rc);
}

int weft_mpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(cat_index, len, indices), n = 0;
    (void)tool;
    for (int i = 0; rc == MPI_SUCCESS && i < WEFT_COUNT_LAST && n < len; i++)
        if (holds_pvar(at(cat_index), i))
            indices[n++] = i;
    return weft_tool_leave(rc);
}

int weft_mpi_t_category_get_categories(int cat_index, int len, int indices[])
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(cat_index, len, indices);
    (void)tool;
    for (int i = 1; rc == MPI_SUCCESS && at(cat_index)->what == ALL && i < (int)weft_count(categories) && i <= len; i++)
        indices[i - 1] = i;
    return weft_tool_leave(rc);
}

int weft_mpi_t_category_get_events(int cat_index, int len, int indices[])
{
    WEFT_TOOL_ENTER(tool);
    int rc = check(cat_index, len, indices), n = 0;
    (void)tool;
    for (int i = 0; rc == MPI_SUCCESS && i < WEFT_EVENT_LAST && n < len; i++)
        if (holds_event(at(cat_index), i))
            indices[n++] = i;
    return weft_tool_leave(rc);
}

int weft_mpi_t_category_get_num_events(int cat_index, int *num_events)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!at(cat_index) || !num_events)
        return weft_tool_leave(at(cat_index) ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_INDEX);
    *num_events = 0;
    for (int i = 0; i < WEFT_EVENT_LAST; i++)
        *num_events += holds_event(at(cat_index), i);
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_category_changed(int *update_number)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!update_number)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *update_number = 0;
    return weft_tool_leave(MPI_SUCCESS);
}
