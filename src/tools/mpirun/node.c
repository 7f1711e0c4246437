/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node: see node.h. A rank leads its own process group, so that signals reach the processes of a wrapper script. PR_SET_PDEATHSIG ends it
 * with mpirun; the guardian covers the rest.
 * Between fork and exec only async-signal-safe functions are called: libpmix may already run threads.
 */
#include "tools/mpirun/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu_count.h"
#include "base/status.h"
#include "launch/boot_env.h"
#include "launch/boot_internal.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/pmix_srv.h"
#include "tools/mpirun/program.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/signals.h"

#define INHERITED_FD 100 /* high: scripts use low numbers explicitly */

/* Written by a child that could not exec. */
typedef struct exec_error {
    uint32_t rank;
    int error;
    char what; /* 'x' exec, 'd' working directory */
} exec_error;

static int segment_open(node *self)
{
    weft_boot_env_job env = {.magic = WEFT_BOOT_ENV_JOB_MAGIC,
                          .version = WEFT_BOOT_ENV_VERSION,
                          .size = self->opts->ranks,
                          .universe = self->opts->ranks,
                          .is_bound = self->binding.masks && self->binding.is_disjoint};

    int rc = weft_segment_make_with(self->count, modex_node_bytes(self->map), weft_boot_env_hash(self->name), 0, &self->segment);
    if (rc)
        return report(1, "%s", weft_fail_text(rc));
    self->segment.hdr->recovers = self->opts->recovers;
    int fd = fcntl(self->segment.fd, F_DUPFD_CLOEXEC, INHERITED_FD);
    if (fd >= 0) {
        close(self->segment.fd);
        self->segment.fd = fd;
    }
    env.is_oversubscribed = self->count > (uint32_t)weft_cpu_count() || (self->binding.masks && !self->binding.is_disjoint);
    snprintf(env.name, sizeof(env.name), "%s", self->name);
    snprintf(env.host, sizeof(env.host), "%s", self->host);
    self->segment.hdr->cpus_shared = env.is_oversubscribed;
    memcpy((char *)self->segment.hdr + WEFT_BOOT_ENV_JOB_AT, &env, sizeof(env));
    return modex_node_open(&self->modex_node, &self->segment, self->ranks, self->map, self->index, &self->modex_node_callbacks);
}

/* Looks up only programs that ranks of this node run. */
static int programs_find(const node *self, options *opts)
{
    int rc = 0;

    for (uint32_t a = 0, i = 0; a < opts->app_count && !rc; a++) {
        uint32_t end = opts->apps[a].first + opts->apps[a].count;
        bool is_here = i < self->count && self->ranks[i].rank < end;
        while (i < self->count && self->ranks[i].rank < end)
            i++;
        if (is_here)
            rc = program_find(&opts->apps[a]);
        if (!rc && self->map->node_count > 1)
            rc = program_check(&opts->apps[a], opts->pmix);
    }
    return rc;
}

/* MPICH programs need PMI-1. Scripts may start such programs: they get it if the descriptor limit suffices. */
static bool wants_pmi(const node *self, const app *part)
{
    struct rlimit limit;

    if (!part->path || part->is_weft || part->is_mpich || part->is_foreign)
        return part->path && part->is_mpich;
    return getrlimit(RLIMIT_NOFILE, &limit) || 3 * (rlim_t)self->count + 200 <= limit.rlim_cur;
}

int node_serve(node *self)
{
    const app *foreign = NULL;
    bool is_wanted = false, is_pmi_wanted = false;

    for (uint32_t a = 0; a < self->opts->app_count; a++) {
        const app *part = &self->opts->apps[a];
        is_wanted |= part->path && !part->is_weft && !part->is_mpich; /* path is NULL for programs of other nodes */
        is_pmi_wanted |= wants_pmi(self, part);
        foreign = part->path && part->is_foreign && !part->is_mpich ? part : foreign;
    }
    if (is_pmi_wanted && !(self->pmi = pmi_server_open(self->opts, self->name, self->map, self->index, &self->pmi_up)))
        return report(1, "out of memory or descriptors for the PMI server: %s", strerror(errno));
    if (self->opts->pmix == PMIX_MODE_NEVER || (!is_wanted && self->opts->pmix == PMIX_MODE_AUTO))
        return 0;
    int rc = pmix_srv_open(self->opts, self->name, self->map, self->index, self->host, self->guard, &self->pmix);
    if (!rc || self->opts->pmix == PMIX_MODE_ALWAYS)
        return rc;
    if (foreign && self->map->node_count > 1)
        return report(2, "%s is linked with another MPI or with PMIx: without a PMIx server each of its ranks would be a job of one",
                        foreign->path);
    return 0; /* was reported; most programs need no PMIx */
}

