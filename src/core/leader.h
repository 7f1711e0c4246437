/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leader: threads that wait in one worker (MPI_THREAD_MULTIPLE). One of them, the leader, polls, arms and sleeps on the ifaces' wakeups; the
 * others park, each on a word of its own, and are woken when what they wait for completes. docs/architecture.md: "Waiting".
 * The thread that began to wait last leads: it is the one that runs. All under the worker's lock, which park drops.
 * Invariant: while a thread is parked there is a leader, or one parked thread (the heir) that looks for one in bounded time.
 */
#ifndef WEFT_CORE_LEADER_H
#define WEFT_CORE_LEADER_H

#include <stdbool.h>

#include "core/wait.h"

/* At each turn of a wait, first. True: this thread leads and polls now. False: the lock was away; look at the condition again. */
bool weft_leader_progress(weft_wait *wait);
/* Leader, between polls: wakes parked threads whose conditions other processes end (weft_wait.is_over). How many. */
int weft_leader_wake_parked(weft_wait *wait);
/* End of a wait that took turns: what is left has a leader, or an heir. */
void weft_leader_leave(weft_wait *wait);

/* The thread that leads, if it is this one, does not poll for a while: a parked one leads. Another one takes the lead back at its next turn. */
void weft_leader_yield(struct weft_worker *worker);

#endif
