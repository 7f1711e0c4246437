/* SPDX-License-Identifier: BSD-3-Clause
 *
 * links: the head's connections with its daemons, one for each node that is not this machine: from the agent that starts a daemon to
 * its last word. The job decides; this room carries.
 */
#ifndef WEFT_MPIRUN_LINKS_H
#define WEFT_MPIRUN_LINKS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/haul.h"

struct job;
typedef struct links links;

/* Listens, makes the job's secret and starts all agents. 0 or an exit code, said. */
int links_open(struct job *job, links **self);
/* Fills `set` (room for links_max) with what to wait for. How many. */
uint32_t links_max(const links *self);
uint32_t links_wishes(links *self, struct pollfd *set);
void links_turn(links *self, const struct pollfd *set, uint32_t count);
/* A process of ours has ended: whether it was an agent. */
bool links_reaped(links *self, pid_t pid, int status);
/* Deadlines that have passed. Returns the next one, or 0. */
uint64_t links_deadlines(links *self);
/* Have all daemons prepared? */
bool links_are_ready(const links *self);
/* To all, all without an answer: start; a signal; what needs no more words (WIRE_END, WIRE_KILL, WIRE_WAITS). */
void links_go(links *self);
void links_signal(links *self, int sig);
void links_tell(links *self, uint32_t kind);
/* No rank lives: come to the end. */
void links_drain(links *self, bool was_ended, bool has_failed);
/* Those that have not come to their end never will. */
void links_give_up(links *self);
/* Has every daemon said its last word, and every agent ended? */
bool links_are_over(const links *self);
/* Standard input for a rank elsewhere; 0 bytes: its end. */
void links_in(links *self, uint32_t node, const char *bytes, size_t count);
/* What our own node asks and tells (cards.h). */
void links_want(links *self, uint32_t rank);
void links_card(links *self, uint32_t rank, uint32_t state, const void *told, uint32_t bytes);
void links_fence(links *self, uint64_t number);
/* A note for the PMIx server of a node elsewhere; takes its body over. */
void links_note(links *self, uint32_t node, const note *what);
void links_close(links *self);

#endif
