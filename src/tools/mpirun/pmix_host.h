/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_host: the PMIx server for programs that speak PMIx. libpmix is loaded when such a program is started, never before.
 */
#ifndef WEFT_MPIRUN_PMIX_HOST_H
#define WEFT_MPIRUN_PMIX_HOST_H

#include "tools/mpirun/environ.h"
#include "tools/mpirun/guard.h"

typedef struct pmix_host pmix_host;

/* Starts the server and tells it of the job. The session directory is told to the guardian before it is made. 0, or an exit code
 * after a line that says why. */
int pmix_host_open(const options *opts, const char *job, const char *host, guard *guardian, pmix_host **self);
/* Sets a rank's PMIX_ variables. 0 or -1. */
int pmix_host_environ(pmix_host *self, uint32_t rank, env_list *env);
/* A client called PMIx_Abort: true once, with its code and text (cut at 255). */
int pmix_host_aborted(pmix_host *self, int *rank, int *code, char *text);
/* A descriptor that becomes readable when pmix_host_aborted has news. */
int pmix_host_fd(const pmix_host *self);
void pmix_host_close(pmix_host *self);

#endif