int node_open(node *self, options *opts)
{
    uint32_t count = self->map->nodes[self->index].count, *ranks = map_ranks(self->map, self->index);

    self->opts = opts;
    self->count = count;
    self->modex_node.wakeup = -1;
    self->segment.fd = self->errors[0] = self->errors[1] = -1;
    snprintf(self->mark, sizeof(self->mark), ":%s", self->name);
    self->ranks = calloc(count, sizeof(*self->ranks));
    for (uint32_t i = 0; i < count && ranks && self->ranks; i++)
        self->ranks[i].rank = ranks[i];
    if (!ranks || !self->ranks || pipe2(self->errors, O_CLOEXEC)) {
        free(ranks);
        return report(1, "out of memory or descriptors: %s", strerror(errno));
    }
    fcntl(self->errors[0], F_SETFL, O_NONBLOCK);
    int rc = programs_find(self, opts);
    if (!rc)
        rc = bind_make(self->opts, count, ranks, &self->binding);
    free(ranks);
    return rc ? rc : segment_open(self);
}

static void child_fail(const node *self, uint32_t rank, char what, int error)
{
    exec_error failure = {rank, error, what};

    if (write(self->errors[1], &failure, sizeof(failure)) < 0) {
    }
    _exit(what == 'x' && error == ENOENT ? 127 : 126);
}

/* An executable file of a format unknown to the kernel is run by the shell, as every shell does. */
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

/* Arguments of a rank's child process. */
typedef struct child_args {
    const node *node;
    const app *part;
    uint32_t index;
    char **environment;
    pid_t parent;
} child_args;

static void child_run(void *arg)
{
    const child_args *what = arg;
    const node *self = what->node;
    const app *part = what->part;
    uint32_t index = what->index, rank = self->ranks[index].rank;

    /* A process group for signals. Without a shared session a session of its own, by which the kernel distributes CPU time (autogroup):
     * it gets the share of a program. Until this runs, only the mark identifies the rank (guard). */
    if (self->session.leader)
        setpgid(0, 0);
    else
        setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != what->parent)
        _exit(1); /* mpirun died before prctl: no signal would end this rank */
    io_child(self->io);
    if (self->binding.masks)
        sched_setaffinity(0, self->binding.mask_bytes, self->binding.masks[index]);
    if (part->wdir && chdir(part->wdir))
        child_fail(self, rank, 'd', errno);
    fcntl(self->segment.fd, F_SETFD, 0);
    if (self->pmi)
        pmi_server_child(self->pmi);
    signals_child();
    child_exec(part, what->environment);
    child_fail(self, rank, 'x', errno);
}

static int rank_start(node *self, const app *part, uint32_t index, env_list *env)
{
    uint32_t rank = self->ranks[index].rank;
    char text[512];
    pid_t parent = getpid();

    snprintf(text, sizeof(text), "%s=%d:%d:%u:%u:%u:%ld%s", WEFT_BOOT_ENV_NAME, WEFT_BOOT_ENV_VERSION, self->segment.fd, rank, index,
             (uint32_t)(part - self->opts->apps), (long)parent, self->mark);
    int rc = env_set(env, text);
    snprintf(text, sizeof(text), "WEFT_BOOT_RANK=%u", rank);
    rc |= env_set(env, text);
    snprintf(text, sizeof(text), "WEFT_BOOT_SIZE=%u", self->opts->ranks);
    rc |= env_set(env, text);
    snprintf(text, sizeof(text), "WEFT_BOOT_MAXPROCS=%u", part->count);
    rc |= env_set(env, text);
    if (self->pmix)
        rc |= pmix_srv_environ(self->pmix, rank, env);
    if (self->pmi && wants_pmi(self, part) && pmi_server_environ(self->pmi, rank, (uint32_t)(part - self->opts->apps), env))
        return report(1, "no connection for PMI of rank %u: %s (ulimit -n)", rank, strerror(errno));
    if (rc)
        return report(1, "out of memory for the environment of rank %u", rank);
    if (io_rank_open(self->io, rank))
        return 1;
    signals_hold();
    child_args what = {self, part, index, env->items, parent};
    pid_t pid = self->session.leader ? session_fork(&self->session, child_run, &what) : fork();
    if (pid == 0)
        child_run(&what);
    signals_release();
    io_rank_started(self->io);
    if (self->pmi)
        pmi_server_started(self->pmi);
    if (pid < 0)
        return report(1, "cannot start rank %u: %s (see ulimit -u)", rank, strerror(errno));
    self->ranks[index].pid = self->ranks[index].group = pid;
    self->started = index + 1;
    self->live++;
    guard_add_group(self->guard, pid);
    return 0;
}

