/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool: shared part of the tool information interface (MPI 5.0 chapter 15; tool*.c). Its state is process-wide and independent of
 * MPI_Init and MPI_Finalize: a tool may start before the first world and end after the last. Errors are returned without handlers.
 * Each function runs between weft_tool_enter and weft_tool_leave, under one lock that is never held across an MPI call.
 */
#ifndef WEFT_MPI_TOOL_H
#define WEFT_MPI_TOOL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/event.h"
#include "base/list.h"
#include "core/world.h"

typedef struct weft_tool { /* guarded by its lock */
    uint32_t opened;         /* calls of MPI_T_init_thread not yet matched by MPI_T_finalize */
    weft_list_link cvars;    /* allocated control variable handles */
    weft_list_link sessions; /* pvar sessions with their handles */
    bool has_closing;        /* closed_counters include the world that is CLOSING */
    uint64_t closed_counters[WEFT_COUNT_LAST]; /* counters of closed worlds */
} weft_tool;

/* Locks and returns the state. NULL, unlocked: the interface is not initialized. */
weft_tool *weft_tool_enter(void);
/* Unlocks and returns rc. */
int weft_tool_leave(int rc);

/* Begins a function of the interface; declares `tool`. Pairs with weft_tool_leave. */
#define WEFT_TOOL_ENTER(tool) \
    weft_tool *tool = weft_tool_enter(); \
    if (!tool) \
        return MPI_T_ERR_NOT_INITIALIZED

/* Returns a string by MPI 5.0 15.3.3: at most *capacity - 1 bytes and a 0; *capacity becomes the required length. */
void weft_tool_text(const char *text, char *to, int *capacity);
/* Out arguments of the get_info functions may be NULL. */
static inline void weft_tool_put(int *to, int value)
{
    if (to)
        *to = value;
}

/* Called by init after a world opens, and by finalize before it closes, so that its counters stay readable. */
void weft_tool_on_open(weft_world *world);
void weft_tool_add_closed(weft_world *world);
/* Reads all counters of this process. Requires the tool lock. */
void weft_tool_read_counters(const weft_tool *tool, uint64_t values[WEFT_COUNT_LAST]);

/* MPI_T_finalize: frees every handle. Requires the tool lock. */
void weft_tool_cvars_free(weft_tool *tool);
void weft_tool_pvars_free(weft_tool *tool);
void weft_tool_events_free(void);

/* tool_enum: enumeration of a knob with a fixed set of values; else MPI_T_ENUM_NULL. */
MPI_T_enum weft_tool_enum_of(int knob);
/* The names of an event type's elements. */
static inline MPI_T_enum weft_tool_enum_of_event(int type) { return (MPI_T_enum)(uintptr_t)&weft_event_rows[type]; }

#endif
