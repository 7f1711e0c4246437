/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_none: stands for pmix_host in an mpirun that was configured without PMIx.
 */
#include "tools/mpirun/pmix_host.h"

#include <stddef.h>

int pmix_host_open(const options *opts, const char *job, const char *host, guard *guardian, pmix_host **self)
{
    (void)job, (void)host, (void)guardian;
    *self = NULL;
    return opts->pmix == PMIX_MODE_ALWAYS ? complain(2, "--pmix always: this mpirun was configured with --disable-pmix") : 0;
}

int pmix_host_environ(pmix_host *self, uint32_t rank, env_list *env)
{
    (void)self, (void)rank, (void)env;
    return 0;
}

int pmix_host_aborted(pmix_host *self, int *rank, int *code, char *text)
{
    (void)self, (void)rank, (void)code, (void)text;
    return 0;
}

int pmix_host_fd(const pmix_host *self)
{
    (void)self;
    return -1;
}

void pmix_host_close(pmix_host *self)
{
    (void)self;
}