/* Open MPI 4 uses a PMIx server only if it sees the variables of a launcher that it knows. */
static int jsm_set(const app *part, env_list *env)
{
    return part->is_open ? env_set(env, "JSM_JSRUN_PORT=1") : 0;
}

/* Ranks that share CPUs share a session: sched_yield passes a CPU only within one. With a CPU of its own each rank has its own session. */
static void session_choose(node *self)
{
    if (!self->segment.hdr->cpus_shared || !session_is_scheduled())
        return;
    signals_hold();
    if (session_open(&self->session))
        self->session.leader = 0; /* one session per rank then: slower beside other programs, but correct */
    signals_release();
}

int node_start(node *self)
{
    int rc = 0;

    session_choose(self);
    for (uint32_t a = 0, i = 0; a < self->opts->app_count && !rc; a++) {
        const app *part = &self->opts->apps[a];
        env_list env = {0};
        if (i == self->count || self->ranks[i].rank >= part->first + part->count)
            continue; /* no rank of it on this node */
        if (env_make(self->opts, part, &env) || (self->pmix && jsm_set(part, &env)))
            rc = report(1, "out of memory for the environment");
        for (; i < self->count && self->ranks[i].rank < part->first + part->count && !rc; i++)
            rc = rank_start(self, part, i, &env);
        env_free(&env);
    }
    session_close(&self->session);
    return rc;
}

/* Signals a rank's group; false if the group is empty. An empty group is forgotten at once: the kernel may reuse its number. */
static bool group_signal(node *self, uint32_t index, int sig)
{
    node_rank *one = &self->ranks[index];

    if (!one->group)
        return false;
    if (kill(-one->group, sig) && errno == ESRCH && !one->is_gone)
        kill(one->pid, sig); /* the child has not called setpgid yet */
    else if (sig == SIGTSTP)
        kill(-one->group, SIGSTOP); /* orphaned process groups ignore SIGTSTP by default */
    if (kill(-one->group, 0) == 0 || errno != ESRCH || !one->is_gone)
        return true;
    guard_remove_group(self->guard, one->group);
    one->group = 0;
    return false;
}

void node_signal(node *self, int sig)
{
    for (uint32_t i = 0; i < self->started; i++)
        group_signal(self, i, sig);
}

void node_end(node *self)
{
    self->is_ending = true;
    node_signal(self, SIGTERM);
    node_signal(self, SIGCONT);
}

void node_kill(node *self)
{
    self->is_ending = true;
    if (self->is_draining)
        self->deadline_ns = weft_clock_ns() + 1000000000u; /* limit for reading a killed job's remaining output */
    node_signal(self, SIGKILL);
}

/* Reports children that could not exec. True if there was one. */
static bool exec_errors_report(node *self)
{
    exec_error failure;
    bool is_reported = false;

    while (read(self->errors[0], &failure, sizeof(failure)) == (ssize_t)sizeof(failure)) {
        if (failure.rank >= self->opts->ranks)
            continue;
        self->up.refused(self->up.owner, failure.rank, failure.what, failure.error);
        is_reported = true;
    }
    return is_reported;
}

static void wake_all(node *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        weft_page_wake(weft_segment_rank(&self->segment, i));
}

void node_tell_death(node *self, uint32_t rank)
{
    weft_segment_hdr *hdr = self->segment.hdr;
    uint32_t deaths = self->count ? atomic_load_explicit(&hdr->deaths, memory_order_relaxed) : 0;

    if (!self->count || deaths == WEFT_SEGMENT_DEATHS_MAX) /* then the head ends the job */
        return;
    hdr->dead[deaths] = rank;
    atomic_store_explicit(&hdr->deaths, deaths + 1, memory_order_release);
    wake_all(self);
}

