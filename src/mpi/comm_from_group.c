/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_from_group: communicators made of groups alone (MPI 5.0 7.4.2, 7.6.2), for sessions. Called by the generated entries, which hold
 * the lock of worker 0. The members exchange messages on a channel of the instance (weft_mpi_world.service), which all processes of the job
 * have; the string is hashed into their tag.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "mpi/bridge_wait.h"
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

/* How the members exchange messages. Requires that this process is one. */
static weft_exchange exchange_of(const weft_group *group, const char *stringtag)
{
    weft_mpi_world *mpi = weft_mpi_now();
    return weft_exchange_by_messages(mpi->comm_world, mpi->service, group, (uint32_t)own_rank(group), tag_of(stringtag));
}

/* What prevents an exchange of the members, on all of them. */
static int check_common(const weft_group *group, const char *stringtag)
{
    int rc = check_string(stringtag);
    if (!rc && own_rank(group) < 0)
        rc = weft_fail(WEFT_E_GROUP, "this process is no member of the group");
    return rc ? rc : check_members(group);
}

/* Makes the communicator; all members of the group call. rc: an error of this member; then all fail. */
static int make(weft_group *group, const char *stringtag, int rc, weft_comm **made)
{
    weft_exchange exchange = exchange_of(group, stringtag);
    weft_comm_members members = {.exchange = &exchange, .size = group->size, .rank = exchange.rank, .group = group};
    return weft_comm_make(&members, rc, made);
}

static int check_errhandler(MPI_Errhandler errhandler, const char *function)
{
    if (weft_errhandler_fits(errhandler, WEFT_TRAITS_COMM))
        return 0;
    return weft_fail(WEFT_E_ERRHANDLER, "%s: argument errhandler is no error handler for communicators", function);
}

int weft_mpi_comm_create_from_group(weft_group *group, const char *stringtag, weft_info *info, MPI_Errhandler errhandler,
                                    MPI_Comm *newcomm, int failed)
{
    weft_comm *made = NULL;
    int rc = failed ? failed : check_errhandler(errhandler, "MPI_Comm_create_from_group");
    *newcomm = MPI_COMM_NULL;
    if (group->size) {
        int common = check_common(group, stringtag);
        rc = common ? common : make(group, stringtag, rc, &made);
    }
    if (made) {
        weft_comm_set_hints(made, info);
        weft_errhandler_set(&made->traits, errhandler);
        *newcomm = made;
    }
    return rc;
}

/* What the leader passes to the members of its group first. It waits for none of them: with an empty remote group the call is local. */
enum { GOES_ON, IS_EMPTY };

static int tell_group(const weft_group *group, const char *stringtag, uint32_t leader, uint32_t *word)
{
    weft_exchange exchange = exchange_of(group, stringtag);
    exchange.first = leader;
    exchange.rank = (exchange.rank + group->size - leader) % group->size;
    return weft_exchange_spread(&exchange, word, 1);
}

/* Finds the remote leader, as its own leader's arguments name it. */
static int find_remote(const weft_group *remote, int remote_leader, weft_bridge *bridge)
{
    weft_mpi_world *mpi = weft_mpi_now();
    int rank;
    if (!remote)
        return weft_fail(WEFT_E_GROUP, "MPI_Intercomm_create_from_groups: argument remote_group is no group");
    if (remote_leader < 0 || (uint32_t)remote_leader >= remote->size)
        return weft_fail(WEFT_E_RANK, "MPI_Intercomm_create_from_groups: argument remote_leader is %d: not a rank of remote_group (0..%u)",
                         remote_leader, remote->size - 1);
    rank = weft_group_rank_of(mpi->comm_world->group, weft_group_process(remote, (uint32_t)remote_leader));
    if (rank < 0)
        return weft_fail(WEFT_E_GROUP, "MPI_Intercomm_create_from_groups: rank %d of remote_group is a process of another job: such groups "
                         "are not supported yet", remote_leader);
    bridge->remote_leader = (uint32_t)rank;
    bridge->chan = mpi->service;
    return 0;
}

/* Both groups of the bridge make the intercommunicator. rc: an error of this member. */
static int make_inter(weft_bridge bridge, weft_group *local_group, const char *stringtag, int rc, weft_comm **made)
{
    int local_rc = make(local_group, stringtag, rc, &bridge.local);
    if (local_rc) {
        char cause[512];
        snprintf(cause, sizeof cause, "%s", weft_fail_text(local_rc));
        if (bridge.chan) /* of the leader */
            weft_bridge_refuse(&bridge, rc ? bridge.leader : UINT32_MAX);
        return weft_fail(local_rc, "%s", cause);
    }
    rc = weft_intercomm_make(bridge, rc, made);
    weft_comm_drop(bridge.local); /* the intercommunicator has one of its own */
    return rc;
}

int weft_mpi_intercomm_create_from_groups(weft_group *local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                          const char *stringtag, weft_info *info, MPI_Errhandler errhandler, MPI_Comm *newintercomm,
                                          int failed)
{
    weft_comm *made = NULL;
    weft_bridge bridge = {.leader = (uint32_t)local_leader};
    bool is_leader;
    uint32_t word = GOES_ON;
    int rc = failed ? failed : check_errhandler(errhandler, "MPI_Intercomm_create_from_groups"), common;
    *newintercomm = MPI_COMM_NULL;
    if (!local_group->size)
        return rc;
    common = check_common(local_group, stringtag);
    if (!common && (local_leader < 0 || (uint32_t)local_leader >= local_group->size))
        common = weft_fail(WEFT_E_RANK, "MPI_Intercomm_create_from_groups: argument local_leader is %d: not a rank of local_group (0..%u)",
                           local_leader, local_group->size - 1);
    if (common)
        return common;
    bridge.tag = weft_exchange_tag(tag_of(stringtag), true);
    is_leader = own_rank(local_group) == local_leader;
    if (is_leader) { /* the remote group is significant here only */
        const weft_group *remote = weft_group_of(remote_group);
        int found = remote && !remote->size ? 0 : find_remote(remote, remote_leader, &bridge);
        word = remote && !remote->size ? IS_EMPTY : GOES_ON;
        if (found)
            weft_bridge_fail_unseen(weft_mpi_now()->service, bridge.tag);
        rc = rc ? rc : found;
    }
    common = tell_group(local_group, stringtag, (uint32_t)local_leader, &word);
    if (common || word == IS_EMPTY)
        return common ? common : rc;
    rc = make_inter(bridge, local_group, stringtag, rc, &made);
    if (made) {
        weft_comm_set_hints(made, info);
        weft_errhandler_set(&made->traits, errhandler);
        *newintercomm = made;
    }
    return rc;
}
