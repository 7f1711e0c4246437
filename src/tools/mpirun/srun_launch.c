/* SPDX-License-Identifier: BSD-3-Clause
 *
 * srun_launch: see srun_launch.h. A batch script's environment holds settings for steps that the user starts (number of tasks, CPUs per
 * task, input), which srun would take for its options. The daemons' step drops them and overlaps with existing steps on all of the job's
 * resources.
 */
#include "tools/mpirun/srun_launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "tools/mpirun/buffer.h"
#include "tools/mpirun/contact.h"
#include "tools/mpirun/report.h"

#define SRUN_END_LIMIT_NS 5000000000u /* for srun to end its step */

/* Variables to drop; a trailing * marks a prefix. */
static const char *const dropped[] = {
    "SLURM_NTASKS*", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_CPUS_PER_*", "SRUN_CPUS_PER_*", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE",
    "SLURM_CPU_BIND*", "SLURM_MEM_*", "SLURM_ACCEL_BIND", "SLURM_GPU_BIND", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET", "SLURM_HINT",
    "SLURM_EXACT", "SLURM_EXCLUSIVE", "SLURM_OVERLAP", "SLURM_THREADS_PER_CORE", "SLURM_CORE_SPEC", "SLURM_EXPORT_ENV", "SLURM_STDINMODE",
    "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_LABELIO", "SLURM_UNBUFFEREDIO", "SLURM_MPI_TYPE", "SLURM_KILL_BAD_EXIT",
    "SLURM_WAIT", "SLURM_MULTI_PROG", "SLURM_OPEN_MODE", "SLURM_PTY_*", "SLURM_DEBUG", "SLURM_REQ_SWITCH", "SLURM_TASK_PROLOG",
    "SLURM_TASK_EPILOG", "SLURM_SPREAD_JOB", "SLURM_USE_MIN_NODES", "SLURM_NO_KILL",
};

static bool is_dropped(const char *item)
{
    size_t length = strcspn(item, "=");

    for (size_t i = 0; i < weft_count(dropped); i++) {
        size_t letters = strlen(dropped[i]);
        bool is_prefix = dropped[i][letters - 1] == '*';
        if (is_prefix ? !strncmp(item, dropped[i], letters - 1) : letters == length && !strncmp(item, dropped[i], length))
            return true;
    }
    return false;
}

/* Returns the environment without these variables; the caller frees the list but not its strings. */
static char **environment_make(void)
{
    size_t count = 0;

    while (environ[count])
        count++;
    char **items = calloc(count + 2, sizeof(*items));
    if (!items)
        return NULL;
    count = 0;
    for (char **item = environ; *item; item++)
        if (!is_dropped(*item))
            items[count++] = *item;
    items[count] = "SLURM_OVERLAP=1"; /* not an option: versions before 20.11 reject it and do not need it */
    return items;
}

static int names_add(const map *map, buffer *list, buffer *lines, uint32_t *count)
{
    int rc = 0;

    *count = 0;
    for (uint32_t i = 0; i < map->node_count && !rc; i++) {
        char text[320];
        if (map->nodes[i].is_here)
            continue;
        int bytes = snprintf(text, sizeof(text), "%u %s\n", i, map->nodes[i].name);
        rc = buffer_add(lines, text, (size_t)bytes) || (*count && buffer_add(list, ",", 1)) ||
             buffer_add(list, map->nodes[i].name, strlen(map->nodes[i].name));
        ++*count;
    }
    return rc || buffer_add(list, "", 1) || buffer_add(lines, "", 1) ? -1 : 0;
}

static int srun_start(agent *self, const map *map, const char *program, const char *line, guard *guard)
{
    buffer list = {0}, lines = {0};
    char **environment = environment_make(), nodes[32], tasks[32];
    uint32_t count;
    int rc = -1;

    if (!environment || buffer_add(&list, "--nodelist=", 11) || buffer_add(&lines, line, strlen(line)) ||
        names_add(map, &list, &lines, &count)) {
        errno = ENOMEM;
        goto undo;
    }
    snprintf(nodes, sizeof(nodes), "--nodes=%u", count);
    snprintf(tasks, sizeof(tasks), "--ntasks=%u", count);
    const char *argv[] = {"srun", "--quiet", nodes, tasks, "--ntasks-per-node=1", list.bytes + list.start, "--mpi=none",
                          "--cpu-bind=none", "--mem=0", "--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--chdir=/",
                          "--job-name=weft", program, DAEMON_OPTION, NULL};
    rc = agent_run(self, argv, environment, lines.bytes + lines.start, guard);
undo:
    if (lines.bytes)
        explicit_bzero(lines.bytes, lines.capacity);
    buffer_free(&list);
    buffer_free(&lines);
    free(environment);
    return rc;
}

