/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent: the process that starts a daemon on a host (ssh, the --launch-agent command, or srun), and its captured output.
 * It leads a process group of its own, which is registered with the guard. The owner reaps it and calls agent_ended.
 */
#ifndef WEFT_MPIRUN_AGENT_H
#define WEFT_MPIRUN_AGENT_H

#include <stddef.h>
#include <sys/types.h>

#include "tools/mpirun/guard.h"

typedef struct agent {
    pid_t pid;        /* 0: not started, or reaped */
    int out;          /* read end of the pipe with its stdout and stderr; -1: closed */
    char output[480]; /* the last bytes of its output; a NUL follows */
    size_t output_bytes;
} agent;

#define AGENT_DEFAULT "ssh -x -o BatchMode=yes -o ConnectTimeout=10"

/* Starts argv in `environment` with `text` as its standard input. Does not block. 0 or -1 with errno. */
int agent_run(agent *self, const char *const *argv, char **environment, const char *text, guard *guard);
/* Starts `agent_command HOST COMMAND` in mpirun's environment, with `line` as its standard input. 0 or -1 with errno. */
int agent_start(agent *self, const char *agent_command, const char *host, const char *command, const char *line, guard *guard);
/* Reads the output that is available; does not block. */
void agent_read(agent *self);
/* To call when waitpid has returned its pid: reads the rest of its output and signals what is left of its group. */
void agent_ended(agent *self, guard *guard);
void agent_kill(const agent *self, int sig);
void agent_close(agent *self);
/* Its output as one line; never NULL. Valid until the next call. */
const char *agent_output(agent *self);

#endif
