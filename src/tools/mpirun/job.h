/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: what the head decides: when the job is over, who ends it, and the exit code. What a machine does for it is node's; this room
 * forks nothing.
 */
#ifndef WEFT_MPIRUN_JOB_H
#define WEFT_MPIRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/guard.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/node.h"
#include "tools/mpirun/options.h"

struct pmix_head;
struct io;
struct remote_nodes;
struct waits;

enum job_phase {
    JOB_RUNS,    /* ranks live, nothing is wrong */
    JOB_LAUNCHES, /* daemons are on their way to other hosts; no rank has been started */
    JOB_ENDING,  /* SIGTERM was sent; SIGKILL follows at `deadline_ns` */
    JOB_KILLED,  /* SIGKILL was sent */
    JOB_DRAINS,  /* all ranks are gone; their leftovers and their output are waited for */
};

typedef struct job {
    options *opts;
    map map;
    char name[256], host[256]; /* of the job, of this machine */
    char mark[270];        /* as node's */
    uint32_t live;         /* ranks that were started and have not ended */
    enum job_phase phase;
    uint64_t deadline_ns;  /* of the phase; 0: none */
    uint64_t timeout_ns;   /* of the whole job; 0: none */
    uint64_t patience_ns;  /* by when daemons have come to their end; 0: they may take their time */
    int code;              /* exit code so far */
    bool has_refused;      /* that a rank could not be started was said */
    int told;              /* the last signal that was forwarded and ends programs; 0: none */
    int told_count;
    guard guard;
    struct io *io;
    struct waits *waits;   /* what this machine's ranks do, while there is a time limit; NULL: not looked at yet */
    node node;             /* what this machine does itself; count 0: nothing */
    struct remote_nodes *remote_nodes;   /* to other hosts; NULL: all is here */
    struct pmix_head *pmix_head;       /* between the nodes' PMIx servers */
} job;

/* Names the job, places its ranks, opens what is this machine's part, starts the guardian and the way to other hosts. 0 or an exit
 * code, said on stderr. */
int job_open(job *self, options *opts);
/* Starts all ranks, now or when other hosts are ready. What goes wrong ends the job. */
void job_start(job *self);
/* Takes in what our own node's PMIx server has for us. */
void job_serve(job *self);
/* Of remote_nodes: what daemons tell. */
void job_rank_ended(job *self, const rank_end *end);
void job_rank_refused(job *self, uint32_t rank, char what, int error);
/* A resource manager, or somebody, wants the job to end there. */
void job_told(job *self, const char *host, int sig);
/* `call`: what the rank called, MPI_Abort or PMIx_Abort. */
void job_aborted(job *self, uint32_t rank, int code, const char *call, const char *text);
/* Takes in what waitpid knows. */
void job_reap(job *self);
/* Sends a signal to every rank's process group. */
void job_signal(job *self, int sig);
/* Ends the ranks: SIGTERM now, SIGKILL after the grace. */
void job_end(job *self, int code);
void job_kill(job *self);
/* Daemons have been told to come to their end: who does not is given up after a while. */
void job_hurry(job *self);
/* Deadlines that have passed. Returns the next one (weft_clock_ns), or 0. */
uint64_t job_deadlines(job *self);
/* Whether nothing is left: no rank, no process of their groups, no output on its way. */
bool job_is_over(job *self);
/* Frees all, stops the guardian. The exit code of mpirun. */
int job_close(job *self);

#endif
