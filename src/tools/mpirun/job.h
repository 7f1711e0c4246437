/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: the ranks: started, watched, ended. The only room that forks ranks and that decides the exit code.
 */
#ifndef WEFT_MPIRUN_JOB_H
#define WEFT_MPIRUN_JOB_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mem/segment.h"
#include "tools/mpirun/bind.h"
#include "tools/mpirun/environ.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/options.h"

struct io;
struct pmix_host;

enum job_phase {
    JOB_RUNS,    /* ranks live, nothing is wrong */
    JOB_ENDING,  /* SIGTERM was sent; SIGKILL follows at `deadline_ns` */
    JOB_KILLED,  /* SIGKILL was sent */
    JOB_DRAINS,  /* all ranks are gone; their leftovers and their output are waited for */
};

typedef struct rank {
    pid_t pid;
    bool is_gone;
    int raw_status;
} rank;

typedef struct job {
    const options *opts;
    char name[256], host[256], mark[270];
    weft_segment segment;
    rank *ranks;
    pid_t *groups;         /* pid of each started rank, which leads a process group of its own; 0: that is empty */
    uint32_t count, started, live;
    enum job_phase phase;
    uint64_t deadline_ns;  /* of the phase; 0: none */
    uint64_t timeout_ns;   /* of the whole job; 0: none */
    int code;              /* exit code so far */
    int told;              /* the last signal that was forwarded and ends programs; 0: none */
    int told_count;
    int errors[2];         /* pipe: a child that could not exec tells why */
    guard guard;
    binding binding;
    struct io *io;
    struct pmix_host *pmix; /* NULL: none */
} job;

/* Names the job, makes its segment and guardian. 0 or an exit code, said on stderr. */
int job_open(job *self, const options *opts);
/* Starts all ranks. 0 or an exit code; ranks that were started until then are the caller's to end. */
int job_start(job *self);
/* Takes in what waitpid knows. */
void job_reap(job *self);
/* Sends a signal to every rank's process group. */
void job_signal(job *self, int sig);
/* Ends the ranks: SIGTERM now, SIGKILL after the grace. */
void job_end(job *self, int code);
void job_kill(job *self);
/* Deadlines that have passed. Returns the next one (weft_clock_ns), or 0. */
uint64_t job_deadlines(job *self);
/* Whether nothing is left: no rank, no process of their groups, no output on its way. */
bool job_is_over(job *self);
/* Frees all, stops the guardian. The exit code of mpirun. */
int job_close(job *self);

#endif
