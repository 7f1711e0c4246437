/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_server: PMI-1 server of a node's ranks, for programs of MPICH and its derivatives, over an inherited socket (PMI_FD).
 * Keys are visible to all ranks after a barrier, which on several hosts is a PMIX_COLL_PMI at the head (pmix_head.h). One thread, mpirun's.
 */
#ifndef WEFT_MPIRUN_PMI_SERVER_H
#define WEFT_MPIRUN_PMI_SERVER_H

#include "tools/mpirun/environ.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/pmix_channel.h"

typedef struct pmi_server pmi_server;

enum pmi_state { PMI_NONE, PMI_BEGUN, PMI_FINALIZED };

typedef struct pmi_callbacks {
    void (*pmix_msg)(void *owner, const pmix_msg *what); /* sends a message to the head; takes over its body */
    void (*aborted)(void *owner, uint32_t rank, int code);
    void *owner;
} pmi_callbacks;

/* NULL: out of memory or descriptors. */
pmi_server *pmi_server_open(const options *opts, const char *job, const map *map, uint32_t node, const pmi_callbacks *up);
/* Before a rank's fork: creates its connection and sets its PMI_ variables. 0 or -1. */
int pmi_server_environ(pmi_server *self, uint32_t rank, uint32_t app, env_list *env);
/* In the child, and in the parent after the fork. */
void pmi_server_child(const pmi_server *self);
void pmi_server_started(pmi_server *self);
/* Descriptor that is readable when pmi_server_progress has something to do. */
int pmi_server_fd(const pmi_server *self);
void pmi_server_progress(pmi_server *self);
/* Handles a message of the head. False: it is not for this server; else it takes over the body. */
bool pmi_server_handle(pmi_server *self, const pmix_msg *what);
/* A rank has ended: handles what it sent before. Returns its state. */
enum pmi_state pmi_server_rank_ended(pmi_server *self, uint32_t rank);
void pmi_server_close(pmi_server *self);

#endif
