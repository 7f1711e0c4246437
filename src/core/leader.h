/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leader: threads that wait in one worker (MPI_THREAD_MULTIPLE). The leader polls, arms and sleeps on the ifaces' wakeups. The others park,
 * each on its own futex, and are woken when their operation completes. docs/architecture.md: "Waiting".
 * The thread that began to wait last leads, since it is running. Requires worker->lock; parking drops it and takes it again.
 * Invariant: while threads are parked there is a leader, or one parked thread (the heir) checks for a leader in bounded time.
 */
#ifndef WEFT_CORE_LEADER_H
#define WEFT_CORE_LEADER_H

#include <stdbool.h>

#include "core/wait_type.h"

/* Start of each turn of a wait. True: this thread leads and must poll. False: the lock was dropped; check the condition again. */
bool weft_leader_progress(weft_wait *wait);
/* Leader, between polls: wakes parked threads whose weft_wait.is_over is true. Returns their number. */
int weft_leader_wake_parked(weft_wait *wait);
/* End of a wait that has led. Keeps the invariant for the remaining parked threads. */
void weft_leader_leave(weft_wait *wait);

/* Before a callout: unsets the leader, unless it sleeps, and wakes a parked thread to lead. A running leader leads again at its next
 * turn. */
void weft_leader_yield(struct weft_worker *worker);

#endif
