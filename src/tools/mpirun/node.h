/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node: runs one machine's part of a job: segment, ranks from fork to reaping, remaining processes, output, PMIx and PMI servers.
 * It makes no decision about the job: it reports how ranks end, and the owner (job or daemon) decides when to signal, end or drain. Only
 * this file forks ranks. One thread.
 */
#ifndef WEFT_MPIRUN_NODE_H
#define WEFT_MPIRUN_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mem/segment.h"
#include "tools/mpirun/bind.h"
#include "tools/mpirun/environ.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/modex_node.h"
#include "tools/mpirun/node_rank.h"
#include "tools/mpirun/options.h"
#include "tools/mpirun/pmi_server.h"
#include "tools/mpirun/session.h"

struct io;
struct pmix_srv;

/* How a rank ended. */
typedef struct rank_end {
    uint32_t rank;
    int32_t raw_status; /* status of waitpid */
    uint32_t state;     /* state in its rank page before the node marked it as ended */
    int64_t pid;
    bool is_refused; /* node_callbacks.refused was called for it just before */
    bool was_in_pmix; /* it ended between PMIx_Init and PMIx_Finalize; `state` is that of a rank that has not finalized */
} rank_end;

/* Callbacks to the owner. */
typedef struct node_callbacks {
    void (*ended)(void *owner, const rank_end *end);
    /* The child could not exec ('x') or enter its working directory ('d'). */
    void (*refused)(void *owner, uint32_t rank, char what, int error);
    void *owner;
} node_callbacks;

typedef struct node {
    const options *opts;
    const char *name, *host; /* job name and host name; the owner's memory */
    char mark[270];          /* suffix of "WEFT_BOOT=...:<job>" in every rank's environment */
    node_callbacks up;
    modex_node_callbacks modex_node_callbacks;
    pmi_callbacks pmi_up;
    const map *map;        /* map of the job, and index of this node in it */
    uint32_t index;
    weft_segment segment;
    node_rank *ranks;      /* [count] by local index, in rising order of ranks */
    uint32_t count, started, live;
    bool is_ending;        /* the ranks are being ended: a rank's end is a consequence, not a failure */
    bool is_draining;      /* no rank of the job lives: remaining processes and output are awaited */
    uint64_t deadline_ns;  /* end of draining (weft_clock_ns) */
    int errors[2];         /* pipe: exec_error of a child that could not exec */
    guard *guard;          /* the owner's */
    struct io *io;         /* the owner's */
    binding binding;
    session session;       /* open while ranks are started, if they share a session */
    modex_node modex_node;
    struct pmix_srv *pmix; /* NULL: no PMIx server */
    pmi_server *pmi;       /* NULL: no program needs it */
} node;

/* Finds the programs, creates the segment and binds ranks. opts, name, host, up, modex_node_callbacks, map, index, guard and io must be
 * set. 0, or an exit code after a message. */
int node_open(node *self, options *opts);
/* Starts the PMIx and PMI servers that the ranks may need. The guardian must run. 0, or an exit code after a message. */
int node_serve(node *self);
/* Starts all ranks. 0, or an exit code after a message; the caller ends the ranks started so far. */
int node_start(node *self);
/* Handles a reaped process. False: it was not a rank (an orphan of a rank, or another child). */
bool node_reaped(node *self, pid_t pid, int status);
/* A rank of the job has died, and the job goes on: tells the ranks here. WEFT_SEGMENT_DEATHS_MAX times at most. */
void node_tell_death(node *self, uint32_t rank);
/* Sends a signal to every rank's process group. */
void node_signal(node *self, int sig);
/* Ends the ranks: sends SIGTERM. */
void node_end(node *self);
/* Sends SIGKILL; while draining, remaining output has one more second. */
void node_kill(node *self);
/* No rank of the job lives: remaining processes and output may finish. was_ended: the job was ended, so remaining processes are killed
 * now, not after 1 s. */
void node_drain(node *self, bool was_ended);
/* Handles expired deadlines. Returns the next one (weft_clock_ns), or 0. */
uint64_t node_deadlines(node *self);
/* True if no rank, no process of their groups and no pending output is left. */
bool node_is_over(node *self);
/* Frees everything; has_failed: also kills processes that left their rank's process group. */
void node_close(node *self, bool has_failed);

#endif
