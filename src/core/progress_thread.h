/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress_thread: a thread of the library that polls a worker while the program is outside MPI and operations under way need the CPU. It
 * is started by the first call that leaves such an operation under way, and rests on a futex while there is none.
 * docs/architecture.md: "The progress thread".
 *
 * Without MPI_THREAD_MULTIPLE calls take no lock. The program's thread then *lends* the worker at the end of a call that starts an
 * operation (is_threaded: from now on calls take the lock), and takes it back when it releases the lock and no operation is left. Only
 * the program's thread changes is_threaded, outside of every pair of lock and unlock and of every callback.
 */
#ifndef WEFT_CORE_PROGRESS_THREAD_H
#define WEFT_CORE_PROGRESS_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/worker_type.h"

struct weft_world;

/* Decides by the knob and the CPUs whether the thread may be started, and for which channels by default. A world opens, before its
 * channels do. Without memory it has no thread. */
void weft_progress_thread_open(struct weft_world *world);
/* Ends the thread, if it was started, and takes the worker back. The world closes; the caller holds no lock. */
void weft_progress_thread_close(weft_worker *worker);

/* Slow path of weft_progress_thread_offer. */
void weft_progress_thread_call(weft_worker *worker) __attribute__((noinline, cold));
/* Last action of a call that may leave an operation under way, without the lock: calls the thread if there is such an operation. */
static inline void weft_progress_thread_offer(weft_worker *worker)
{
    if (__builtin_expect(atomic_load_explicit(&worker->wants_thread, memory_order_relaxed), 0))
        weft_progress_thread_call(worker);
}

/* Whether the caller must leave this call of a program's function to the program's threads: it is the progress thread, and the program
 * has a single thread in MPI at a time. */
bool weft_progress_thread_is_barred(const weft_worker *worker);

#endif