int srun_launch_start(srun_launch *self, job *job, void (*failed)(struct job *, int), int listener, const unsigned char *secret)
{
    char line[4096], program[2048];
    int rc = 0;

    *self = (srun_launch){.job = job, .failed = failed, .agent.out = -1, .is_used = true};
    if (daemon_program(program, sizeof(program)))
        return report(1, "cannot determine the path of mpirun: %s", strerror(errno));
    if (contact_write(listener, secret, SRUN_NODE, line, sizeof(line)))
        rc = report(1, "this machine has no network address: %s", strerror(errno));
    else if (srun_start(&self->agent, &job->map, program, line, &job->guard))
        rc = report(1, "cannot start srun: %s", strerror(errno));
    explicit_bzero(line, sizeof(line));
    return rc;
}

/* Returns srun's output without its message about missing CPU binding support. */
static const char *srun_output(srun_launch *self)
{
    static const char noise[] = "srun: cluster configuration lacks support for cpu binding";
    char *words = (char *)agent_output(&self->agent), *at;

    while ((at = strstr(words, noise))) {
        size_t length = strlen(noise) + (at[strlen(noise)] == '|');
        memmove(at, at + length, strlen(at + length) + 1);
    }
    return words;
}

void srun_launch_fail(srun_launch *self, const char *why)
{
    if (self->job->phase == JOB_LAUNCHES && !self->job->code)
        report(1, "cannot start ranks by srun in %s: %s%s", self->job->opts->allocation, why, srun_output(self));
    self->failed(self->job, 1);
}

/* Matches "srun: error: b: task 1: Exited with exit code 2" and "srun: error: Task launch for StepId=2.0 failed on node c: Communication
 * connection failure". */
void srun_launch_read(srun_launch *self)
{
    agent_read(&self->agent);
    for (const char *at = self->agent.output; self->job->phase == JOB_LAUNCHES && (at = strstr(at, "srun: error: ")); at++) {
        const char *end = strchr(at, '\n'), *task = strstr(at, ": task"), *launch = strstr(at, " launch ");
        if (end && ((task && task < end) || (launch && launch < end))) {
            srun_launch_fail(self, "");
            return;
        }
    }
}

bool srun_launch_reaped(srun_launch *self, pid_t pid, int status, bool is_ready, bool has_lost)
{
    char why[160];

    if (!self->agent.pid || pid != self->agent.pid)
        return false;
    agent_ended(&self->agent, &self->job->guard);
    if (WIFSIGNALED(status))
        snprintf(why, sizeof(why), "srun was killed by signal %d. ", WTERMSIG(status));
    else
        snprintf(why, sizeof(why), "srun ended with exit code %d. ", WEXITSTATUS(status));
    if (self->job->phase == JOB_LAUNCHES && !is_ready)
        srun_launch_fail(self, why);
    else if (has_lost && *srun_output(self))
        report(0, "output of srun: %s", srun_output(self));
    return true;
}

uint64_t srun_launch_finish(srun_launch *self)
{
    uint64_t now = weft_clock_ns();

    if (!self->agent.pid)
        return 0;
    if (!self->over_ns) {
        self->over_ns = now + SRUN_END_LIMIT_NS;
        if (self->job->code)
            agent_kill(&self->agent, SIGTERM);
    }
    if (now < self->over_ns)
        return self->over_ns;
    agent_kill(&self->agent, SIGKILL);
    return now + 100000000u;
}

void srun_launch_close(srun_launch *self)
{
    if (!self->is_used)
        return;
    agent_kill(&self->agent, SIGKILL);
    agent_close(&self->agent);
}

int64_t srun_launch_node_of(const char *line)
{
    const char *name = getenv("SLURMD_NODENAME");
    unsigned node;
    int at = 0;

    if (!name || sscanf(line, "%u %n", &node, &at) != 1 || !at || strlen(name) != strcspn(line + at, "\n"))
        return -1;
    return strncmp(line + at, name, strlen(name)) ? -1 : (int64_t)node;
}
