/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool: init and finalize of the tool information interface, its lock and strings, and the counters of closed worlds. See tool.h.
 * Called by the generated entries and by init.c.
 */
#include "mpi/tool.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "core/counters.h"
#include "core/worker.h"
#include "mpi/calls.h"
#include "mpi/stage.h"

/* Process-wide. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weft_tool state;

weft_tool *weft_tool_enter(void)
{
    pthread_mutex_lock(&lock);
    if (state.opened)
        return &state;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int weft_tool_leave(int rc)
{
    pthread_mutex_unlock(&lock);
    return rc;
}

void weft_tool_text(const char *text, char *to, int *capacity)
{
    size_t length = strlen(text) + 1;
    if (!capacity)
        return;
    if (to && *capacity > 0)
        snprintf(to, (size_t)*capacity, "%s", text);
    *capacity = (int)length;
}

/* The lock supports every thread level, independent of MPI_Init. */
int weft_mpi_t_init_thread(int required, int *provided)
{
    if (!provided || (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
                      required != MPI_THREAD_MULTIPLE))
        return MPI_T_ERR_INVALID;
    pthread_mutex_lock(&lock);
    if (state.opened == 0) {
        weft_list_init(&state.cvars);
        weft_list_init(&state.sessions);
        if (weft_init_stage() == WEFT_STAGE_BEFORE)
            weft_knobs_load(false); /* shows the values that MPI_Init will read */
    }
    state.opened++;
    *provided = required;
    return weft_tool_leave(MPI_SUCCESS);
}

int weft_mpi_t_finalize(void)
{
    WEFT_TOOL_ENTER(tool);
    if (tool->opened == 1) {
        weft_tool_cvars_free(tool);
        weft_tool_pvars_free(tool);
        weft_tool_events_free();
    }
    tool->opened--;
    return weft_tool_leave(MPI_SUCCESS);
}

static void add(uint64_t to[WEFT_COUNT_LAST], const uint64_t values[WEFT_COUNT_LAST], bool is_over)
{
    for (int i = 0; i < WEFT_COUNT_LAST; i++)
        switch (weft_count_rows[i].class) {
        case WEFT_COUNT_IS_COUNTER:
        case WEFT_COUNT_IS_TIMER: to[i] += values[i]; break;
        case WEFT_COUNT_IS_WRAPPED: to[i] = (uint32_t)(to[i] + values[i]); break;
        case WEFT_COUNT_IS_HIGHWATERMARK: to[i] = to[i] > values[i] ? to[i] : values[i]; break;
        case WEFT_COUNT_IS_LEVEL: to[i] = is_over ? 0 : values[i]; break;
        }
}

void weft_tool_on_open(weft_world *world)
{
    pthread_mutex_lock(&lock);
    state.has_closing = false;
    for (uint32_t i = 0; i < world->worker_count; i++)
        world->workers[i]->has_tool = weft_event_has_work();
    pthread_mutex_unlock(&lock);
}

void weft_tool_add_closed(weft_world *world)
{
    static uint64_t before[WEFT_COUNT_LAST]; /* of the worlds before `latest` */
    static uint64_t latest;                  /* serial of the world that was added last */
    uint64_t values[WEFT_COUNT_LAST];
    pthread_mutex_lock(&lock);
    if (latest == world->workers[0]->serial) /* it rested, and was used again */
        memcpy(state.closed_counters, before, sizeof before);
    else
        memcpy(before, state.closed_counters, sizeof before);
    latest = world->workers[0]->serial;
    weft_counters_read(world, values);
    add(state.closed_counters, values, true);
    state.has_closing = true;
    pthread_mutex_unlock(&lock);
}

void weft_tool_read_counters(const weft_tool *tool, uint64_t values[WEFT_COUNT_LAST])
{
    enum weft_stage stage = weft_init_stage();
    memcpy(values, tool->closed_counters, sizeof tool->closed_counters);
    /* the world is valid while OPEN or CLOSING: it is freed only after weft_tool_add_closed held the lock */
    if (!tool->has_closing && (stage == WEFT_STAGE_OPEN || stage == WEFT_STAGE_CLOSING)) {
        uint64_t now[WEFT_COUNT_LAST];
        weft_counters_read(weft_world_now, now);
        add(values, now, false);
    }
}
