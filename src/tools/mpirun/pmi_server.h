/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_server: PMI-1 for a node's ranks, for programs of MPICH and its kin, which ask a launcher over an inherited socket (PMI_FD). Keys are there
 * for all after a barrier; on several hosts it is a gather of the head (pmix_head.h). One thread, mpirun's.
 */
#ifndef WEFT_MPIRUN_PMI_SERVER_H
#define WEFT_MPIRUN_PMI_SERVER_H

#include "tools/mpirun/environ.h"
#include "tools/mpirun/haul.h"
#include "tools/mpirun/map.h"

typedef struct pmi_server pmi_server;

enum pmi_state { PMI_NONE, PMI_BEGUN, PMI_FINALIZED };

typedef struct pmi_callbacks {
    void (*pmix_msg)(void *owner, const pmix_msg *what); /* for the head; takes its body over */
    void (*aborted)(void *owner, uint32_t rank, int code);
    void *owner;
} pmi_callbacks;

/* NULL: no memory or descriptors. */
pmi_server *pmi_server_open(const options *opts, const char *job, const map *map, uint32_t node, const pmi_callbacks *up);
/* Before a rank's fork: makes its connection and sets its PMI_ variables. 0 or -1. */
int pmi_server_environ(pmi_server *self, uint32_t rank, uint32_t app, env_list *env);
/* In the child, and in the parent after the fork. */
void pmi_server_child(const pmi_server *self);
void pmi_server_started(pmi_server *self);
/* Readable when pmi_server_progress has something to do. */
int pmi_server_fd(const pmi_server *self);
void pmi_server_progress(pmi_server *self);
/* A note of the head: whether it was for this server, which then has taken its body over. */
bool pmi_server_take(pmi_server *self, const pmix_msg *what);
/* A rank has ended: what it has said until then is heard; how far it was. */
enum pmi_state pmi_server_gone(pmi_server *self, uint32_t rank);
void pmi_server_close(pmi_server *self);

#endif
