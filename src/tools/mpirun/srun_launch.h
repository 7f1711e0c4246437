/* SPDX-License-Identifier: BSD-3-Clause
 *
 * srun_launch: starts all daemons of a job as one Slurm step by one srun.
 * srun copies its standard input to all daemons: the line of contact.h, with SRUN_NODE for the node, then lines "NODE NAME". A daemon finds
 * its number by Slurm's name of its node, which need not be a host name. One thread.
 */
#ifndef WEFT_MPIRUN_SRUN_LAUNCH_H
#define WEFT_MPIRUN_SRUN_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/agent.h"
#include "tools/mpirun/job_type.h"

#define SRUN_NODE UINT32_MAX

/* All-zero: unused. */
typedef struct srun_launch {
    job *job;
    void (*failed)(job *job, int code); /* see srun_launch_start */
    agent agent;      /* srun */
    bool is_used;
    uint64_t over_ns; /* time at which srun is killed; 0: not set */
} srun_launch;

/* Starts daemons on all nodes of the job but this machine. `failed` is called if daemons are missing and will not connect: the job must
 * end. 0, or an exit code after a message. */
int srun_launch_start(srun_launch *self, job *job, void (*failed)(struct job *, int), int listener, const unsigned char *secret);
/* Daemons are missing and will not connect: prints `why` and srun's output, and calls `failed`. */
void srun_launch_fail(srun_launch *self, const char *why);
/* Reads srun's output. While launching, an error of a task in it ends the job. */
void srun_launch_read(srun_launch *self);
/* Handles a reaped process. False: it was not srun. is_ready: all daemons have connected; has_lost: one ended without DONE. */
bool srun_launch_reaped(srun_launch *self, pid_t pid, int status, bool is_ready, bool has_lost);
/* All daemons are over: waits for srun, sends it SIGTERM if the job failed, and SIGKILL after SRUN_END_LIMIT_NS. Returns the next deadline
 * (weft_clock_ns), or 0. */
uint64_t srun_launch_finish(srun_launch *self);
void srun_launch_close(srun_launch *self);

/* In a daemon: returns the number in a line "NODE NAME" that names this node; -1: it names another or is malformed. */
int64_t srun_launch_node_of(const char *line);

#endif
