/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool: the tool information interface (MPI 5.0, chapter 15), what its rooms share. It lives apart from MPI_Init and MPI_Finalize and
 * belongs to the process: a tool may come before the first world and go after the last. Errors are returned, no handler runs.
 * Every function stands between weft_tool_enter and weft_tool_leave: one lock for all, never held over a call of MPI.
 */
#ifndef WEFT_MPI_TOOL_H
#define WEFT_MPI_TOOL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/world.h"

typedef struct weft_tool { /* guarded by its lock */
    uint32_t opened;     /* calls of MPI_T_init_thread without their MPI_T_finalize */
    weft_list_link cvars;     /* handles that are alive */
    weft_list_link sessions;  /* ... and their handles */
    bool has_kept;       /* the world that is CLOSING stands in `kept` already */
    uint64_t kept[WEFT_COUNT_LAST]; /* what closed worlds counted */
} weft_tool;

/* The process's, locked; NULL, unlocked, while the interface is not initialized. */
weft_tool *weft_tool_enter(void);
int weft_tool_leave(int rc);

/* Begins and ends a function of the interface; `tool` is the state in between. */
#define WEFT_TOOL_ENTER(tool) \
    weft_tool *tool = weft_tool_enter(); \
    if (!tool) \
        return MPI_T_ERR_NOT_INITIALIZED

/* Strings go out by the rule of 15.3.3: at most *room - 1 bytes and a 0; *room becomes the length that it takes. */
void weft_tool_text(const char *text, char *to, int *room);
/* Out arguments of the get_info functions may be NULL. */
static inline void weft_tool_put(int *to, int value)
{
    if (to)
        *to = value;
}

/* Called by init when a world is open, and by finalize before it closes: its counters stay readable. */
void weft_tool_renew(void);
void weft_tool_keep(weft_world *world);
/* All counters of this process until now. Locked. */
void weft_tool_look(const weft_tool *tool, uint64_t values[WEFT_COUNT_LAST]);

/* Frees every handle: the interface is finalized. Locked. */
void weft_tool_cvars_free(weft_tool *tool);
void weft_tool_pvars_free(weft_tool *tool);

/* tool_enum: the enumeration of a knob that is one of some words, or MPI_T_ENUM_NULL. */
MPI_T_enum weft_tool_enum_of(int knob);

#endif
