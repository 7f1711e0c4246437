/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_srv: a node's PMIx server, for programs that speak PMIx. libpmix is loaded when such a program is started, never before. What
 * its clients want of other nodes goes as notes to the job's head (pmix_head.h), and comes back as notes.
 */
#ifndef WEFT_MPIRUN_PMIX_HOST_H
#define WEFT_MPIRUN_PMIX_HOST_H

#include "tools/mpirun/environ.h"
#include "tools/mpirun/guard.h"
#include "tools/mpirun/haul.h"
#include "tools/mpirun/map.h"

typedef struct pmix_host pmix_host;

/* Starts the server of one of the map's nodes and tells it of the job; `host` is this machine's name. The session directory is told to the
 * guardian before it is made. 0, or an exit code after a line that says why. */
int pmix_host_open(const options *opts, const char *job, const map *map, uint32_t node, const char *host, guard *guardian,
                   pmix_host **self);
/* Sets a rank's PMIX_ variables. 0 or -1. */
int pmix_host_environ(pmix_host *self, uint32_t rank, env_list *env);
/* A descriptor that becomes readable when one of the next two has news. */
int pmix_host_fd(const pmix_host *self);
/* A client called PMIx_Abort: true once, with its code and text (cut at 255). */
int pmix_host_aborted(pmix_host *self, int *rank, int *code, char *text);
/* The next note for the head, whose body is the caller's then; false: none. Says on the way what is to be said. */
bool pmix_host_next(pmix_host *self, pmix_msg *what);
/* A note of the head; takes its body over. Without a server (NULL) true where the head waits for `answer`, which is then set. */
bool pmix_host_take(pmix_host *self, const pmix_msg *what, pmix_msg *answer);
/* A rank of this node has ended. True: it had begun to speak PMIx, and had not said that it was done. */
bool pmix_host_gone(pmix_host *self, uint32_t rank);
void pmix_host_close(pmix_host *self);

#endif
