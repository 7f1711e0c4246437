/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: the head's state machine: launch, failure, signals, deadlines and the exit code of a job.
 * Ranks of this machine are run by node, those of other hosts by remote_nodes; this file forks no rank. Everything runs on mpirun's main
 * loop, on one thread.
 */
#ifndef WEFT_MPIRUN_JOB_H
#define WEFT_MPIRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/job_type.h"
#include "tools/mpirun/node.h"
#include "tools/mpirun/options.h"

/* Names the job, maps its ranks, opens this machine's node, starts the guardian and the daemons' agents. 0, or an exit code after a
 * message. */
int job_open(job *self, options *opts);
/* Starts all ranks, now or once the other hosts are ready. A failure ends the job. */
void job_start(job *self);
/* Handles aborts and messages of this machine's PMIx server. */
void job_serve(job *self);
/* The end of a rank, and a rank that could not exec ('x') or enter its working directory ('d'). Called by node and remote_nodes. */
void job_rank_ended(job *self, const rank_end *end);
void job_rank_refused(job *self, uint32_t rank, char what, int error);
/* A daemon received signal `sig` from outside of mpirun (a resource manager, a user): ends the job. */
void job_daemon_signaled(job *self, const char *host, int sig);
/* A rank aborted the job by `call` (MPI_Abort or PMIx_Abort). */
void job_aborted(job *self, uint32_t rank, int code, const char *call, const char *text);
/* Reaps all processes that have ended. Does not block. */
void job_reap(job *self);
/* Sends a signal to every rank's process group. */
void job_signal(job *self, int sig);
/* Ends the ranks: SIGTERM now, SIGKILL after the grace. */
void job_end(job *self, int code);
void job_kill(job *self);
/* Starts the time limit for daemons to finish; those that do not are given up. */
void job_limit_drain(job *self);
/* Handles expired deadlines. Returns the next one (weft_clock_ns), or 0. */
uint64_t job_deadlines(job *self);
/* True if no rank, no process of their groups and no pending output is left. */
bool job_is_over(job *self);
/* Frees everything and stops the guardian. Returns the exit code of mpirun. */
int job_close(job *self);

#endif
