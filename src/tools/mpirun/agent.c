/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent: see agent.h. It leads its own process group: mpirun forwards Ctrl-C itself, and signals reach the agent's ProxyCommand too.
 */
#include "tools/mpirun/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/mpirun/signals.h"

#define WORDS_MAX 64

static void child_run(char **argv, char **environment, int in, int out, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    signals_child();
    execvpe(argv[0], argv, environment);
    const char *why = strerror(errno);
    if (write(2, argv[0], strlen(argv[0])) < 0 || write(2, ": ", 2) < 0 || write(2, why, strlen(why)) < 0) {
    }
    _exit(127);
}

/* Splits `copy` in place at blanks. */
static int command_split(char *copy, char **argv)
{
    char *save = NULL;
    int count = 0;

    for (char *word = strtok_r(copy, " \t", &save); word && count < WORDS_MAX; word = strtok_r(NULL, " \t", &save))
        argv[count++] = word;
    return count;
}

/* Writes once, without blocking, so the pipe is enlarged to hold long texts. -1: the pipe did not take all. */
static int input_write(int fd, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes > 65536)
        fcntl(fd, F_SETPIPE_SZ, (int)bytes);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ssize_t n = write(fd, text, bytes);
    return n < 0 && errno == EPIPE ? 0 : n == (ssize_t)bytes ? 0 : -1; /* EPIPE: the agent has exited, which its reaping reports */
}

int agent_run(agent *self, const char *const *argv, char **environment, const char *text, guard *guard)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, rc = -1;
    pid_t parent = getpid();

    *self = (agent){.out = -1};
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        goto undo;
    signals_hold();
    pid_t pid = fork();
    if (pid == 0)
        child_run((char **)argv, environment, in[0], out[1], parent);
    signals_release();
    if (pid < 0)
        goto undo;
    setpgid(pid, pid);
    self->pid = pid;
    guard_add_group(guard, pid);
    self->out = out[0];
    out[0] = -1;
    fcntl(self->out, F_SETFL, O_NONBLOCK);
    rc = input_write(in[1], text);
undo:
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0)
            close(in[i]);
        if (out[i] >= 0)
            close(out[i]);
    }
    return rc;
}

int agent_start(agent *self, const char *agent_command, const char *host, const char *command, const char *line, guard *guard)
{
    char *argv[WORDS_MAX + 3] = {0}, *copy = strdup(agent_command);
    int count = copy ? command_split(copy, argv) : 0, rc = -1;

    *self = (agent){.out = -1};
    argv[count] = (char *)host;
    argv[count + 1] = (char *)command;
    if (count)
        rc = agent_run(self, (const char *const *)argv, environ, line, guard);
    free(copy);
    return rc;
}

void agent_read(agent *self)
{
    char bytes[512];
    ssize_t n;

    while (self->out >= 0 && (n = read(self->out, bytes, sizeof(bytes))) != 0) {
        if (n < 0 && errno != EINTR)
            return;
        for (ssize_t i = 0; i < n; i++) {
            if (self->output_bytes == sizeof(self->output) - 1)
                memmove(self->output, self->output + 1, --self->output_bytes);
            self->output[self->output_bytes++] = bytes[i];
        }
        self->output[self->output_bytes] = '\0';
    }
    agent_close(self);
}

void agent_ended(agent *self, guard *guard)
{
    agent_read(self);
    kill(-self->pid, SIGTERM); /* a remaining ProxyCommand */
    guard_remove_group(guard, self->pid);
    self->pid = 0;
}

void agent_kill(const agent *self, int sig)
{
    if (self->pid)
        kill(-self->pid, sig);
}

void agent_close(agent *self)
{
    if (self->out >= 0)
        close(self->out);
    self->out = -1;
}

const char *agent_output(agent *self)
{
    while (self->output_bytes && strchr(" \r\n", self->output[self->output_bytes - 1]))
        self->output_bytes--;
    self->output[self->output_bytes] = '\0';
    for (char *c = self->output; *c; c++)
        *c = *c == '\n' ? '|' : (unsigned char)*c < ' ' ? ' ' : *c;
    return self->output;
}
