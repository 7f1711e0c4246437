/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_event: event types, registrations and the source of the tool information interface (MPI 5.0, 15.3.8). Called by the generated
 * entries; tool_deliver.c calls the callbacks. Types are the rows of base/events.def. There is one source, the process, whose clock is
 * weft_clock_ns. No hints are known: infos are ignored, and those that are returned are empty.
 */
#include "mpi/tool_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/worker.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/tool.h"

#define SOURCES 1

static const weft_event_row *row_at(int index)
{
    return index >= 0 && index < WEFT_EVENT_LAST ? &weft_event_rows[index] : NULL;
}

static int return_int(int *to, int value)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!to)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *to = value;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_event_get_num(int *num_events) { return return_int(num_events, WEFT_EVENT_LAST); }
int weft_mpi_t_source_get_num(int *num_sources) { return return_int(num_sources, SOURCES); }

int weft_mpi_t_event_get_index(const char *name, int *event_index)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!name || !event_index)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    for (int i = 0; i < WEFT_EVENT_LAST; i++)
        if (strcmp(weft_event_rows[i].name, name) == 0) {
            *event_index = i;
            return weft_tool_leave(MPI_SUCCESS);
        }
    return weft_tool_leave(MPI_T_ERR_INVALID_NAME);
}

int weft_tool_event_elements(int index)
{
    int n = 1;
    for (const char *at = weft_event_rows[index].elements; *at; at++)
        n += *at == '|';
    return n;
}

/* Returns a new, empty info. */
static int no_hints(MPI_Info *info)
{
    if (!info)
        return MPI_SUCCESS;
    *info = weft_info_new();
    return *info ? MPI_SUCCESS : MPI_T_ERR_MEMORY;
}

int weft_mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity, MPI_Datatype array_of_datatypes[],
                              MPI_Aint array_of_displacements[], int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
                              int *desc_len, int *bind)
{
    WEFT_TOOL_ENTER(tool);
    const weft_event_row *row = row_at(event_index);
    (void)tool;
    if (!row)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    for (int i = 0; num_elements && i < *num_elements && i < weft_tool_event_elements(event_index); i++) {
        if (array_of_datatypes)
            array_of_datatypes[i] = MPI_INT64_T;
        if (array_of_displacements)
            array_of_displacements[i] = (MPI_Aint)sizeof(int64_t) * i;
    }
    weft_tool_text(row->name, name, name_len);
    weft_tool_text(row->sentence, desc, desc_len);
    weft_tool_put(verbosity, row->group == WEFT_EVENT_IS_wait ? MPI_T_VERBOSITY_TUNER_DETAIL : MPI_T_VERBOSITY_TUNER_BASIC);
    weft_tool_put(num_elements, weft_tool_event_elements(event_index));
    weft_tool_put(bind, row->object == WEFT_EVENT_OF_COMM ? MPI_T_BIND_MPI_COMM : MPI_T_BIND_NO_OBJECT);
    if (enumtype)
        *enumtype = weft_tool_enum_of_event(event_index);
    return weft_tool_leave(no_hints(info));
}

/* -- registrations -- */

/* Valid registrations. Requires the tool lock. */
static weft_list_link registrations = {&registrations, &registrations};

static bool is_registration(MPI_T_event_registration registration)
{
    for (const weft_list_link *link = registrations.next; link != &registrations; link = link->next)
        if (weft_container(link, struct MPI_ABI_T_event_registration, link) == registration)
            return true;
    return false;
}

/* Index of a safety level, in their order; -1: none. */
static int level_of(MPI_T_cb_safety safety)
{
    for (int i = 0; i < WEFT_TOOL_LEVELS; i++)
        if (weft_tool_levels[i] == safety)
            return i;
    return -1;
}

/* After a change: tells the open world's workers. Requires the tool lock. */
static void tell_workers(void)
{
    weft_world *world = weft_world_now;
    /* valid while world->mpi is set: it is freed only after weft_tool_add_closed held the lock */
    for (uint32_t i = 0; world && world->mpi && i < world->worker_count; i++)
        world->workers[i]->has_tool = weft_event_has_work();
}

/* The channel on which the communicator's events of this type are raised. NULL: no communicator. */
static const void *object_of(int index, const void *obj_handle)
{
    const weft_comm *comm = obj_handle ? weft_comm_of(*(const MPI_Comm *)obj_handle) : NULL;
    return !comm ? NULL : index == WEFT_EVENT_COLL_SELECTED ? comm->team.chan : comm->chan;
}

