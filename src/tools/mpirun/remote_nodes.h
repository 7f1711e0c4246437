/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_nodes: the head's view of the other hosts of a job: one daemon per node, from agent start to the DONE frame.
 * Connects job, modex_head and pmix_head to the daemons. job decides; this file transports. One thread, the main loop's.
 */
#ifndef WEFT_MPIRUN_REMOTE_NODES_H
#define WEFT_MPIRUN_REMOTE_NODES_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/job_type.h"
#include "tools/mpirun/node.h"
#include "tools/mpirun/pmix_channel.h"

typedef struct remote_nodes remote_nodes;

/* Callbacks to the owner, the job: how ranks and daemons of other hosts end. */
typedef struct remote_nodes_callbacks {
    void (*ended)(job *job, const rank_end *end);
    /* A rank could not exec ('x') or enter its working directory ('d'). */
    void (*refused)(job *job, uint32_t rank, char what, int error);
    void (*aborted)(job *job, uint32_t rank, int code, const char *call, const char *text);
    void (*daemon_signaled)(job *job, const char *host, int sig);
    /* A daemon is lost or has not started, after a message: the job must end with this exit code. */
    void (*failed)(job *job, int code);
} remote_nodes_callbacks;

/* Creates the secret, opens the listener and starts all agents. 0, or an exit code after a message. */
int remote_nodes_open(job *job, const remote_nodes_callbacks *callbacks, remote_nodes **self);
/* Fills set, which has remote_nodes_max entries. Returns the number of entries. */
uint32_t remote_nodes_max(const remote_nodes *self);
uint32_t remote_nodes_pollfds(remote_nodes *self, struct pollfd *set);
void remote_nodes_progress(remote_nodes *self, const struct pollfd *set, uint32_t count);
/* Handles a reaped process. False: it was no agent and not srun. */
bool remote_nodes_reaped(remote_nodes *self, pid_t pid, int status);
/* Handles expired deadlines. Returns the next one (weft_clock_ns), or 0. */
uint64_t remote_nodes_deadlines(remote_nodes *self);
/* True if every daemon has sent READY. */
bool remote_nodes_are_ready(const remote_nodes *self);
/* Sends to all daemons, without a reply: GO; a rank that has died, where the job goes on; a signal; a frame without body (CTRL_END,
 * CTRL_KILL, CTRL_WAIT_REPORT). */
void remote_nodes_go(remote_nodes *self);
void remote_nodes_death(remote_nodes *self, uint32_t rank);
void remote_nodes_signal(remote_nodes *self, int sig);
void remote_nodes_send(remote_nodes *self, uint32_t kind);
/* No rank lives: the daemons are to finish; those that have not connected are cancelled. */
void remote_nodes_drain(remote_nodes *self, bool was_ended, bool has_failed);
/* Gives up all daemons that have not finished. */
void remote_nodes_give_up(remote_nodes *self);
/* True if every daemon has sent DONE or was given up, and every agent was reaped. */
bool remote_nodes_are_over(const remote_nodes *self);
/* Sends standard input to a node; 0 bytes: end of file. */
void remote_nodes_in(remote_nodes *self, uint32_t node, const char *bytes, size_t count);
/* Requests, data and fences of this machine's own node (modex_node.h). */
void remote_nodes_modex_request(remote_nodes *self, uint32_t rank);
void remote_nodes_modex_data(remote_nodes *self, uint32_t rank, uint32_t state, const void *data, uint32_t bytes);
void remote_nodes_fence(remote_nodes *self, uint64_t number);
/* Sends a message to the PMIx server of another node; takes over its body. */
void remote_nodes_pmix_msg(remote_nodes *self, uint32_t node, const pmix_msg *what);
void remote_nodes_close(remote_nodes *self);

#endif
