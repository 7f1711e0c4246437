/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: see job.h. Nodes report how ranks end; the first failure is reported to the user and sets the exit code.
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
#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/pmi_server.h"
#include "tools/mpirun/pmix_head.h"
#include "tools/mpirun/pmix_srv.h"
#include "tools/mpirun/remote_nodes.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/wait_report.h"

#define DRAIN_LIMIT_NS 15000000000u /* longer than the detection of a lost host (CTRL_SILENCE_MS), which has its own message */

/* Handles PMIx_Abort of a local rank. */
static void abort_handle(job *self)
{
    char text[256];
    int rank, code;

    if (self->node.pmix && pmix_srv_aborted(self->node.pmix, &rank, &code, text))
        job_aborted(self, (uint32_t)rank, code, "PMIx_Abort", text);
}

static void on_rank_ended(void *owner, const rank_end *end)
{
    abort_handle(owner); /* the reason comes before the end */
    job_rank_ended(owner, end);
}

static void refused(void *owner, uint32_t rank, char what, int error)
{
    job_rank_refused(owner, rank, what, error);
}

static void modex_request_send(void *owner, uint32_t rank)
{
    remote_nodes_modex_request(((job *)owner)->remote_nodes, rank);
}

static void modex_data_send(void *owner, uint32_t rank, uint32_t state, const void *data, uint32_t bytes)
{
    remote_nodes_modex_data(((job *)owner)->remote_nodes, rank, state, data, bytes);
}

static void fence_send(void *owner, uint64_t number)
{
    remote_nodes_fence(((job *)owner)->remote_nodes, number);
}

/* Sends a message of pmix_head to this machine's server or to another node. */
static void pmix_msg_send(void *owner, uint32_t node, const pmix_msg *what)
{
    job *self = owner;
    pmix_msg answer;

    if (!self->map.nodes[node].is_here) {
        remote_nodes_pmix_msg(self->remote_nodes, node, what);
        return;
    }
    if (!pmi_server_handle(self->node.pmi, what) && pmix_srv_handle(self->node.pmix, what, &answer))
        pmix_head_handle(self->pmix_head, node, &answer);
}

static void on_pmi_msg(void *owner, const pmix_msg *what)
{
    job *self = owner;

    pmix_head_handle(self->pmix_head, self->node.index, what);
}

static void on_pmi_aborted(void *owner, uint32_t rank, int code)
{
    job_aborted(owner, rank, code, "MPI_Abort", NULL);
}

void job_serve(job *self)
{
    pmix_msg what;

    pmi_server_progress(self->node.pmi);
    abort_handle(self);
    while (self->node.pmix && pmix_srv_next(self->node.pmix, &what))
        pmix_head_handle(self->pmix_head, self->node.index, &what);
}

static void input_send(void *owner, const char *bytes, size_t count)
{
    job *self = owner;

    for (uint32_t n = 0; n < self->map.node_count; n++) {
        bool reads = self->opts->stdin_to == STDIN_ALL ? self->map.nodes[n].count != 0 : self->map.node_of[self->opts->stdin_to] == n;
        if (reads && !self->map.nodes[n].is_here && io_count_sent(self->io, n, count))
            remote_nodes_in(self->remote_nodes, n, bytes, count);
    }
}

static io *io_now; /* for report_to, which has no user pointer */

static bool message_queue(const char *text)
{
    return io_now && io_queue(io_now, text);
}

static int io_prepare(job *self, uint32_t here)
{
    uint32_t local = here < self->map.node_count ? self->map.nodes[here].count : 0;
    bool reads = self->opts->stdin_to >= 0 ? !self->map.nodes[self->map.node_of[self->opts->stdin_to]].is_here
                                           : self->opts->stdin_to == STDIN_ALL && local < self->map.ranks;
    io_remote remote = {.in = reads ? input_send : NULL, .nodes = self->map.node_count, .owner = self};

    int rc = io_open(self->opts, local, &remote, &self->io);
    io_now = rc ? NULL : self->io;
    report_to = message_queue;
    return rc;
}

static int node_prepare(job *self, uint32_t here)
{
    self->node = (node){.name = self->name, .host = self->host, .guard = &self->guard, .io = self->io, .map = &self->map, .index = here,
                        .up = {.ended = on_rank_ended, .refused = refused, .owner = self},
                        .modex_node_callbacks = {.request = modex_request_send, .data = modex_data_send, .fence = fence_send,
                                                  .owner = self},
                        .pmi_up = {.pmix_msg = on_pmi_msg, .aborted = on_pmi_aborted, .owner = self}};
    return node_open(&self->node, self->opts);
}