static void rank_ended(node *self, uint32_t index)
{
    node_rank *one = &self->ranks[index];
    weft_rank_page *page = weft_segment_rank(&self->segment, index);
    uint32_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    bool rested = state == WEFT_RANK_REST;

    if (rested)
        atomic_store_explicit(&page->state, state = WEFT_RANK_FINAL, memory_order_release);
    bool is_failure = one->raw_status || state == WEFT_RANK_INIT || state == WEFT_RANK_ABORT;

    one->is_gone = true;
    self->live--;
    /* before its peers see it: mpirun reports the failure, not they */
    if (is_failure && (state != WEFT_RANK_FINAL || WIFSIGNALED(one->raw_status)) && !self->is_ending && !self->opts->recovers)
        weft_abort_text_suppress(&self->segment);
    group_signal(self, index, 0);
    if (state != WEFT_RANK_FINAL && state != WEFT_RANK_ABORT)
        atomic_store_explicit(&page->state, WEFT_RANK_DEAD, memory_order_release);
    if (state != WEFT_RANK_FINAL || rested) /* sleeping peers then see the state */
        wake_all(self);
    rank_end end = {.rank = one->rank, .raw_status = one->raw_status, .state = state, .pid = one->pid};
    if (self->pmix && pmix_srv_rank_ended(self->pmix, one->rank) && state == WEFT_RANK_NONE && !self->is_ending) {
        end.state = WEFT_RANK_INIT;
        end.was_in_pmix = true;
    }
    enum pmi_state pmi = pmi_server_rank_ended(self->pmi, one->rank);
    if (pmi == PMI_BEGUN && state == WEFT_RANK_NONE && !self->is_ending)
        end.state = WEFT_RANK_INIT;
    else if (pmi == PMI_FINALIZED && state == WEFT_RANK_NONE)
        end.state = WEFT_RANK_FINAL;
    end.is_refused = exec_errors_report(self);
    modex_node_progress(&self->modex_node); /* fails pending requests for its address */
    self->up.ended(self->up.owner, &end);
}

bool node_reaped(node *self, pid_t pid, int status)
{
    for (uint32_t i = 0; i < self->started; i++) {
        if (self->ranks[i].pid != pid || self->ranks[i].is_gone)
            continue;
        self->ranks[i].raw_status = status;
        rank_ended(self, i);
        return true;
    }
    return false;
}

void node_drain(node *self, bool was_ended)
{
    self->is_draining = true;
    /* remaining processes of a failed job end now; those of a good one, as tee in >(tee log), may finish */
    self->deadline_ns = weft_clock_ns() + (was_ended ? 0 : 1000000000u);
    if (was_ended)
        node_signal(self, SIGTERM);
}

static bool groups_are_empty(node *self)
{
    bool is_empty = true;

    for (uint32_t i = 0; i < self->started; i++)
        is_empty &= !group_signal(self, i, 0);
    return is_empty;
}

bool node_is_over(node *self)
{
    return self->is_draining && io_is_drained(self->io) && groups_are_empty(self);
}

uint64_t node_deadlines(node *self)
{
    uint64_t now = weft_clock_ns();

    if (!self->is_draining || !self->count)
        return 0;
    if (now >= self->deadline_ns) {
        if (!groups_are_empty(self)) {
            node_signal(self, SIGKILL);
            self->deadline_ns = now + 20000000;
        } else {
            io_give_up(self->io); /* a detached process holds a pipe: its output is not the job's */
        }
    }
    return now + 10000000 < self->deadline_ns ? now + 10000000 : self->deadline_ns;
}

void node_close(node *self, bool has_failed)
{
    if (!self->count)
        return;
    pmi_server_close(self->pmi);
    if (self->pmix)
        pmix_srv_close(self->pmix);
    if (has_failed && self->started)
        marked_end(self->mark); /* processes that left their process group */
    modex_node_close(&self->modex_node);
    bind_free(&self->binding);
    weft_segment_close(&self->segment);
    for (int i = 0; i < 2; i++)
        if (self->errors[i] >= 0)
            close(self->errors[i]);
    free(self->ranks);
    self->ranks = NULL;
}
