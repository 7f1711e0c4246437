/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_stub: replaces the PMIx server in an mpirun configured without PMIx.
 */
#include "tools/mpirun/pmix_srv.h"

#include <stddef.h>

int pmix_host_open(const options *opts, const char *job, const map *map, uint32_t node, const char *host, guard *guardian,
                   pmix_host **self)
{
    (void)opts, (void)job, (void)map, (void)node, (void)host, (void)guardian;
    *self = NULL;
    return opts->pmix == PMIX_MODE_ALWAYS ? complain(2, "--pmix always: this mpirun was configured with --disable-pmix") : 2;
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

bool pmix_host_next(pmix_host *self, pmix_msg *what)
{
    (void)self, (void)what;
    return false;
}

bool pmix_host_take(pmix_host *self, const pmix_msg *what, pmix_msg *answer)
{
    (void)self;
    refbuf_release(what->body);
    *answer = (pmix_msg){.kind = DMODEX_RESP, .ticket = what->ticket, .status = PMIX_MSG_NONE};
    return what->kind == DMODEX_REQ;
}

bool pmix_host_gone(pmix_host *self, uint32_t rank)
{
    (void)self, (void)rank;
    return false;
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