static void name_make(job *self)
{
    if (gethostname(self->host, sizeof(self->host)) || !*self->host)
        strcpy(self->host, "localhost");
    self->host[sizeof(self->host) - 1] = '\0';
    snprintf(self->name, sizeof(self->name), "weft-%.64s-%ld-%016llx", self->host, (long)getpid(),
             (unsigned long long)weft_clock_ns());
    for (char *c = self->name; *c; c++) /* ':' separates the fields of WEFT_BOOT */
        *c = *c == ':' ? '_' : *c;
    snprintf(self->mark, sizeof(self->mark), ":%s", self->name);
}

static const remote_nodes_callbacks on_remote = {.ended = job_rank_ended, .refused = job_rank_refused, .aborted = job_aborted,
                                                 .daemon_signaled = job_daemon_signaled, .failed = job_end};

int job_open(job *self, options *opts)
{
    uint32_t here = 0;

    self->opts = opts;
    name_make(self);
    int rc = map_make(opts, &self->map);
    while (!rc && here < self->map.node_count && !self->map.nodes[here].is_here)
        here++;
    bool is_alone = here == 0 && self->map.node_count == 1;
    pmix_msg_sender up = {.send = pmix_msg_send, .owner = self};
    if (!rc && !(self->pmix_head = pmix_head_open(&self->map, &up)))
        rc = report(1, "out of memory");
    if (!rc)
        rc = io_prepare(self, here);
    if (!rc && here < self->map.node_count)
        rc = node_prepare(self, here);
    if (rc)
        return rc;
    self->guard = (guard){.mark = self->mark};
    if (guard_start(&self->guard))
        return report(1, "cannot start the guardian process: %s", strerror(errno));
    if (opts->timeout_s > 0)
        self->timeout_ns = weft_clock_ns() + (uint64_t)(opts->timeout_s * 1e9);
    self->phase = is_alone ? JOB_RUNS : JOB_LAUNCHES;
    return is_alone ? 0 : remote_nodes_open(self, &on_remote, &self->remote_nodes);
}

void job_start(job *self)
{
    int rc = 0;

    if (self->phase == JOB_LAUNCHES && !remote_nodes_are_ready(self->remote_nodes))
        return;
    self->phase = JOB_RUNS;
    if (self->remote_nodes) {
        remote_nodes_go(self->remote_nodes);
        io_remote_begin(self->io);
    }
    if (self->node.count)
        rc = node_start(&self->node);
    self->live += self->node.live;
    if (rc)
        job_end(self, rc);
}

void job_signal(job *self, int sig)
{
    node_signal(&self->node, sig);
    if (self->remote_nodes)
        remote_nodes_signal(self->remote_nodes, sig);
}

void job_end(job *self, int code)
{
    if (!self->code)
        self->code = code;
    if (self->phase != JOB_RUNS && self->phase != JOB_LAUNCHES)
        return;
    self->phase = JOB_ENDING;
    self->deadline_ns = weft_clock_ns() + 2000000000u;
    node_end(&self->node);
    if (self->remote_nodes)
        remote_nodes_send(self->remote_nodes, CTRL_END);
}

void job_limit_drain(job *self)
{
    if (!self->drain_limit_ns)
        self->drain_limit_ns = weft_clock_ns() + DRAIN_LIMIT_NS;
}

/* Gives up daemons that do not finish in time (stopped, or blocked in a hung file system); their connections are closed. Daemons that
 * wait for mpirun to write their output are not late. */
static uint64_t drain_limit_check(job *self, uint64_t now)
{
    if (!self->drain_limit_ns)
        return 0;
    if (!io_has_room(self->io))
        self->drain_limit_ns = now + DRAIN_LIMIT_NS;
    if (now < self->drain_limit_ns)
        return self->drain_limit_ns;
    self->drain_limit_ns = 0;
    remote_nodes_give_up(self->remote_nodes);
    return 0;
}

void job_kill(job *self)
{
    job_limit_drain(self);
    if (self->phase != JOB_DRAINS)
        self->phase = JOB_KILLED;
    self->deadline_ns = 0;
    node_kill(&self->node);
    if (self->remote_nodes)
        remote_nodes_send(self->remote_nodes, CTRL_KILL);
}

