/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_from_group: communicators made of groups alone (MPI 5.0 7.4.2, 7.6.2), for sessions. Called by the generated entries, which hold
 * the lock of worker 0. The members exchange messages on a channel of the instance (weft_mpi_world.service), which all processes of the job
 * have; the string is hashed into their tag.
 */
#include <mpi.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/comm_info.h"
#include "mpi/comm_make.h"
#include "mpi/errhandler.h"
#include "mpi/errors.h"
#include "mpi/intercomm.h"

/* Tag for the messages of a call: a hash of the string, 30 bits. Two concurrent calls share a tag with a probability of 2^-30. */
static int tag_of(const char *stringtag)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = stringtag; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return (int)(hash & 0x3fffffff);
}

static int check_string(const char *stringtag)
{
    if (strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) < MPI_MAX_STRINGTAG_LEN)
        return 0;
    return weft_fail(WEFT_E_ARG, "argument stringtag is longer than MPI_MAX_STRINGTAG_LEN - 1 (%d)", MPI_MAX_STRINGTAG_LEN - 1);
}

/* Are all members processes of this job? */
static int check_members(const weft_group *group)
{
    const weft_group *all = weft_mpi_now()->comm_world->group;
    for (uint32_t i = 0; i < group->size; i++)
        if (weft_group_rank_of(all, weft_group_process(group, i)) < 0)
            return weft_fail(WEFT_E_GROUP, "rank %u of the group is a process of another job: such groups are not supported yet", i);
    return 0;
}

static int own_rank(const weft_group *group)
{
    const weft_comm *self = weft_mpi_now()->comm_self;
    return weft_group_rank_of(group, weft_group_process(self->group, 0));
}

/* Makes the communicator; all members of the group call. */
static int make(weft_group *group, const char *stringtag, weft_comm **made)
{
    weft_mpi_world *mpi = weft_mpi_now();
    weft_exchange exchange;
    weft_comm_members members;
    int rank = own_rank(group), rc = check_string(stringtag);
    *made = NULL;
    if (!rc && rank < 0)
        rc = weft_fail(WEFT_E_GROUP, "this process is no member of the group");
    if (!rc)
        rc = check_members(group);
    if (!rc) {
        exchange = weft_exchange_by_messages(mpi->comm_world, mpi->service, group, (uint32_t)rank, tag_of(stringtag));
        members = (weft_comm_members){.exchange = &exchange, .size = group->size, .rank = (uint32_t)rank, .group = group};
        rc = weft_comm_make(&members, 0, made);
    }
    return rc;
}

int weft_mpi_comm_create_from_group(weft_group *group, const char *stringtag, weft_info *info, MPI_Errhandler errhandler,
                                    MPI_Comm *newcomm)
{
    weft_comm *made = NULL;
    int rc = 0;
    *newcomm = MPI_COMM_NULL;
    if (!weft_errhandler_fits(errhandler, WEFT_TRAITS_COMM))
        return weft_fail(WEFT_E_ERRHANDLER, "MPI_Comm_create_from_group: argument errhandler is no error handler for communicators");
    if (group->size)
        rc = make(group, stringtag, &made);
    if (made) {
        weft_comm_set_hints(made, info);
        weft_errhandler_set(&made->traits, errhandler);
        *newcomm = made;
    }
    return rc;
}

int weft_mpi_intercomm_create_from_groups(weft_group *local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                          const char *stringtag, weft_info *info, MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
    const weft_group *remote = weft_group_of(remote_group); /* significant at the leader only */
    weft_mpi_world *mpi = weft_mpi_now();
    weft_comm *local = NULL, *made = NULL;
    weft_bridge bridge;
    bool is_leader;
    int rc;
    *newintercomm = MPI_COMM_NULL;
    if (!weft_errhandler_fits(errhandler, WEFT_TRAITS_COMM))
        return weft_fail(WEFT_E_ERRHANDLER, "MPI_Intercomm_create_from_groups: argument errhandler is no error handler for communicators");
    if (!local_group->size || (remote && !remote->size))
        return 0;
    if (local_leader < 0 || (uint32_t)local_leader >= local_group->size)
        return weft_fail(WEFT_E_RANK, "MPI_Intercomm_create_from_groups: argument local_leader is %d: not a rank of local_group (0..%u)",
                         local_leader, local_group->size - 1);
    rc = make(local_group, stringtag, &local);
    if (rc)
        return rc;
    is_leader = local->rank == local_leader;
    bridge = (weft_bridge){.local = local, .chan = mpi->service, .leader = (uint32_t)local_leader,
                           .tag = weft_exchange_tag(tag_of(stringtag), true)};
    if (is_leader && (!remote || remote_leader < 0 || (uint32_t)remote_leader >= remote->size))
        rc = weft_fail(remote ? WEFT_E_RANK : WEFT_E_GROUP, "MPI_Intercomm_create_from_groups: remote_leader %d is no rank of remote_group",
                       remote_leader);
    else if (is_leader)
        bridge.remote_leader = weft_group_process(remote, (uint32_t)remote_leader).rank;
    rc = weft_intercomm_make(bridge, rc, &made);
    weft_comm_drop(local); /* the intercommunicator has one of its own */
    if (made) {
        weft_comm_set_hints(made, info);
        weft_errhandler_set(&made->traits, errhandler);
        *newintercomm = made;
    }
    return rc;
}
