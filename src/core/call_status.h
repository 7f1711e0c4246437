/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call_status: current MPI call of each thread, for mpirun --timeout, which reads the records in the node's segment. A record counts calls
 * and reads no clock; the launcher derives the duration. Generated entry points call enter and leave.
 * Without MPI_THREAD_MULTIPLE there is one record, at a fixed address whose page is mapped from the segment: three instructions a call.
 * Else each thread owns a record.
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
extern bool weft_call_is_threaded; /* each thread has a record; constant between weft_call_open and _close */
extern __thread weft_call_record *weft_call_thread_record __attribute__((tls_model("initial-exec"))); /* NULL: none yet */
weft_call_record *weft_call_record_alloc(void);
#pragma GCC visibility pop

/* Low 16 bits: depth (a user callback may call MPI); above: count of calls. */
#define WEFT_CALL_ENTER (((uint64_t)1 << WEFT_CALL_DEPTH_BITS) + 1)

static inline void weft_call_enter_single(uint32_t call)
{
    weft_call_page.record.call = call;
    weft_call_page.record.count += WEFT_CALL_ENTER;
}
static inline void weft_call_leave_single(void) { weft_call_page.record.count--; }

static inline void weft_call_enter(uint32_t call)
{
    weft_call_record *record;
    if (__builtin_expect(!weft_call_is_threaded, 1)) {
        weft_call_enter_single(call);
        return;
    }
    record = weft_call_thread_record ? weft_call_thread_record : weft_call_record_alloc();
    record->call = call;
    record->count += WEFT_CALL_ENTER;
}
static inline void weft_call_leave(void)
{
    if (__builtin_expect(!weft_call_is_threaded, 1))
        weft_call_leave_single();
    else if (weft_call_thread_record)
        weft_call_thread_record->count--;
}

/* Calls of MPI that this thread is inside of, one in the callback of another, as far as they are recorded. */
static inline uint32_t weft_call_depth(void)
{
    uint64_t single = weft_call_page.record.count, own = weft_call_thread_record ? weft_call_thread_record->count : 0;
    uint64_t mask = ((uint64_t)1 << WEFT_CALL_DEPTH_BITS) - 1;
    return (uint32_t)((single & mask) + (own & mask));
}

/* Records that this thread waits for, holds, or releases a worker's lock. */
static inline void weft_call_lock(enum weft_call_lock state)
{
    if (weft_call_thread_record)
        weft_call_thread_record->lock = state;
}

/* Status record in which a wait of this thread is published. */
static inline weft_page_status *weft_call_wait(weft_rank_page *page)
{
    return weft_call_is_threaded && weft_call_thread_record ? &weft_call_thread_record->wait : &page->status;
}

/* Starts recording into the segment, with a record for each thread if `is_threaded`. If the segment has no memory, calls are recorded in
 * private memory that the launcher does not see. */
void weft_call_open(const weft_segment *segment, uint32_t local, bool is_threaded);
/* Moves the records back to private memory; threads may still use their records. */
void weft_call_close(void);

#endif
