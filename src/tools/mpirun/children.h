/* SPDX-License-Identifier: BSD-3-Clause
 *
 * children: the daemons that this process has started itself, each from its agent to its last word. It carries: what frames mean, and
 * what the end of one means for the job, is its owner's.
 */
#ifndef WEFT_MPIRUN_LIMBS_H
#define WEFT_MPIRUN_LIMBS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/acceptor.h"
#include "tools/mpirun/agent.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/wire.h"

typedef struct child_daemon {
    uint32_t node;
    const char *host; /* its name, the owner's */
    agent agent;
    wire wire;        /* fd -1: not yet, or no more */
    bool is_met;      /* there was a wire */
    bool is_over;     /* nothing is awaited from it any more */
    uint64_t over_ns; /* when its agent is no longer waited for; 0: not yet */
    uint64_t told_ns; /* when it is told that its agent has ended well and it has not come; 0: need not be */
} child_daemon;

typedef struct children_callbacks {
    void (*met)(void *owner, child_daemon *one); /* it has come: tell it what it is for */
    void (*frame)(void *owner, child_daemon *one, const wire_frame *frame);
    void (*lost)(void *owner, child_daemon *one, const char *why);   /* it had come, and went without a last word */
    void (*failed)(void *owner, child_daemon *one, const char *why); /* it never came; its agent's words may say more */
    bool tells; /* the user of a daemon that has not come although its agent has ended well; it still may */
    void *owner;
} children_callbacks;

typedef struct childs {
    acceptor acceptor;
    child_daemon *items;
    uint32_t count;
    unsigned char secret[CTRL_SECRET_BYTES];
    guard *guard; /* the owner's */
    bool is_ssh;  /* the agent */
    children_callbacks up;
} childs;

/* Listens; room for so many. 0 or -1 with errno. */
int children_open(childs *self, const unsigned char *secret, uint32_t room, guard *guard, const children_callbacks *up);
child_daemon *children_add(childs *self, uint32_t node, const char *host);
/* Starts the agents of all: `words`, or ssh. 0 or an exit code, said. */
int children_start(childs *self, const char *words);
/* Fills `set` (room for children_max) with what to wait for. How many. */
uint32_t children_max(const childs *self);
uint32_t children_pollfds(const childs *self, struct pollfd *set);
/* Moves what can be moved; count 0: poll has found nothing. */
void children_progress(childs *self, const struct pollfd *set, uint32_t count);
/* A process of ours has ended: whether it was an agent. */
bool children_reaped(childs *self, pid_t pid, int status);
/* Deadlines that have passed. Returns the next one, or 0. */
uint64_t children_deadlines(childs *self);
/* It has said its last word: its agent may end by itself. `lost`, `failed` and `frame` come no more. */
void child_detach(child_daemon *one);
/* It is given up: its agent is killed, and a daemon there ends when it finds the connection closed. */
void child_kill(child_daemon *one);
/* It has not come and need not any more. */
void child_cancel(child_daemon *one);
/* Is nothing awaited from any, and has every agent ended? */
bool children_are_over(const childs *self);
void children_close(childs *self);

#endif
