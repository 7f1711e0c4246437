/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: see job.h. A rank leads its own process group, so that what a wrapper script starts is reached too, and dies with mpirun
 * by PR_SET_PDEATHSIG, which the guardian completes. Between fork and exec only async-signal-safe calls are made: a PMIx server
 * may already run threads here.
 */
#include "tools/mpirun/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/place.h"
#include "base/status.h"
#include "launch/ways.h"
#include "launch/word.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/pmix_host.h"
#include "tools/mpirun/preload.h"
#include "tools/mpirun/signals.h"
#include "tools/mpirun/waits.h"

#define INHERITED_FD 100 /* high: scripts use the low ones by number */

/* What a child that could not exec writes. */
typedef struct exec_error {
    uint32_t rank;
    int error;
    char what; /* 'x' exec, 'd' working directory */
} exec_error;

static int segment_open(job *self)
{
    weft_word_job word = {.magic = WEFT_WORD_JOB_MAGIC,
                          .version = WEFT_WORD_VERSION,
                          .size = self->count,
                          .universe = self->count,
                          .is_bound = self->binding.masks && self->binding.is_disjoint};

    int rc = weft_segment_make(self->count, weft_word_hash(self->name), 0, &self->segment);
    if (rc)
        return complain(1, "%s", weft_fail_text(rc));
    int fd = fcntl(self->segment.fd, F_DUPFD_CLOEXEC, INHERITED_FD);
    if (fd >= 0) {
        close(self->segment.fd);
        self->segment.fd = fd;
    }
    word.is_crowded = self->count > (uint32_t)weft_place_cpus() || (self->binding.masks && !self->binding.is_disjoint);
    memcpy(word.name, self->name, sizeof(word.name));
    memcpy(word.host, self->host, sizeof(word.host));
    self->segment.head->cpus_shared = word.is_crowded;
    memcpy((char *)self->segment.head + WEFT_WORD_JOB_AT, &word, sizeof(word));
    return 0;
}

int job_open(job *self, const options *opts)
{
    self->opts = opts;
    self->count = opts->ranks;
    self->segment.fd = self->errors[0] = self->errors[1] = -1;
    if (gethostname(self->host, sizeof(self->host)) || !*self->host)
        strcpy(self->host, "localhost");
    self->host[sizeof(self->host) - 1] = '\0';
    snprintf(self->name, sizeof(self->name), "weft-%.64s-%ld-%016llx", self->host, (long)getpid(),
             (unsigned long long)weft_clock_ns());
    for (char *c = self->name; *c; c++) /* ':' ends a field of the word */
        *c = *c == ':' ? '_' : *c;
    snprintf(self->mark, sizeof(self->mark), ":%s", self->name);
    self->ranks = calloc(self->count, sizeof(*self->ranks));
    self->groups = calloc(self->count, sizeof(*self->groups));
    if (!self->ranks || !self->groups || pipe2(self->errors, O_CLOEXEC))
        return complain(1, "out of memory or descriptors: %s", strerror(errno));
    fcntl(self->errors[0], F_SETFL, O_NONBLOCK);
    int rc = bind_make(opts, &self->binding);
    if (!rc)
        rc = segment_open(self);
    if (rc)
        return rc;
    self->guard = (guard){.mark = self->mark, .groups = self->groups};
    if (guard_start(&self->guard))
        return complain(1, "cannot start the guardian process: %s", strerror(errno));
    if (opts->timeout_s > 0)
        self->timeout_ns = weft_clock_ns() + (uint64_t)(opts->timeout_s * 1e9);
    return 0;
}

static void child_fail(const job *self, uint32_t index, char what, int error)
{
    exec_error word = {index, error, what};

    if (write(self->errors[1], &word, sizeof(word)) < 0) {
    }
    _exit(what == 'x' && error == ENOENT ? 127 : 126);
}

/* A file that is executable but has no form the kernel knows is a shell script to every shell. */
static void child_exec(const app *part, char **environment)
{
    execve(part->path, part->argv, environment);
    if (errno != ENOEXEC)
        return;
    size_t count = 0;
    while (part->argv[count])
        count++;
    char *argv[count + 2];
    argv[0] = "/bin/sh";
    argv[1] = part->path;
    memcpy(argv + 2, part->argv + 1, count * sizeof(*argv));
    execve(argv[0], argv, environment);
}

static void child_run(const job *self, const app *part, uint32_t index, char **environment, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* mpirun died before the line above: nobody would ever end us */
    io_child(self->io, index);
    if (self->binding.masks)
        sched_setaffinity(0, self->binding.mask_bytes, self->binding.masks[index]);
    if (part->wdir && chdir(part->wdir))
        child_fail(self, index, 'd', errno);
    fcntl(self->segment.fd, F_SETFD, 0);
    signals_child();
    child_exec(part, environment);
    child_fail(self, index, 'x', errno);
}

