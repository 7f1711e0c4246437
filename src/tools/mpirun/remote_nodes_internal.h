/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_nodes_internal: state of remote_nodes.c and remote_frames.c. See remote_nodes.h.
 */
#ifndef WEFT_MPIRUN_REMOTE_NODES_INTERNAL_H
#define WEFT_MPIRUN_REMOTE_NODES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/children.h"
#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/modex_head.h"
#include "tools/mpirun/pmix_channel.h"
#include "tools/mpirun/remote_nodes.h"
#include "tools/mpirun/srun_launch.h"
#include "tools/mpirun/tree.h"

typedef struct remote_node {
    uint32_t node;
    uint32_t below;             /* number of following remote_nodes below it in the tree (tree.h) */
    child_daemon *child_daemon; /* its own connection, or the child that leads to it */
    ctrl_conn conn;             /* sends to it, through child_daemon */
    pmix_channel channel;       /* messages of the PMIx and PMI servers */
    uint32_t live;              /* ranks there that have not been reported as ended */
    uint64_t uncredited;        /* bytes of output received and not yet credited */
    bool is_ready, is_draining, is_over;
    bool has_reported_signal; /* it received a terminating signal, which was reported */
    bool has_sent_closed[2];  /* stdout, stderr: was sent CTRL_CLOSED */
} remote_node;

struct remote_nodes {
    job *job;
    remote_nodes_callbacks callbacks;
    children children;
    tree tree;
    remote_node *items; /* in the order of the row of tree.h */
    uint32_t count;
    uint64_t deadline_ns; /* limit for all to be ready; 0: they are */
    modex_head modex_head;
    srun_launch srun_launch;      /* used if one srun starts all daemons */
    bool has_lost;  /* a daemon ended without DONE */
};

static inline const char *name_of(const remote_nodes *self, const remote_node *one)
{
    return self->job->map.nodes[one->node].name;
}

static inline remote_node *remote_node_of(remote_nodes *self, uint32_t node)
{
    return node == self->tree.head ? NULL : &self->items[tree_position(&self->tree, node)];
}

static inline bool is_open(const remote_node *one)
{
    return !one->is_over && one->child_daemon->conn.fd >= 0;
}

/* Marks a daemon and those below it as over; ranks whose end was not reported are counted as ended. */
void remote_node_over(remote_nodes *self, remote_node *one);
/* A daemon ended without DONE: its ranks are lost, and the daemons below it too. */
void remote_node_lost(remote_nodes *self, remote_node *one, const char *why);
/* A daemon that never became ready. */
void remote_node_failed(remote_nodes *self, remote_node *one, const char *why, const char *output);
/* Handles a frame of a node's daemon (remote_frames.c). */
void remote_node_handle(remote_nodes *self, remote_node *one, const ctrl_frame *frame);

#endif
