/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_type: state of a job in the head. See job.h for the calls.
 */
#ifndef WEFT_MPIRUN_JOB_TYPE_H
#define WEFT_MPIRUN_JOB_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/guard.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/node.h"
#include "tools/mpirun/options.h"

struct pmix_head;
struct io;
struct remote_nodes;
struct wait_report;

enum job_phase {
    JOB_RUNS,     /* ranks live; no failure, no signal to end */
    JOB_LAUNCHES, /* daemons are being started on other hosts; no rank has been started */
    JOB_ENDING,   /* SIGTERM was sent; SIGKILL follows at `deadline_ns` */
    JOB_KILLED,   /* SIGKILL was sent */
    JOB_DRAINS,   /* no rank lives; remaining processes and output are awaited */
};

typedef struct job {
    options *opts;
    map map;
    char name[256], host[256];         /* name of the job; host name of this machine */
    char mark[270];                    /* see node.mark */
    uint32_t live;                     /* ranks started and not ended, on all hosts */
    enum job_phase phase;
    uint64_t deadline_ns;    /* end of the phase (weft_clock_ns); 0: none */
    uint64_t timeout_ns;     /* time limit of the job (weft_clock_ns); 0: none */
    uint64_t drain_limit_ns; /* time at which daemons that have not finished are given up; 0: no limit */
    int code;                /* exit code so far */
    uint32_t deaths;         /* of ranks without which the job goes on */
    bool has_refused;        /* an error message about a rank that could not start was printed */
    int last_sig;            /* last terminating signal forwarded to the ranks; 0: none */
    int sig_count;
    guard guard;
    struct io *io;
    struct wait_report *wait_report;   /* wait report of this machine's ranks, if the job has a time limit; NULL: none yet */
    node node;                         /* this machine's part of the job; count 0: no rank here */
    struct remote_nodes *remote_nodes; /* other hosts; NULL: all ranks are here */
    struct pmix_head *pmix_head;       /* serves the nodes' PMIx and PMI servers */
} job;

#endif