static int rank_start(job *self, const app *part, uint32_t index, env_list *env)
{
    char text[512];
    pid_t parent = getpid();

    snprintf(text, sizeof(text), "%s=%d:%d:%u:%u:%ld%s", WEFT_WORD_NAME, WEFT_WORD_VERSION, self->segment.fd, index,
             (uint32_t)(part - self->opts->apps), (long)parent, self->mark);
    int rc = env_set(env, text);
    snprintf(text, sizeof(text), "WEFT_BOOT_RANK=%u", index);
    rc |= env_set(env, text);
    snprintf(text, sizeof(text), "WEFT_BOOT_SIZE=%u", self->count);
    rc |= env_set(env, text);
    if (self->pmix)
        rc |= pmix_host_environ(self->pmix, index, env);
    if (rc)
        return complain(1, "out of memory for the environment of rank %u", index);
    if (io_rank_open(self->io, index))
        return 1;
    signals_hold();
    pid_t pid = fork();
    if (pid == 0)
        child_run(self, part, index, env->items, parent);
    signals_release();
    io_rank_started(self->io, index);
    if (pid < 0)
        return complain(1, "cannot start rank %u: %s (look at ulimit -u)", index, strerror(errno));
    setpgid(pid, pid); /* both sides do it: whoever comes first */
    self->ranks[index].pid = self->groups[index] = pid;
    self->guard.group_count = self->started = index + 1;
    self->live++;
    guard_tell_group(&self->guard, pid);
    return 0;
}

int job_start(job *self)
{
    int rc = 0;

    for (uint32_t a = 0; a < self->opts->app_count && !rc; a++) {
        const app *part = &self->opts->apps[a];
        env_list env = {0};
        if (env_make(self->opts, part, &env) || preload_set(part, &env))
            rc = complain(1, "out of memory for the environment");
        for (uint32_t i = 0; i < part->count && !rc; i++)
            rc = rank_start(self, part, part->first + i, &env);
        env_free(&env);
    }
    return rc;
}

/* A group that is empty stays so, and the kernel may give its number to strangers: it is forgotten as soon as it is seen empty.
 * */
static bool group_signal(job *self, uint32_t index, int sig)
{
    if (!self->groups[index])
        return false;
    if (kill(-self->groups[index], sig) == 0 || errno != ESRCH || !self->ranks[index].is_gone)
        return true;
    guard_tell_empty(&self->guard, self->groups[index]);
    self->groups[index] = 0;
    return false;
}

void job_signal(job *self, int sig)
{
    for (uint32_t i = 0; i < self->started; i++)
        group_signal(self, i, sig);
}

void job_end(job *self, int code)
{
    if (!self->code)
        self->code = code;
    if (self->phase != JOB_RUNS)
        return;
    self->phase = JOB_ENDING;
    self->deadline_ns = weft_clock_ns() + 2000000000u;
    job_signal(self, SIGTERM);
    job_signal(self, SIGCONT);
}

void job_kill(job *self)
{
    if (self->phase == JOB_DRAINS)
        self->deadline_ns = weft_clock_ns() + 1000000000u; /* what still is unread of a killed job's output has a second */
    else
        self->phase = JOB_KILLED;
    job_signal(self, SIGKILL);
    if (self->phase == JOB_KILLED)
        self->deadline_ns = 0;
}

/* Why the child could not exec: told before any other line about it. Returns whether there was such a word. */
static bool exec_error_told(job *self, uint32_t index, int code)
{
    exec_error word;
    bool is_told = false;

    while (read(self->errors[0], &word, sizeof(word)) == (ssize_t)sizeof(word)) {
        if (word.rank >= self->count)
            continue;
        const app *part = self->opts->apps;
        while (word.rank >= part->first + part->count)
            part++;
        if (self->phase == JOB_RUNS || is_told)
            complain(code, "rank %u: cannot %s %s: %s", word.rank, word.what == 'd' ? "enter directory" : "execute",
                     word.what == 'd' ? part->wdir : part->path, strerror(word.error));
        is_told = true;
    }
    (void)index;
    return is_told;
}

