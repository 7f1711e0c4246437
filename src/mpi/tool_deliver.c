/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_deliver: calls the callbacks of events (MPI 5.0, 15.3.8.4 to 15.3.8.7), and what callbacks read. See tool_event.h.
 * Invariant: events are delivered in the order in which they were observed, one at a time; dropped ones are reported before the next.
 * An event whose registration has no callback that may run here waits, with all behind it, for a point where it may. A delivery makes no
 * more calls than were due at its begin.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/calls.h"
#include "mpi/tool.h"
#include "mpi/tool_event.h"

const MPI_T_cb_safety weft_tool_levels[WEFT_TOOL_LEVELS] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                                            MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};

/* Lives on the stack of the thread that delivers. */
struct MPI_ABI_T_event_instance {
    weft_event_record record;
};

static MPI_T_event_instance current; /* of the callback that runs; NULL: none. Guarded by weft_event_lock */

typedef struct call { /* one callback to make */
    MPI_T_event_registration registration;
    weft_tool_callback callback;
    MPI_T_event_dropped_cb_function *on_dropped; /* NULL: an event */
    MPI_Count dropped;
} call;

static MPI_T_event_registration registration_of(weft_event_sink *sink)
{
    return weft_container(sink, struct MPI_ABI_T_event_registration, sink);
}

/* The callback of the lowest level from `level` on; its call is NULL if there is none. */
static weft_tool_callback choose(MPI_T_event_registration registration, int level)
{
    while (level < WEFT_TOOL_LEVELS - 1 && !registration->callbacks[level].call)
        level++;
    return registration->callbacks[level];
}

/* The report of dropped events that comes next. 1: there is one; 0: there is none; -1: it must wait. */
static int next_dropped(call *to, int level)
{
    for (weft_event_sink *sink; (sink = weft_event_dropped());) {
        MPI_T_event_registration registration = registration_of(sink);
        *to = (call){registration, choose(registration, level), registration->on_dropped, (MPI_Count)sink->dropped};
        if (to->callback.call) {
            sink->dropped = 0;
            return 1;
        }
        if (sink->is_open)
            return -1;
        sink->dropped = 0; /* no callback at all: the handler is not called either */
    }
    return 0;
}

static bool next_event(call *to, MPI_T_event_instance instance, int level)
{
    for (const weft_event_record *record; (record = weft_event_first());) {
        MPI_T_event_registration registration = registration_of(record->sink);
        *to = (call){.registration = registration, .callback = choose(registration, level)};
        if (!to->callback.call && registration->sink.is_open)
            return false;
        instance->record = *record;
        weft_event_pop();
        if (to->callback.call)
            return true;
    }
    return false;
}

static bool next_call(call *to, MPI_T_event_instance instance, int level)
{
    int dropped;
    weft_event_lock();
    if (!weft_event_may_call()) {
        weft_event_unlock();
        return false;
    }
    dropped = next_dropped(to, level);
    bool is_there = dropped > 0 || (dropped == 0 && next_event(to, instance, level));
    if (is_there) {
        to->registration->is_running = true;
        current = dropped ? NULL : instance;
    }
    weft_event_block(!is_there && level > 0);
    weft_event_unlock();
    return is_there;
}

void weft_tool_event_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety)
{
    if (registration->on_free)
        registration->on_free(registration, safety, registration->free_data);
    free(registration);
}

static void ended(MPI_T_event_registration registration, MPI_T_cb_safety safety)
{
    bool is_freed;
    weft_event_lock();
    current = NULL;
    registration->is_running = false;
    is_freed = registration->is_freed;
    weft_event_unlock();
    if (is_freed)
        weft_tool_event_freed(registration, safety);
}

void weft_tool_event_deliver(bool in_wait)
{
    int level = in_wait ? 1 : 0;
    MPI_T_cb_safety safety = weft_tool_levels[level];
    struct MPI_ABI_T_event_instance instance;
    call next;
    bool begins;
    weft_event_lock();
    begins = weft_event_begin();
    weft_event_unlock();
    if (!begins)
        return;
    while (next_call(&next, &instance, level)) {
        if (next.on_dropped)
            next.on_dropped(next.dropped, next.registration, 0, safety, next.callback.user_data);
        else
            next.callback.call(&instance, next.registration, safety, next.callback.user_data);
        ended(next.registration, safety);
    }
    weft_event_lock();
    weft_event_end();
    weft_event_unlock();
}

/* -- what a callback reads -- */

/* Copies the instance's record and sets its number of elements. MPI_T_ERR_INVALID_HANDLE: it is not that of a callback that runs. */
static int read_record(MPI_T_event_instance instance, weft_event_record *record, int *elements)
{
    int rc = MPI_T_ERR_INVALID_HANDLE;
    *elements = 0;
    *record = (weft_event_record){0};
    WEFT_TOOL_ENTER(tool);
    (void)tool;
    weft_event_lock();
    if (instance && instance == current) {
        *record = instance->record;
        *elements = weft_tool_event_elements((int)record->sink->type); /* the sink lives while its callback runs */
        rc = MPI_SUCCESS;
    }
    weft_event_unlock();
    return weft_tool_leave(rc);
}

int weft_mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    weft_event_record record;
    int elements, rc = read_record(event_instance, &record, &elements);
    if (rc)
        return rc;
    if (element_index < 0 || element_index >= elements)
        return MPI_T_ERR_INVALID_INDEX;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    memcpy(buffer, &record.values[element_index], sizeof record.values[0]);
    return MPI_SUCCESS;
}

int weft_mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    weft_event_record record;
    int elements, rc = read_record(event_instance, &record, &elements);
    if (rc)
        return rc;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    memcpy(buffer, record.values, sizeof record.values[0] * (size_t)elements);
    return MPI_SUCCESS;
}

int weft_mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    weft_event_record record;
    int elements, rc = read_record(event_instance, &record, &elements);
    if (rc)
        return rc;
    if (!source_index)
        return MPI_T_ERR_INVALID;
    *source_index = 0;
    return MPI_SUCCESS;
}

int weft_mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    weft_event_record record;
    int elements, rc = read_record(event_instance, &record, &elements);
    if (rc)
        return rc;
    if (!event_timestamp)
        return MPI_T_ERR_INVALID;
    *event_timestamp = (MPI_Count)record.ns;
    return MPI_SUCCESS;
}
