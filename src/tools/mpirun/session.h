/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: starts the ranks of an oversubscribed node in one session. Where the kernel distributes CPU time by session (autogroup),
 * sched_yield passes a CPU only between processes of one session, and the ranks get a share beside the terminal's session.
 * A session can only be inherited, so a leader process forks the ranks, as children of mpirun. Called by node, on one thread, while ranks
 * are started. Invariant: session_close leaves no process of it but the ranks.
 */
#ifndef WEFT_MPIRUN_SESSION_H
#define WEFT_MPIRUN_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct session {
    pid_t leader;      /* 0: not open. It shares mpirun's memory and descriptors */
    pid_t parent;      /* mpirun */
    int leader_fd;     /* pidfd */
    int orders[2], answers[2]; /* pipes: one byte requests a fork; the reply is its pid or -errno */
    void *stack;
    void (*child)(void *arg);  /* of the latest request, with arg */
    void *arg;
} session;

/* True if the kernel distributes CPU time by session. */
bool session_is_scheduled(void);
/* Starts the leader. 0, or -1 with errno: not possible here. All signals must be blocked: the leader and its children inherit the mask. */
int session_open(session *self);
/* Forks a child of mpirun in the session, which runs child(arg): it must not return and may call async-signal-safe functions only.
 * Returns the pid, or -1 with errno. All signals are blocked in the child. */
pid_t session_fork(session *self, void (*child)(void *arg), void *arg);
void session_close(session *self);

#endif
