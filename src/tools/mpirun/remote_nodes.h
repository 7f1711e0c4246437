/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_nodes: the head's connections with its daemons, one for each node that is not this machine: from the agent that starts a daemon to
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
typedef struct remote_nodes remote_nodes;

/* Listens, makes the job's secret and starts all agents. 0 or an exit code, said. */
int remote_nodes_open(struct job *job, remote_nodes **self);
/* Fills `set` (room for remote_nodes_max) with what to wait for. How many. */
uint32_t remote_nodes_max(const remote_nodes *self);
uint32_t remote_nodes_pollfds(remote_nodes *self, struct pollfd *set);
void remote_nodes_progress(remote_nodes *self, const struct pollfd *set, uint32_t count);
/* A process of ours has ended: whether it was an agent. */
bool remote_nodes_reaped(remote_nodes *self, pid_t pid, int status);
/* Deadlines that have passed. Returns the next one, or 0. */
uint64_t remote_nodes_deadlines(remote_nodes *self);
/* Have all daemons prepared? */
bool remote_nodes_are_ready(const remote_nodes *self);
/* To all, all without an answer: start; a signal; what needs no more words (CTRL_END, CTRL_KILL, CTRL_WAITS). */
void remote_nodes_go(remote_nodes *self);
void remote_nodes_signal(remote_nodes *self, int sig);
void remote_nodes_send(remote_nodes *self, uint32_t kind);
/* No rank lives: come to the end. */
void remote_nodes_drain(remote_nodes *self, bool was_ended, bool has_failed);
/* Those that have not come to their end never will. */
void remote_nodes_give_up(remote_nodes *self);
/* Has every daemon said its last word, and every agent ended? */
bool remote_nodes_are_over(const remote_nodes *self);
/* Standard input for a rank elsewhere; 0 bytes: its end. */
void remote_nodes_in(remote_nodes *self, uint32_t node, const char *bytes, size_t count);
/* What our own node asks and tells (modex_node.h). */
void remote_nodes_want(remote_nodes *self, uint32_t rank);
void remote_nodes_card(remote_nodes *self, uint32_t rank, uint32_t state, const void *told, uint32_t bytes);
void remote_nodes_fence(remote_nodes *self, uint64_t number);
/* A note for the PMIx server of a node elsewhere; takes its body over. */
void remote_nodes_note(remote_nodes *self, uint32_t node, const pmix_msg *what);
void remote_nodes_close(remote_nodes *self);

#endif
