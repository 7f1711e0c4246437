/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool_event: what tool_event.c (registrations) and tool_deliver.c (callbacks) share. docs/counters.md: "Events".
 * Callbacks run with no lock of the library held, one at a time, at two kinds of points: inside a wait (weft_wait_progress), where they may
 * call functions of MPI_T only, and after a call of MPI, where they may call anything.
 */
#ifndef WEFT_MPI_TOOL_EVENT_H
#define WEFT_MPI_TOOL_EVENT_H

#include <mpi.h>
#include <stdbool.h>

#include "base/event.h"

#define WEFT_TOOL_LEVELS 4
extern const MPI_T_cb_safety weft_tool_levels[WEFT_TOOL_LEVELS]; /* safety levels, the most permissive first */

typedef struct weft_tool_callback {
    MPI_T_event_cb_function *call; /* NULL: none */
    void *user_data;
} weft_tool_callback;

struct MPI_ABI_T_event_registration {
    weft_event_sink sink;
    weft_list_link link;     /* of the valid registrations; requires the tool lock */
    /* below: guarded by weft_event_lock */
    weft_tool_callback callbacks[WEFT_TOOL_LEVELS];
    MPI_T_event_dropped_cb_function *on_dropped; /* NULL: none */
    bool is_running;         /* a thread is in a callback of it */
    bool is_freed;           /* off all lists; the thread that is in its callback frees it */
    MPI_T_event_free_cb_function *on_free; /* valid if is_freed */
    void *free_data;
};

/* Number of a type's elements. */
int weft_tool_event_elements(int index);
/* Calls the free callback and frees. No lock may be held. */
void weft_tool_event_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety);
/* weft_event_deliver. Returns at once while another thread, or this one further up its stack, delivers. */
void weft_tool_event_deliver(bool in_wait);

#endif
