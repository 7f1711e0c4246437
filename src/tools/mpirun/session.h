/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: starts the ranks of an oversubscribed node in one session. Where the kernel shares CPUs out by session (autogroup), the
 * ranks get a share beside the terminal's session, and sched_yield passes a CPU from one rank to another: between
 * sessions it does not. A session is inherited only, so a process that leads it forks the ranks, with mpirun as their parent.
 * Called by node, by one thread, while ranks are started. Invariant: no process of it is left after session_close.
 */
#ifndef WEFT_MPIRUN_SESSION_H
#define WEFT_MPIRUN_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct session {
    pid_t leader;      /* 0: not open. It shares our memory and descriptors */
    pid_t parent;      /* mpirun */
    int leader_fd;     /* pidfd */
    int orders[2], answers[2]; /* pipes: a byte for each fork; the fork's pid */
    void *stack;
    void (*child)(void *arg);  /* of the latest order */
    void *arg;
} session;

/* Does the kernel share CPUs out by session? */
bool session_is_shared_out(void);
/* 0, or -1: not possible here, errno says why. Signals are blocked meanwhile. */
int session_open(session *self);
/* Forks a child of the caller in the session: runs child(arg), which does not return and calls async-signal-safe functions only. The pid, or -1
 * and errno. The child has the signal mask that session_open was called with: all signals blocked. */
pid_t session_fork(session *self, void (*child)(void *arg), void *arg);
void session_close(session *self);

#endif
