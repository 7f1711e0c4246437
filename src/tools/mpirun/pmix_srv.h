/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_srv: PMIx server of a node. libpmix is loaded only when a program that may need it is started.
 * Requests that concern other nodes go as messages to the head (pmix_head.h). All functions are called on mpirun's thread.
 */
#ifndef WEFT_MPIRUN_PMIX_SRV_H
#define WEFT_MPIRUN_PMIX_SRV_H

#include "tools/mpirun/environ.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/pmix_channel.h"

typedef struct pmix_srv pmix_srv;

/* Loads libpmix and starts the server of a node of the map; `host` is this machine's name. The session directory is registered with the
 * guardian before it is made. 0, or an exit code after a message. */
int pmix_srv_open(const options *opts, const char *job, const map *map, uint32_t node, const char *host, guard *guardian,
                   pmix_srv **self);
/* Sets a rank's PMIX_ variables in env. 0 or -1. */
int pmix_srv_environ(pmix_srv *self, uint32_t rank, env_list *env);
/* Descriptor that becomes readable when pmix_srv_aborted or pmix_srv_next has something. */
int pmix_srv_fd(const pmix_srv *self);
/* True, once, if a client called PMIx_Abort; with its rank, code and text (cut at 255 bytes). Resets the descriptor. */
int pmix_srv_aborted(pmix_srv *self, int *rank, int *code, char *text);
/* Returns the next message for the head, whose body the caller then owns; false: none. Prints the pending message for the user. */
bool pmix_srv_next(pmix_srv *self, pmix_msg *what);
/* Handles a message of the head; takes over its body. Without a server (self NULL): true if the head waits for a reply, set in *answer. */
bool pmix_srv_handle(pmix_srv *self, const pmix_msg *what, pmix_msg *answer);
/* A rank of this node has ended. True: it had called PMIx_Init and not PMIx_Finalize. */
bool pmix_srv_rank_ended(pmix_srv *self, uint32_t rank);
void pmix_srv_close(pmix_srv *self);

#endif
