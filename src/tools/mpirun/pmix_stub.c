/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_stub: replaces the PMIx server in an mpirun configured without PMIx.
 */
#include "tools/mpirun/pmix_srv.h"
#include "tools/mpirun/report.h"

#include <stddef.h>

int pmix_srv_open(const options *opts, const char *job, const map *map, uint32_t node, const char *host, guard *guardian,
                   pmix_srv **self)
{
    (void)opts, (void)job, (void)map, (void)node, (void)host, (void)guardian;
    *self = NULL;
    return opts->pmix == PMIX_MODE_ALWAYS ? report(2, "--pmix always: this mpirun was configured with --disable-pmix") : 2;
}

int pmix_srv_environ(pmix_srv *self, uint32_t rank, env_list *env)
{
    (void)self, (void)rank, (void)env;
    return 0;
}

int pmix_srv_aborted(pmix_srv *self, int *rank, int *code, char *text)
{
    (void)self, (void)rank, (void)code, (void)text;
    return 0;
}

bool pmix_srv_next(pmix_srv *self, pmix_msg *what)
{
    (void)self, (void)what;
    return false;
}

bool pmix_srv_handle(pmix_srv *self, const pmix_msg *what, pmix_msg *answer)
{
    (void)self;
    refbuf_release(what->body);
    *answer = (pmix_msg){.kind = PMIX_MSG_DMODEX_RESP, .ticket = what->ticket, .status = PMIX_MSG_NOT_FOUND};
    return what->kind == PMIX_MSG_DMODEX_REQ;
}

bool pmix_srv_rank_ended(pmix_srv *self, uint32_t rank)
{
    (void)self, (void)rank;
    return false;
}

int pmix_srv_fd(const pmix_srv *self)
{
    (void)self;
    return -1;
}

void pmix_srv_close(pmix_srv *self)
{
    (void)self;
}
