/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call_status: in which MPI call each thread is, for the launcher (mpirun --timeout), which reads it in the node's segment without this
 * process's help and finds out itself since when: a record counts calls, no clock is read. Entry points (generated) enter and leave.
 * Without MPI_THREAD_MULTIPLE one record serves, at a fixed address whose page is the segment's: three instructions a call. Else each thread has its own.
 */
#ifndef WEFT_CORE_CALL_STATUS_H
#define WEFT_CORE_CALL_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

#pragma GCC visibility push(hidden)
extern union weft_call_page {
    weft_call_record record;
    char bytes[WEFT_PAGE]; /* mapped as one page */
} weft_call_page;
extern bool weft_call_is_threaded; /* threads have records of their own; constant between weft_call_open and _close */
extern __thread weft_call_record *weft_call_mine __attribute__((tls_model("initial-exec"))); /* NULL: this thread has none (yet) */
weft_call_record *weft_call_record_alloc(void);
#pragma GCC visibility pop

/* Depth in the low 16 bits (a callback of the program may call again), calls above. */
#define WEFT_CALL_ENTER (((uint64_t)1 << WEFT_CALL_DEPTH_BITS) + 1)

static inline void weft_call_enter_single(uint32_t call)
{
    weft_call_page.record.call = call;
    weft_call_page.record.count += WEFT_CALL_ENTER;
}
static inline void weft_call_leave_single(void) { weft_call_page.record.count--; }

static inline void weft_call_enter(uint32_t call)
{
    weft_call_record *mine;
    if (__builtin_expect(!weft_call_is_threaded, 1)) {
        weft_call_enter_single(call);
        return;
    }
    mine = weft_call_mine ? weft_call_mine : weft_call_record_alloc();
    mine->call = call;
    mine->count += WEFT_CALL_ENTER;
}
static inline void weft_call_leave(void)
{
    if (__builtin_expect(!weft_call_is_threaded, 1))
        weft_call_leave_single();
    else if (weft_call_mine)
        weft_call_mine->count--;
}

/* A thread that waits for, holds, or gives back a worker's lock. */
static inline void weft_call_lock(enum weft_call_lock state)
{
    if (weft_call_mine)
        weft_call_mine->lock = state;
}

/* Where a wait of this thread is shown. */
static inline weft_page_status *weft_call_wait(weft_rank_page *page)
{
    return weft_call_is_threaded && weft_call_mine ? &weft_call_mine->wait : &page->status;
}

/* Begins to show this process's calls in its segment, with a record for each thread if `is_threaded`. Without memory there calls are recorded where
 * no launcher looks. */
void weft_call_open(const weft_segment *segment, uint32_t local, bool is_threaded);
/* Takes the records out of the segment again; threads may still use theirs. */
void weft_call_close(void);

#endif
