/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: see job.h. Nodes tell how ranks ended; the first failure is told to the user and decides.
 */
#include "tools/mpirun/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/waits.h"

static void rank_ended(void *owner, const rank_end *end);
static void rank_refused(void *owner, uint32_t rank, char what, int error);

static int node_prepare(job *self)
{
    uint32_t *ranks = malloc(self->opts->ranks * sizeof(*ranks));

    if (!ranks)
        return complain(1, "out of memory");
    for (uint32_t i = 0; i < self->opts->ranks; i++)
        ranks[i] = i;
    self->node = (node){.opts = self->opts, .name = self->name, .host = self->host, .guard = &self->guard, .io = self->io,
                        .up = {.ended = rank_ended, .refused = rank_refused, .owner = self}};
    int rc = node_open(&self->node, ranks, self->opts->ranks);
    free(ranks);
    return rc;
}

int job_open(job *self, const options *opts)
{
    self->opts = opts;
    if (gethostname(self->host, sizeof(self->host)) || !*self->host)
        strcpy(self->host, "localhost");
    self->host[sizeof(self->host) - 1] = '\0';
    snprintf(self->name, sizeof(self->name), "weft-%.64s-%ld-%016llx", self->host, (long)getpid(),
             (unsigned long long)weft_clock_ns());
    for (char *c = self->name; *c; c++) /* ':' ends a field of the word */
        *c = *c == ':' ? '_' : *c;
    snprintf(self->mark, sizeof(self->mark), ":%s", self->name);
    int rc = node_prepare(self);
    if (rc)
        return rc;
    self->guard = (guard){.mark = self->mark};
    if (guard_start(&self->guard))
        return complain(1, "cannot start the guardian process: %s", strerror(errno));
    if (opts->timeout_s > 0)
        self->timeout_ns = weft_clock_ns() + (uint64_t)(opts->timeout_s * 1e9);
    return 0;
}

int job_start(job *self)
{
    int rc = node_start(&self->node);

    self->live = self->node.live;
    return rc;
}

void job_signal(job *self, int sig)
{
    node_signal(&self->node, sig);
}

void job_end(job *self, int code)
{
    if (!self->code)
        self->code = code;
    if (self->phase != JOB_RUNS)
        return;
    self->phase = JOB_ENDING;
    self->deadline_ns = weft_clock_ns() + 2000000000u;
    node_end(&self->node);
}

void job_kill(job *self)
{
    if (self->phase != JOB_DRAINS)
        self->phase = JOB_KILLED;
    self->deadline_ns = 0;
    node_kill(&self->node);
}

static const app *part_of(const job *self, uint32_t rank)
{
    const app *part = self->opts->apps;

    while (rank >= part->first + part->count)
        part++;
    return part;
}

static void rank_refused(void *owner, uint32_t rank, char what, int error)
{
    const job *self = owner;
    const app *part = part_of(self, rank);

    if (self->phase == JOB_RUNS)
        complain(0, "rank %u: cannot %s %s: %s", rank, what == 'd' ? "enter directory" : "execute", what == 'd' ? part->wdir : part->path,
                 strerror(error));
}

static void death_told(const job *self, const rank_end *end, int code, bool ends_all)
{
    char how[160];

    if (WIFSIGNALED(end->raw_status)) {
        int sig = WTERMSIG(end->raw_status);
        if (sig == self->told) /* asked for by the user, who knows */
            snprintf(how, sizeof(how), "was ended by SIG%s as you asked", sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
        else
            snprintf(how, sizeof(how), "was killed by signal %d (SIG%s: %s)%s", sig, sigabbrev_np(sig) ? sigabbrev_np(sig) : "?",
                     strsignal(sig), WCOREDUMP(end->raw_status) ? " and left a core" : "");
    } else if (end->state == WEFT_RANK_ABORT) {
        snprintf(how, sizeof(how), "ended the job with exit code %d (MPI_Abort, or an MPI error that is fatal)", code);
    } else if (end->state == WEFT_RANK_INIT) {
        snprintf(how, sizeof(how), "ended with exit code %d without MPI_Finalize", WEXITSTATUS(end->raw_status));
    } else {
        snprintf(how, sizeof(how), "ended with exit code %d", code);
    }
    complain(code, "rank %u on host %s (%s, process %ld) %s%s", end->rank, self->host, part_of(self, end->rank)->path, (long)end->pid,
             how, ends_all && self->live ? "; the other ranks are ended" : "");
}

/* Judges one rank's end. Only the first failure is told and decides the code: what follows is its consequence. */
static void rank_ended(void *owner, const rank_end *end)
{
    job *self = owner;
    int code = WIFSIGNALED(end->raw_status) ? 128 + WTERMSIG(end->raw_status) : WEXITSTATUS(end->raw_status);
    bool is_failure = code != 0 || end->state == WEFT_RANK_INIT || end->state == WEFT_RANK_ABORT;
    /* a rank that has finalized owes the others nothing: they may come to their own end */
    bool ends_all = end->state != WEFT_RANK_FINAL || WIFSIGNALED(end->raw_status);

    self->live--;
    if (end->state == WEFT_RANK_INIT && code == 0)
        code = 1;
    if (!is_failure || self->phase != JOB_RUNS)
        return;
    if (!end->is_refused && !self->code)
        death_told(self, end, code, ends_all);
    if (ends_all)
        job_end(self, code);
    else if (!self->code)
        self->code = code;
}

static void drain(job *self)
{
    bool was_ended = self->phase != JOB_RUNS;

    self->phase = JOB_DRAINS;
    self->deadline_ns = 0;
    node_drain(&self->node, was_ended);
}

void job_reap(job *self)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != self->guard.pid)
            node_reaped(&self->node, pid, status);
        else if (guard_again(&self->guard))
            complain(1, "the guardian process was killed and cannot be started again: %s", strerror(errno));
    }
    if (self->live == 0 && self->phase != JOB_DRAINS)
        drain(self);
}

bool job_is_over(job *self)
{
    return self->phase == JOB_DRAINS && node_is_over(&self->node);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

uint64_t job_deadlines(job *self)
{
    uint64_t now = weft_clock_ns();

    if (self->timeout_ns && now >= self->timeout_ns && self->phase != JOB_DRAINS) {
        self->timeout_ns = 0;
        complain(124, "the job is ended: it has not finished within %g s (--timeout or MPIEXEC_TIMEOUT)", self->opts->timeout_s);
        waits_tell(&self->node);
        job_end(self, 124);
    }
    if (self->phase == JOB_ENDING && now >= self->deadline_ns)
        job_kill(self);
    uint64_t next = node_deadlines(&self->node);
    if (self->phase == JOB_DRAINS)
        return next;
    return earlier(self->phase == JOB_ENDING ? self->deadline_ns : 0, earlier(self->timeout_ns, next));
}

int job_close(job *self)
{
    node_close(&self->node, self->code != 0);
    guard_stop(&self->guard);
    io_close(self->io);
    return self->code;
}