int weft_mpi_t_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info, MPI_T_event_registration *event_registration)
{
    WEFT_TOOL_ENTER(tool);
    const weft_event_row *row = row_at(event_index);
    const void *object = NULL;
    bool is_open;
    (void)tool, (void)info;
    if (!row)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    if (!event_registration || (row->object == WEFT_EVENT_OF_COMM && !obj_handle))
        return weft_tool_leave(MPI_T_ERR_INVALID);
    if (row->object == WEFT_EVENT_OF_COMM && !(object = object_of(event_index, obj_handle)))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    struct MPI_ABI_T_event_registration *own = calloc(1, sizeof *own);
    if (!own)
        return weft_tool_leave(MPI_T_ERR_MEMORY);
    own->sink = (weft_event_sink){.type = (enum weft_event)event_index, .object = object};
    weft_event_lock();
    is_open = weft_event_open();
    if (is_open)
        weft_event_add(&own->sink);
    weft_event_unlock();
    if (!is_open) {
        free(own);
        return weft_tool_leave(MPI_T_ERR_MEMORY);
    }
    weft_list_append(&registrations, &own->link);
    *event_registration = own;
    return weft_tool_leave(MPI_SUCCESS);
}

/* Takes it off all lists. True: a callback of it runs, whose thread frees it (tool_deliver). Requires the tool lock. */
static bool close_registration(MPI_T_event_registration registration, void *user_data, MPI_T_event_free_cb_function *on_free)
{
    bool is_running;
    weft_list_remove(&registration->link);
    weft_event_lock();
    weft_event_remove(&registration->sink);
    is_running = registration->is_running;
    registration->is_freed = true;
    registration->on_free = on_free;
    registration->free_data = user_data;
    weft_event_unlock();
    return is_running;
}

/* Events that were observed before are delivered first, unless a callback runs. */
int weft_mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                                 MPI_T_event_free_cb_function *free_cb_function)
{
    weft_event_point(0);
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!is_registration(event_registration))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    bool is_running = close_registration(event_registration, user_data, free_cb_function);
    tell_workers();
    weft_tool_leave(MPI_SUCCESS);
    if (!is_running)
        weft_tool_event_freed(event_registration, MPI_T_CB_REQUIRE_NONE);
    return MPI_SUCCESS;
}

void weft_tool_events_free(void)
{
    while (!weft_list_is_empty(&registrations)) {
        MPI_T_event_registration registration = weft_container(registrations.next, struct MPI_ABI_T_event_registration, link);
        if (!close_registration(registration, NULL, NULL))
            free(registration);
    }
    weft_event_lock();
    weft_event_close();
    weft_event_unlock();
    tell_workers();
}

int weft_mpi_t_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info,
                                       void *user_data, MPI_T_event_cb_function *event_cb_function)
{
    WEFT_TOOL_ENTER(tool);
    int level = level_of(cb_safety);
    (void)tool, (void)info;
    if (!is_registration(event_registration))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    if (level < 0)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    weft_event_lock();
    event_registration->callbacks[level] = (weft_tool_callback){event_cb_function, user_data};
    event_registration->sink.is_open = false;
    for (int i = 0; i < WEFT_TOOL_LEVELS; i++)
        event_registration->sink.is_open |= event_registration->callbacks[i].call != NULL;
    weft_event_deliver = weft_tool_event_deliver;
    weft_event_update();
    weft_event_block(false);
    weft_event_unlock();
    tell_workers();
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                         MPI_T_event_dropped_cb_function *dropped_cb_function)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!is_registration(event_registration))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    weft_event_lock();
    event_registration->on_dropped = dropped_cb_function;
    event_registration->sink.counts_dropped = dropped_cb_function != NULL;
    if (!dropped_cb_function)
        event_registration->sink.dropped = 0;
    weft_event_unlock();
    return weft_tool_leave(MPI_SUCCESS);
}

/* -- hints -- */

static int of_registration(MPI_T_event_registration registration, MPI_T_cb_safety safety, bool returns_info, MPI_Info *info)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (!is_registration(registration))
        return weft_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    if (level_of(safety) < 0 || (returns_info && !info))
        return weft_tool_leave(MPI_T_ERR_INVALID);
    return weft_tool_leave(no_hints(info));
}

int weft_mpi_t_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return of_registration(event_registration, MPI_T_CB_REQUIRE_NONE, true, info_used);
}

int weft_mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    (void)info;
    return of_registration(event_registration, MPI_T_CB_REQUIRE_NONE, false, NULL);
}

int weft_mpi_t_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
    return of_registration(event_registration, cb_safety, true, info_used);
}

int weft_mpi_t_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info)
{
    (void)info;
    return of_registration(event_registration, cb_safety, false, NULL);
}

/* -- the source -- */

int weft_mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len, MPI_T_source_order *ordering,
                               MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (source_index != 0)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    weft_tool_text("weft_process", name, name_len);
    weft_tool_text("This process. Ticks are nanoseconds of a clock that all processes of a host share.", desc, desc_len);
    if (ordering)
        *ordering = MPI_T_SOURCE_ORDERED;
    if (ticks_per_second)
        *ticks_per_second = 1000000000;
    if (max_ticks)
        *max_ticks = INT64_MAX;
    return weft_tool_leave(no_hints(info));
}

int weft_mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    if (source_index != 0)
        return weft_tool_leave(MPI_T_ERR_INVALID_INDEX);
    if (!timestamp)
        return weft_tool_leave(MPI_T_ERR_INVALID);
    *timestamp = (MPI_Count)weft_clock_ns();
    return weft_tool_leave(MPI_SUCCESS);
}
