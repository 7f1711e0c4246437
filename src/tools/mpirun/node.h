/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node: what one machine does for a job: its segment, its ranks from fork to the last of their leftovers, their output, its PMIx
 * server. It decides nothing about the job: how a rank ended is told to its owner, and the owner says when to signal, end or drain. The
 * only room that forks ranks.
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
#include "tools/mpirun/options.h"
#include "tools/mpirun/pmi_server.h"
#include "tools/mpirun/session.h"

struct io;
struct pmix_host;

/* How a rank ended, as its node saw it. */
typedef struct rank_end {
    uint32_t rank;
    int32_t raw_status; /* waitpid's */
    uint32_t state;     /* its page's, before the node marked it */
    int64_t pid;
    bool is_refused;    /* there were words of `refused` just before */
    bool spoke_pmix;    /* it was in the middle of it: `state` is that of a rank that has not finalized */
} rank_end;

/* Whom a node tells. */
typedef struct node_owner {
    void (*ended)(void *owner, const rank_end *end);
    /* A child could not exec: 'x' exec, 'd' working directory. */
    void (*refused)(void *owner, uint32_t rank, char what, int error);
    void *owner;
} node_owner;

typedef struct node_rank {
    uint32_t rank; /* in the job */
    pid_t pid;
    pid_t group;   /* which it leads; 0: that is empty */
    bool is_gone;
    int raw_status;
} node_rank;

typedef struct node {
    const options *opts;
    const char *name, *host; /* of the job, and ours; they stay the owner's */
    char mark[270];          /* "WEFT_BOOT=...:<job>" ends so in every rank's environment */
    node_owner up;
    modex_node_callbacks modex_node_callbacks;
    pmi_callbacks pmi_up;
    const map *map;        /* of the job, and which of its nodes we are */
    uint32_t index;
    weft_segment segment;
    node_rank *ranks;      /* [count] by local index, in the order of their ranks */
    uint32_t count, started, live;
    bool is_ending;        /* the ranks are being ended: how one ends is no news to the others */
    bool is_draining;      /* all ranks of the job are gone: leftovers and output are waited for */
    uint64_t deadline_ns;  /* of the draining */
    int errors[2];         /* pipe: a child that could not exec tells why */
    guard *guard;          /* the owner's */
    struct io *io;         /* the owner's */
    binding binding;
    session session;       /* open while ranks are started, where they share one */
    modex_node modex_node;
    struct pmix_host *pmix; /* NULL: none */
    pmi_server *pmi;        /* NULL: no program may want it */
} node;

/* Finds the programs, makes the segment and decides who is bound to what. opts, name, host, up, modex_node_callbacks, map, index, guard and io are
 * set. 0 or an exit code, said by complain. */
int node_open(node *self, options *opts);
/* Starts a PMIx server if the ranks may want one; the guardian runs. 0 or an exit code, said. */
int node_serve(node *self);
/* Starts all ranks. 0 or an exit code; ranks that were started until then are the caller's to end. */
int node_start(node *self);
/* Takes in the end of a process that waitpid told. False: it is none of ours (an orphan of a rank, or somebody else's child). */
bool node_reaped(node *self, pid_t pid, int status);
/* Sends a signal to every rank's process group. */
void node_signal(node *self, int sig);
/* Ends the ranks: SIGTERM. */
void node_end(node *self);
/* SIGKILL; while draining it also takes the patience away. */
void node_kill(node *self);
/* No rank of the job lives any more: leftovers and output may come to an end; those of a failed job are ended. */
void node_drain(node *self, bool was_ended);
/* Deadlines that have passed. Returns the next one (weft_clock_ns), or 0. */
uint64_t node_deadlines(node *self);
/* Whether nothing is left: no rank, no process of their groups, no output on its way. */
bool node_is_over(node *self);
/* Frees all; of a failed job also what left its process group. */
void node_close(node *self, bool has_failed);

#endif
