/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limbs: the daemons that this process has started itself, each from its agent to its last word. It carries: what frames mean, and
 * what the end of one means for the job, is its owner's.
 */
#ifndef WEFT_MPIRUN_LIMBS_H
#define WEFT_MPIRUN_LIMBS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/agent.h"
#include "tools/mpirun/door.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/wire.h"

typedef struct limb {
    uint32_t node;
    const char *host; /* its name, the owner's */
    agent agent;
    wire wire;        /* fd -1: not yet, or no more */
    bool is_met;      /* there was a wire */
    bool is_over;     /* nothing is awaited from it any more */
    uint64_t over_ns; /* when its agent is no longer waited for; 0: not yet */
    uint64_t told_ns; /* when it is told that its agent has ended well and it has not come; 0: need not be */
} limb;

typedef struct limbs_up {
    void (*met)(void *owner, limb *one); /* it has come: tell it what it is for */
    void (*frame)(void *owner, limb *one, const wire_frame *frame);
    void (*lost)(void *owner, limb *one, const char *why);   /* it had come, and went without a last word */
    void (*failed)(void *owner, limb *one, const char *why); /* it never came; its agent's words may say more */
    bool tells; /* the user of a daemon that has not come although its agent has ended well; it still may */
    void *owner;
} limbs_up;

typedef struct limbs {
    door door;
    limb *items;
    uint32_t count;
    unsigned char secret[WIRE_SECRET_BYTES];
    guard *guard; /* the owner's */
    bool is_ssh;  /* the agent */
    limbs_up up;
} limbs;

/* Listens; room for so many. 0 or -1 with errno. */
int limbs_open(limbs *self, const unsigned char *secret, uint32_t room, guard *guard, const limbs_up *up);
limb *limbs_add(limbs *self, uint32_t node, const char *host);
/* Starts the agents of all: `words`, or ssh. 0 or an exit code, said. */
int limbs_start(limbs *self, const char *words);
/* Fills `set` (room for limbs_max) with what to wait for. How many. */
uint32_t limbs_max(const limbs *self);
uint32_t limbs_wishes(const limbs *self, struct pollfd *set);
/* Moves what can be moved; count 0: poll has found nothing. */
void limbs_turn(limbs *self, const struct pollfd *set, uint32_t count);
/* A process of ours has ended: whether it was an agent. */
bool limbs_reaped(limbs *self, pid_t pid, int status);
/* Deadlines that have passed. Returns the next one, or 0. */
uint64_t limbs_deadlines(limbs *self);
/* It has said its last word: its agent may end by itself. `lost`, `failed` and `frame` come no more. */
void limb_part(limb *one);
/* It is given up: its agent is killed, and a daemon there ends when it finds the connection closed. */
void limb_drop(limb *one);
/* It has not come and need not any more. */
void limb_spare(limb *one);
/* Is nothing awaited from any, and has every agent ended? */
bool limbs_are_over(const limbs *self);
void limbs_close(limbs *self);

#endif
