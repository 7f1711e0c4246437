/* SPDX-License-Identifier: BSD-3-Clause
 *
 * children: daemons started by this process, from agent start to the DONE frame. Used by the head (remote_nodes) and by daemons (relay).
 * It owns agents and connections. The owner interprets frames and decides what the end of a daemon means for the job. One thread; nothing
 * blocks.
 */
#ifndef WEFT_MPIRUN_CHILDREN_H
#define WEFT_MPIRUN_CHILDREN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/acceptor.h"
#include "tools/mpirun/agent.h"
#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/guard.h"

typedef struct child_daemon {
    uint32_t node;
    const char *host; /* host name; the owner's memory */
    agent agent;
    ctrl_conn conn;    /* fd -1: not connected yet, or closed */
    bool is_connected; /* the daemon has connected */
    bool is_over;      /* detached, killed or cancelled: no more callbacks */
    uint64_t over_ns;  /* time at which a remaining agent is killed; 0: not set */
    uint64_t warn_ns;  /* time of the warning that the agent exited with 0 and no daemon has connected; 0: none */
} child_daemon;

typedef struct children_callbacks {
    void (*connected)(void *owner, child_daemon *one); /* connected and authenticated: send it its job */
    void (*frame)(void *owner, child_daemon *one, const ctrl_frame *frame);
    void (*lost)(void *owner, child_daemon *one, const char *why);   /* the connection ended without a DONE frame */
    void (*failed)(void *owner, child_daemon *one, const char *why); /* no usable connection; the agent's output may hold the reason */
    bool warns; /* warn the user when an agent exited with 0 and its daemon has not connected (it still may) */
    void *owner;
} children_callbacks;

typedef struct children {
    acceptor acceptor;
    child_daemon *items;
    uint32_t count;
    unsigned char secret[CTRL_SECRET_BYTES];
    guard *guard; /* the owner's */
    bool is_ssh;  /* agents are ssh */
    children_callbacks up;
} children;

/* Opens the listener; children_add may be called `capacity` times. 0 or -1 with errno. */
int children_open(children *self, const unsigned char *secret, uint32_t capacity, guard *guard, const children_callbacks *up);
child_daemon *children_add(children *self, uint32_t node, const char *host);
/* Starts an agent for each child: `agent_command`, or ssh if NULL or empty. 0, or an exit code after an error message. */
int children_start(children *self, const char *agent_command);
/* Fills set, which has children_max entries. Returns the number of entries. */
uint32_t children_max(const children *self);
uint32_t children_pollfds(const children *self, struct pollfd *set);
/* Progresses all connections and agents by the result of poll; count 0: nothing is ready. Calls back. */
void children_progress(children *self, const struct pollfd *set, uint32_t count);
/* Handles a reaped process. False: it was no agent of a child. May call back `failed`. */
bool children_reaped(children *self, pid_t pid, int status);
/* Handles expired deadlines. Returns the next one (weft_clock_ns), or 0. */
uint64_t children_deadlines(children *self);
/* After its DONE frame: closes the connection, and the agent may exit by itself. No more callbacks for it. */
void child_detach(child_daemon *one);
/* Gives the daemon up: kills its agent and closes the connection, upon which the daemon ends. No more callbacks for it. */
void child_kill(child_daemon *one);
/* Stops the agent of a daemon that has not connected and is not needed; no effect on others. */
void child_cancel(child_daemon *one);
/* True if every child is over and every agent was reaped. */
bool children_are_over(const children *self);
void children_close(children *self);

#endif
