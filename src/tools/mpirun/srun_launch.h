/* SPDX-License-Identifier: BSD-3-Clause
 *
 * srun_launch: all daemons of a job as one step of Slurm's, which one srun starts. Its input goes to all of them: a line as every daemon gets it,
 * with CREW_NODE for the node, then lines "NODE NAME"; a daemon finds its own by the name that Slurm calls its node by, which may be
 * no host's name.
 */
#ifndef WEFT_MPIRUN_CREW_H
#define WEFT_MPIRUN_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/agent.h"

struct job;

#define CREW_NODE UINT32_MAX

/* All-zero: none. */
typedef struct srun_launch {
    struct job *job;
    agent agent;      /* srun */
    bool is_used;
    uint64_t over_ns; /* when srun is no longer waited for; 0: not yet */
} srun_launch;

/* Starts them on all nodes of the job but this machine. 0, or an exit code, said. */
int srun_launch_start(srun_launch *self, struct job *job, int listener, const unsigned char *secret);
/* Not all have come, and will not: ends the job that is being launched, with `why` and srun's words. */
void srun_launch_fail(srun_launch *self, const char *why);
/* Reads srun's words, which may tell that a daemon could not be started, or has ended. */
void srun_launch_read(srun_launch *self);
/* A process has ended: false: it was not srun. is_ready: all daemons have come; has_lost: one went without its last word. */
bool srun_launch_reaped(srun_launch *self, pid_t pid, int status, bool is_ready, bool has_lost);
/* No daemon is waited for any more: srun is asked to end its step when the job failed, and then made to. When to look again, or 0. */
uint64_t srun_launch_finish(srun_launch *self);
void srun_launch_close(srun_launch *self);

/* A daemon's: the number in a line "NODE NAME" that names this node; -1: it names another. */
int64_t srun_launch_node_of(const char *line);

#endif