static const app *part_of(const job *self, uint32_t rank)
{
    const app *part = self->opts->apps;

    while (rank >= part->first + part->count)
        part++;
    return part;
}

/* The program's path, or its name if it was looked up on another host. */
static const char *program_of(const app *part)
{
    return part->path ? part->path : part->argv[0];
}

/* " on host b"; empty if all ranks are here. */
static const char *on_host(const job *self, uint32_t rank, char *text, size_t capacity)
{
    *text = '\0';
    if (self->remote_nodes)
        snprintf(text, capacity, " on host %s", self->map.nodes[self->map.node_of[rank]].name);
    return text;
}

static const char *host_of(const job *self, uint32_t rank)
{
    const map_node *node = &self->map.nodes[self->map.node_of[rank]];

    return node->is_here && !self->opts->allocation ? self->host : node->name;
}

void job_rank_refused(job *self, uint32_t rank, char what, int error)
{
    char where[300];
    const app *part = part_of(self, rank);

    if (self->phase == JOB_RUNS && !self->has_refused)
        report(0, "rank %u%s: cannot %s %s: %s", rank, on_host(self, rank, where, sizeof(where)),
                 what == 'd' ? "enter directory" : "execute", what == 'd' && part->wdir ? part->wdir : program_of(part), strerror(error));
    self->has_refused = true; /* other ranks would print the same */
}

static void failure_report(const job *self, const rank_end *end, int code, bool ends_all)
{
    char how[160];

    if (WIFSIGNALED(end->raw_status)) {
        int sig = WTERMSIG(end->raw_status);
        if (sig == self->last_sig) /* the user sent it */
            snprintf(how, sizeof(how), "was ended by SIG%s, which mpirun received",
                     sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
        else
            snprintf(how, sizeof(how), "was killed by signal %d (SIG%s: %s%s)%s", sig, sigabbrev_np(sig) ? sigabbrev_np(sig) : "?",
                     strsignal(sig),
                     sig == SIGTERM && self->opts->allocation ? "; was the job cancelled, or has it exceeded its time limit?" : "",
                     WCOREDUMP(end->raw_status) ? " and dumped core" : "");
    } else if (end->state == WEFT_RANK_ABORT) {
        snprintf(how, sizeof(how), "ended the job with exit code %d (MPI_Abort, or an MPI error that is fatal)", code);
    } else if (end->state == WEFT_RANK_INIT) {
        snprintf(how, sizeof(how), "ended with exit code %d without MPI_Finalize%s", WEXITSTATUS(end->raw_status),
                 end->was_in_pmix ? " (or PMIx_Finalize)" : ", or with a session still open");
    } else {
        snprintf(how, sizeof(how), "ended with exit code %d", code);
    }
    const char *others = !ends_all || !self->live ? "" : self->opts->recovers && end->state != WEFT_RANK_ABORT
                       ? "; the other ranks go on (--enable-recovery)" : "; the other ranks are ended";
    report(code, "rank %u on host %s (%s, process %ld) %s%s", end->rank, host_of(self, end->rank),
             program_of(part_of(self, end->rank)), (long)end->pid, how, others);
}

/* The job goes on without the rank. False: too many have died. */
static bool goes_on(job *self, const rank_end *end, int code)
{
    if (!self->opts->recovers || end->state == WEFT_RANK_ABORT || end->is_refused || self->deaths++ == WEFT_SEGMENT_DEATHS_MAX)
        return false;
    node_tell_death(&self->node, end->rank);
    if (self->remote_nodes)
        remote_nodes_death(self->remote_nodes, end->rank);
    if (!self->code)
        self->code = code;
    return true;
}

/* Only the first failure is reported and sets the code: later ones are its consequence. With --enable-recovery each death is reported. */
void job_rank_ended(job *self, const rank_end *end)
{
    int code = WIFSIGNALED(end->raw_status) ? 128 + WTERMSIG(end->raw_status) : WEXITSTATUS(end->raw_status);
    bool is_failure = code != 0 || end->state == WEFT_RANK_INIT || end->state == WEFT_RANK_ABORT;
    /* a finalized rank is not needed by its peers, which may finish by themselves */
    bool ends_all = end->state != WEFT_RANK_FINAL || WIFSIGNALED(end->raw_status);

    self->live--;
    if (end->state == WEFT_RANK_INIT && code == 0)
        code = 1;
    if (!is_failure || self->phase != JOB_RUNS)
        return;
    if (!end->is_refused && (!self->code || self->opts->recovers)) {
        io_flush(self->io);
        failure_report(self, end, code, ends_all);
    }
    if (ends_all && !goes_on(self, end, code))
        job_end(self, code);
    else if (!self->code)
        self->code = code;
}

void job_daemon_signaled(job *self, const char *host, int sig)
{
    if (self->phase == JOB_RUNS || self->phase == JOB_LAUNCHES)
        report(0, "the daemon on host %s received SIG%s%s; the job is ended", host, sigabbrev_np(sig) ? sigabbrev_np(sig) : "?",
                 self->opts->allocation ? " (was the job cancelled, or has it exceeded its time limit?)" : "");
    job_end(self, 128 + (sig & 127));
}

void job_aborted(job *self, uint32_t rank, int code, const char *call, const char *text)
{
    io_flush(self->io);
    if (self->phase == JOB_RUNS)
        report(code, "rank %u on host %s called %s with exit code %d%s%s; the other ranks are ended", rank, host_of(self, rank),
                 call, code, text && *text ? ": " : "", text ? text : "");
    job_end(self, code & 0xff || !code ? code & 0xff : 1);
}

static void drain(job *self)
{
    bool was_ended = self->phase != JOB_RUNS;

    self->phase = JOB_DRAINS;
    self->deadline_ns = 0;
    if (was_ended)
        job_limit_drain(self);
    node_drain(&self->node, was_ended);
    if (self->remote_nodes)
        remote_nodes_drain(self->remote_nodes, was_ended, self->code != 0);
}

void job_reap(job *self)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != self->guard.pid) {
            if (!node_reaped(&self->node, pid, status) && self->remote_nodes)
                remote_nodes_reaped(self->remote_nodes, pid, status);
        } else if (guard_restart(&self->guard)) {
            report(1, "the guardian process was killed and cannot be started again: %s", strerror(errno));
        }
    }
    if (self->live == 0 && self->phase != JOB_DRAINS && self->phase != JOB_LAUNCHES)
        drain(self);
}