static void death_told(job *self, uint32_t index, uint32_t state, int code, bool ends_all)
{
    const rank *one = &self->ranks[index];
    const app *part = self->opts->apps;
    char how[160];

    while (index >= part->first + part->count)
        part++;
    if (WIFSIGNALED(one->raw_status)) {
        int sig = WTERMSIG(one->raw_status);
        if (sig == self->told) /* asked for by the user, who knows */
            snprintf(how, sizeof(how), "was ended by SIG%s as you asked", sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
        else
            snprintf(how, sizeof(how), "was killed by signal %d (SIG%s: %s)%s", sig, sigabbrev_np(sig) ? sigabbrev_np(sig) : "?",
                     strsignal(sig), WCOREDUMP(one->raw_status) ? " and left a core" : "");
    } else if (state == WEFT_RANK_ABORT) {
        snprintf(how, sizeof(how), "ended the job with exit code %d (MPI_Abort, or an MPI error that is fatal)", code);
    } else if (state == WEFT_RANK_INIT) {
        snprintf(how, sizeof(how), "ended with exit code %d without MPI_Finalize", WEXITSTATUS(one->raw_status));
    } else {
        snprintf(how, sizeof(how), "ended with exit code %d", code);
    }
    complain(code, "rank %u on host %s (%s, process %ld) %s%s", index, self->host, part->path, (long)one->pid, how,
             ends_all && self->live ? "; the other ranks are ended" : "");
}

/* Judges one rank's end. Only the first failure is told and decides the code: what follows is its consequence. */
static void rank_ended(job *self, uint32_t index)
{
    rank *one = &self->ranks[index];
    weft_rank_page *page = weft_segment_rank(&self->segment, index);
    uint32_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    int code = WIFSIGNALED(one->raw_status) ? 128 + WTERMSIG(one->raw_status) : WEXITSTATUS(one->raw_status);
    bool is_failure = code != 0 || state == WEFT_RANK_INIT || state == WEFT_RANK_ABORT;

    /* a rank that has finalized owes the others nothing: they may come to their own end */
    bool ends_all = state != WEFT_RANK_FINAL || WIFSIGNALED(one->raw_status);

    one->is_gone = true;
    self->live--;
    if (is_failure && ends_all && self->phase == JOB_RUNS) /* before they see it, they need not tell it: we do */
        weft_speak_not(&self->segment);
    group_signal(self, index, 0);
    if (state != WEFT_RANK_FINAL && state != WEFT_RANK_ABORT)
        atomic_store_explicit(&page->state, WEFT_RANK_DEAD, memory_order_release);
    if (state != WEFT_RANK_FINAL) /* peers that sleep look again, and see it */
        for (uint32_t i = 0; i < self->count; i++)
            weft_segment_wake(weft_segment_rank(&self->segment, i));
    if (state == WEFT_RANK_INIT && code == 0)
        code = 1;
    bool is_told = exec_error_told(self, index, code);
    if (!is_failure || self->phase != JOB_RUNS)
        return;
    if (!is_told && !self->code)
        death_told(self, index, state, code, ends_all);
    if (ends_all)
        job_end(self, code);
    else if (!self->code)
        self->code = code;
}

void job_reap(job *self)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == self->guard.pid) {
            if (guard_again(&self->guard))
                complain(1, "the guardian process was killed and cannot be started again: %s", strerror(errno));
            continue;
        }
        for (uint32_t i = 0; i < self->started; i++) { /* others are orphans of ranks: only reaped */
            if (self->ranks[i].pid != pid || self->ranks[i].is_gone)
                continue;
            self->ranks[i].raw_status = status;
            rank_ended(self, i);
            break;
        }
    }
    if (self->live == 0 && self->phase != JOB_DRAINS) {
        bool was_ended = self->phase != JOB_RUNS;
        self->phase = JOB_DRAINS;
        /* a failed job's leftovers go now; a good one's (tee of a >(tee log)) may finish */
        self->deadline_ns = weft_clock_ns() + (was_ended ? 0 : 1000000000u);
        if (was_ended)
            job_signal(self, SIGTERM);
    }
}

static bool groups_are_empty(job *self)
{
    bool is_empty = true;

    for (uint32_t i = 0; i < self->started; i++)
        is_empty &= !group_signal(self, i, 0);
    return is_empty;
}

bool job_is_over(job *self)
{
    return self->phase == JOB_DRAINS && io_is_drained(self->io) && groups_are_empty(self);
}

uint64_t job_deadlines(job *self)
{
    uint64_t now = weft_clock_ns();

    if (self->timeout_ns && now >= self->timeout_ns && self->phase != JOB_DRAINS) {
        self->timeout_ns = 0;
        complain(124, "the job is ended: it has not finished within %g s (--timeout or MPIEXEC_TIMEOUT)", self->opts->timeout_s);
        waits_tell(&self->segment, self->count);
        job_end(self, 124);
    }
    if (self->phase == JOB_ENDING && now >= self->deadline_ns)
        job_kill(self);
    if (self->phase == JOB_DRAINS && now >= self->deadline_ns) {
        if (!groups_are_empty(self)) {
            job_signal(self, SIGKILL);
            self->deadline_ns = now + 20000000;
        } else {
            io_give_up(self->io); /* a daemon of a session of its own holds a pipe: its output is not the job's */
        }
    }
    if (self->phase == JOB_DRAINS)
        return now + 10000000 < self->deadline_ns ? now + 10000000 : self->deadline_ns;
    uint64_t next = self->phase == JOB_ENDING ? self->deadline_ns : 0;
    if (self->timeout_ns && (!next || self->timeout_ns < next))
        next = self->timeout_ns;
    return next;
}

int job_close(job *self)
{
    if (self->pmix)
        pmix_host_close(self->pmix);
    if (self->code)
        marked_kill(self->mark); /* what left its process group must not outlive a failed job */
    guard_stop(&self->guard);
    io_close(self->io);
    bind_free(&self->binding);
    weft_segment_close(&self->segment);
    free(self->ranks);
    free(self->groups);
    return self->code;
}
