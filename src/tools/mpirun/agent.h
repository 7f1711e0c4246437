/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent: the program that starts a daemon on a host (ssh, or what --launch-agent names), and what it says when it fails.
 */
#ifndef WEFT_MPIRUN_AGENT_H
#define WEFT_MPIRUN_AGENT_H

#include <stddef.h>
#include <sys/types.h>

#include "tools/mpirun/guard.h"

typedef struct agent {
    pid_t pid;  /* 0: none, or it has ended */
    int out;    /* what it writes, both streams; -1: ended */
    char said[480]; /* the last of it */
    size_t said_bytes;
} agent;

#define AGENT_DEFAULT "ssh -x -o BatchMode=yes -o ConnectTimeout=10"

/* Starts a program, in this environment, with `text` as its standard input. 0 or -1 with errno. */
int agent_run(agent *self, const char *const *argv, char **environment, const char *text, guard *guard);
/* Starts `words HOST COMMAND`, with `line` as its standard input. 0 or -1 with errno. */
int agent_start(agent *self, const char *words, const char *host, const char *command, const char *line, guard *guard);
/* Reads what it has written. */
void agent_read(agent *self);
/* waitpid told its end. */
void agent_ended(agent *self, guard *guard);
void agent_kill(const agent *self, int sig);
void agent_close(agent *self);
/* What it said, on one line; never NULL. */
const char *agent_words(agent *self);

#endif