bool job_is_over(job *self)
{
    return self->phase == JOB_DRAINS && (!self->node.count || node_is_over(&self->node)) &&
           (!self->remote_nodes || (remote_nodes_are_over(self->remote_nodes) && io_is_drained(self->io)));
}

uint64_t job_deadlines(job *self)
{
    uint64_t now = weft_clock_ns();

    if (self->timeout_ns && now >= self->timeout_ns && self->phase == JOB_DRAINS) {
        self->timeout_ns = 0;
        job_limit_drain(self);
    } else if (self->timeout_ns && now >= self->timeout_ns) {
        self->timeout_ns = 0;
        report(124, "the job is ended: it has not finished within %g s (--timeout or MPIEXEC_TIMEOUT)", self->opts->timeout_s);
        wait_report_print(&self->wait_report, &self->node);
        if (self->remote_nodes)
            remote_nodes_send(self->remote_nodes, CTRL_WAIT_REPORT);
        job_end(self, 124);
    }
    if (self->phase == JOB_ENDING && now >= self->deadline_ns)
        job_kill(self);
    uint64_t next = node_deadlines(&self->node);
    if (self->timeout_ns)
        next = weft_clock_earlier(next, wait_report_sample(&self->wait_report, &self->node));
    next = weft_clock_earlier(next, pmix_head_deadlines(self->pmix_head));
    if (self->remote_nodes) {
        next = weft_clock_earlier(next, drain_limit_check(self, now));
        /* at most one second: modex_node_progress */
        next = weft_clock_earlier(next, weft_clock_earlier(remote_nodes_deadlines(self->remote_nodes), now + 1000000000u));
    }
    if (self->phase == JOB_DRAINS)
        return next;
    return weft_clock_earlier(self->phase == JOB_ENDING ? self->deadline_ns : 0, weft_clock_earlier(self->timeout_ns, next));
}

int job_close(job *self)
{
    wait_report_close(self->wait_report);
    remote_nodes_close(self->remote_nodes);
    node_close(&self->node, self->code != 0);
    pmix_head_close(self->pmix_head);
    guard_stop(&self->guard);
    io_now = NULL;
    io_close(self->io);
    map_free(&self->map);
    return self->code;
}
