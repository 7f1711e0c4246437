/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main: mpirun and mpiexec. Starts the ranks of a job on this machine and, by daemons, on others; waits for them and cleans up.
 * One loop on one thread; every event is a descriptor or a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/mpirun/allocation.h"
#include "tools/mpirun/daemon.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/job.h"
#include "tools/mpirun/remote_nodes.h"
#include "tools/mpirun/contact.h"
#include "tools/mpirun/options.h"
#include "tools/mpirun/pmi_server.h"
#include "tools/mpirun/pmix_srv.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/show_map.h"
#include "tools/mpirun/poll_sparse.h"
#include "tools/mpirun/signals.h"

/* Opens descriptors 0 to 2 if they are closed: a pipe must not get one of these numbers. */
static void descriptors_fill(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < 3);
    if (fd >= 3)
        close(fd);
}

static void signal_ends(job *job, int sig)
{
    if (job->phase == JOB_DRAINS) { /* only unread output is left */
        io_drop(job->io);
        job_limit_drain(job);
        return;
    }
    job->last_sig = sig;
    if (job->phase == JOB_LAUNCHES) { /* no rank exists yet */
        job_end(job, 128 + sig);
        return;
    }
    if (job->sig_count++ || job->phase != JOB_RUNS) {
        if (!job->code)
            job->code = 128 + sig;
        job_kill(job);
        return;
    }
    job_signal(job, sig);
}

static void on_signal(job *job, int sig)
{
    switch (sig) {
    case SIGCHLD:
        job_reap(job);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        signal_ends(job, sig);
        break;
    case SIGTSTP:
        job_signal(job, SIGTSTP);
        raise(SIGSTOP);
        break;
    default:
        job_signal(job, sig);
    }
}

/* Main loop, until nothing of the job is left. */
static void job_watch(job *job, int signals)
{
    struct pollfd *set = calloc(io_max(job->io) + 4 + (job->remote_nodes ? remote_nodes_max(job->remote_nodes) : 0), sizeof(*set));

    if (!set) {
        report(1, "out of memory");
        job_end(job, 1);
        return;
    }
    for (;;) {
        if (job->phase == JOB_LAUNCHES)
            job_start(job);
        job_reap(job);
        uint64_t next = job_deadlines(job), now = weft_clock_ns();
        if (job_is_over(job))
            break;
        uint32_t count = io_pollfds(job->io, set);
        set[count] = (struct pollfd){.fd = signals, .events = POLLIN};
        set[count + 1] = (struct pollfd){.fd = job->node.pmix ? pmix_srv_fd(job->node.pmix) : -1, .events = POLLIN};
        set[count + 2] = (struct pollfd){.fd = job->node.count ? job->node.modex_node.wakeup : -1, .events = POLLIN};
        set[count + 3] = (struct pollfd){.fd = job->node.pmi ? pmi_server_fd(job->node.pmi) : -1, .events = POLLIN};
        uint32_t remote = job->remote_nodes ? remote_nodes_pollfds(job->remote_nodes, set + count + 4) : 0;
        uint64_t wait_ms = next > now ? (next - now + 999999) / 1000000 : 0;
        int ready = poll_sparse_wait(set, count + 4 + remote, !next ? -1 : wait_ms > 60000 ? 60000 : (int)wait_ms);
        if (ready > 0)
            io_progress(job->io, set, count);
        for (int sig; (sig = signals_next());)
            on_signal(job, sig);
        job_serve(job);
        if (job->remote_nodes) {
            remote_nodes_progress(job->remote_nodes, set + count + 4, ready > 0 ? remote : 0);
            modex_node_progress(&job->node.modex_node);
        }
    }
    free(set);
}

static int job_run(options *opts, int signals)
{
    job job = {0};
    int rc = job_open(&job, opts);

    if (!rc && opts->is_verbose)
        show_map_print(opts, &job.map, job.host);
    if (!rc && job.node.count)
        rc = node_serve(&job.node);
    if (!rc) {
        if (opts->is_bind_reported)
            for (uint32_t i = 0; i < job.node.count; i++)
                bind_report(&job.node.binding, i, job.node.ranks[i].rank, job.host);
        job_start(&job);
        job_watch(&job, signals);
    } else {
        job.code = rc;
    }
    return job_close(&job);
}

int main(int argc, char **argv)
{
    options opts;

    descriptors_fill();
    if (argc == 2 && !strcmp(argv[1], DAEMON_OPTION))
        return daemon_main();
    int rc = options_parse(argc, argv, &opts);
    if (rc || !opts.apps)
        return rc;
    rc = allocation_apply(&opts);
    if (rc) {
        options_free(&opts);
        return rc;
    }
    int signals = signals_open();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    rc = signals < 0 ? report(1, "no descriptors left: %s", strerror(errno)) : job_run(&opts, signals);
    options_free(&opts);
    return rc;
}
